// Which superblock copy to believe.
//
// A copy is believed when its checksum holds and its numbers agree with each other. Copy A is at
// offset 0 and says where B is. If A is damaged, every block boundary at which B could start is
// tried: a copy found there is accepted only if it says itself that copies are that long.
//
// An intact copy decides, and of two the newer one: if it needs a feature that is unknown here, the
// pool is refused even though the other copy is older and plainer. Intact copies of two pools are
// refused: the numbers of two pools do not compare, so nothing here says whose the file is. Only
// when no copy is intact do the remains of A decide what kind of refusal the user gets.
#include "pool/superblock.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <sp3/error.h>
#include <sp3/report.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/mutant.h"
#include "pool/limits.h"

namespace sp3::pool {
namespace {

using Verdict = SuperblockCopy::Verdict;

// The checksum of a whole copy with the field `crc` taken as zero.
std::uint32_t checksum(const std::byte* copy, std::uint64_t copy_bytes) {
  constexpr std::uint64_t kBehindCrc = offsetof(Superblock, crc) + sizeof(Superblock::crc);
  const std::uint32_t zero = 0;
  std::uint32_t crc = base::crc32c(0, copy, offsetof(Superblock, crc));
  crc = base::crc32c(crc, &zero, sizeof zero);
  return base::crc32c(crc, copy + kBehindCrc, copy_bytes - kBehindCrc);
}

struct Range {
  std::size_t offset;
  std::size_t length;
};
constexpr Range range(std::size_t begin, std::size_t end) { return {begin, end - begin}; }

// What makes it this pool and never changes in its life, and what else never does.
constexpr Range kIdentity[] = {
    range(offsetof(Superblock, uuid), offsetof(Superblock, compat)),
    range(offsetof(Superblock, copy_bytes), offsetof(Superblock, number)),
    range(offsetof(Superblock, max_sessions), offsetof(Superblock, reserved)),
};
constexpr Range kOtherConstants[] = {
    range(0, offsetof(Superblock, crc)),
    range(offsetof(Superblock, compat), offsetof(Superblock, copy_bytes)),
    range(offsetof(Superblock, reserved), sizeof(Superblock)),
};

std::optional<std::uint64_t> find_difference(const Superblock& a, const Superblock& b,
                                             std::span<const Range> parts) {
  const auto* const x = reinterpret_cast<const std::byte*>(&a);
  const auto* const y = reinterpret_cast<const std::byte*>(&b);
  for (const Range& part : parts) {
    for (std::size_t i = part.offset; i < part.offset + part.length; ++i) {
      if (x[i] != y[i]) return i;
    }
  }
  return std::nullopt;
}

std::string hex(std::uint64_t value) { return fmt::format("{:#x}", value); }

void set_problem(SuperblockCopy& copy, Verdict verdict, std::uint64_t field, std::string what,
                 std::string wanted, std::string found) {
  copy.verdict = verdict;
  copy.offset += field;
  copy.what = std::move(what);
  copy.wanted = std::move(wanted);
  copy.found = std::move(found);
}

// Numbers outside the layout that no writer of this format ever writes.
std::optional<LayoutProblem> find_problem_of_counters(const SuperblockImage& image) {
  const Superblock& s = image.fixed;
  const auto problem = [](std::size_t offset, const char* field, const char* wanted,
                          std::uint64_t found) {
    return LayoutProblem{offset, field, wanted, std::to_string(found)};
  };
  if (!is_valid_state(s.state)) {
    return problem(offsetof(Superblock, state), "state", "1 or 2", s.state);
  }
  if (s.number == 0) return problem(offsetof(Superblock, number), "number", "at least 1", 0);
  if (s.generation == 0) {
    return problem(offsetof(Superblock, generation), "generation", "at least 1", 0);
  }
  constexpr const char* kFew = "at most 2^62";
  if (s.number > kMostCount) return problem(offsetof(Superblock, number), "number", kFew, s.number);
  if (s.generation > kMostCount) {
    return problem(offsetof(Superblock, generation), "generation", kFew, s.generation);
  }
  if (s.checkpoint_number > kMostCount) {
    return problem(offsetof(Superblock, checkpoint_number), "checkpoint_number", kFew,
                   s.checkpoint_number);
  }
  if (s.floor > kMostStamp) {
    return problem(offsetof(Superblock, floor), "floor", "a stamp below 2^62", s.floor);
  }
  if (s.largest_stamp > kMostStamp) {
    return problem(offsetof(Superblock, largest_stamp), "largest_stamp", "a stamp below 2^62",
                   s.largest_stamp);
  }
  const auto zero = std::find(image.heads.begin(), image.heads.end(), base::Lsn{0});
  if (zero != image.heads.end()) {
    const auto session = static_cast<std::size_t>(zero - image.heads.begin());
    return problem(sizeof(Superblock) + session * sizeof(base::Lsn), "head", "at least 1", 0);
  }
  return std::nullopt;
}

[[noreturn]] void refuse_version(const SuperblockCopy& copy, const std::string& path) {
  throw Error(ErrorCode::wrong_version, "the pool has a format unknown to this library",
              {.path = path, .offset = copy.offset, .wanted = copy.wanted, .found = copy.found});
}

// The remains of a pool whose size is not known to be right: which refusal is most specific?
[[noreturn]] void refuse_without_intact_copy(const SuperblockCopy& a, const SuperblockCopy& b,
                                             std::uint64_t file_size, const std::string& path) {
  ErrorFacts facts;
  facts.path = path;
  facts.wanted = a.wanted;
  facts.found = a.found;
  if (a.verdict == Verdict::no_magic && b.verdict == Verdict::no_magic) {
    facts.wanted = "a file that begins with S3POOL01";
    throw Error(ErrorCode::not_a_pool, "not an sp3 pool", std::move(facts));
  }
  facts.offset = a.offset;
  if (a.verdict == Verdict::cut_off) {
    facts.found = fmt::format("{} bytes", file_size);
    throw Error(ErrorCode::wrong_size, "the file ends inside its superblock", std::move(facts));
  }
  if (a.verdict == Verdict::unknown_version && b.verdict == Verdict::no_magic) {
    refuse_version(a, path);
  }
  throw Error(ErrorCode::damaged_superblock,
              fmt::format("both superblock copies are damaged: A: {}; B: {}", a.what, b.what),
              std::move(facts));
}

void require_known(const SuperblockCopy& copy, const std::string& path) {
  if (copy.sealed && copy.verdict == Verdict::unknown_version) refuse_version(copy, path);
  const Superblock& s = copy.image.fixed;
  if (copy.verdict != Verdict::intact || !has_unknown_features(s)) return;
  ErrorFacts facts;
  facts.path = path;
  facts.offset = copy.offset + offsetof(Superblock, incompat);
  facts.wanted = fmt::format("incompatible features within {}", hex(kKnownIncompat));
  facts.found = hex(s.incompat);
  throw Error(ErrorCode::wrong_version,
              fmt::format("the pool uses features unknown to this library, bits {}",
                          hex(s.incompat & ~kKnownIncompat)),
              std::move(facts));
}

void require_size(const SuperblockCopy& copy, std::uint64_t file_size, const std::string& path) {
  if (copy.image.fixed.pool_size == file_size) return;
  ErrorFacts facts;
  facts.path = path;
  facts.wanted = fmt::format("{} bytes", copy.image.fixed.pool_size);
  facts.found = fmt::format("{} bytes", file_size);
  throw Error(ErrorCode::wrong_size, "the file is not as long as its superblock says",
              std::move(facts));
}

void require_one_pool(const SuperblockCopy& a, const SuperblockCopy& b, const std::string& path) {
  const Superblock& x = a.image.fixed;
  const Superblock& y = b.image.fixed;
  const auto difference = find_difference(x, y, kIdentity);
  if (!difference) return;
  ErrorFacts facts;
  facts.path = path;
  facts.offset = b.offset + *difference;
  facts.wanted =
      fmt::format("what copy A says: pool {} of {} bytes", format_uuid(x.uuid), x.pool_size);
  facts.found = fmt::format("pool {} of {} bytes", format_uuid(y.uuid), y.pool_size);
  throw Error(ErrorCode::damaged_superblock, "the superblock copies are intact, but of two pools",
              std::move(facts));
}

bool seal_equal_metadata(const Superblock& a, const Superblock& b) {
  return a.copy_bytes == b.copy_bytes && a.uuid == b.uuid &&
         a.checkpoint_number == b.checkpoint_number && a.floor == b.floor;
}

// Copy B when A cannot say where it is. Prefers an intact one; else the first that bears the magic.
SuperblockCopy search_copy_b(const std::byte* prefix, std::uint64_t prefix_bytes) {
  SuperblockCopy best;
  best.what = "not found";
  for (std::uint64_t at = kBlock; at <= superblock_bytes(kMaxSessions); at += kBlock) {
    SuperblockCopy copy = examine_superblock(prefix, prefix_bytes, at);
    if (copy.verdict == Verdict::no_magic) continue;
    if (copy.sealed && copy.image.fixed.copy_bytes == at) return copy;
    // Something sealed in another place is a stray image of some superblock, not copy B.
    if (!copy.sealed && best.verdict == Verdict::no_magic) best = std::move(copy);
  }
  return best;
}

}  // namespace

std::optional<std::uint64_t> find_constant_difference(const Superblock& a, const Superblock& b) {
  const auto identity = find_difference(a, b, kIdentity);
  return identity ? identity : find_difference(a, b, kOtherConstants);
}

bool has_unknown_features(const Superblock& superblock) {
  return (superblock.incompat & ~kKnownIncompat) != 0;
}

SuperblockCopy examine_superblock(const std::byte* prefix, std::uint64_t prefix_bytes,
                                  std::uint64_t offset) {
  SuperblockCopy copy;
  copy.offset = offset;
  const std::uint64_t available = offset < prefix_bytes ? prefix_bytes - offset : 0;
  const std::byte* const bytes = prefix + (available != 0 ? offset : 0);
  Superblock& s = copy.image.fixed;
  if (available != 0) std::memcpy(&s, bytes, std::min<std::uint64_t>(available, sizeof s));
  if (available < sizeof s.magic || s.magic != kMagic) {
    set_problem(copy, Verdict::no_magic, 0, "no magic number", hex(kMagic),
                available < sizeof s.magic ? fmt::format("{} bytes", available) : hex(s.magic));
    return copy;
  }
  if (available < sizeof s) {
    set_problem(copy, Verdict::cut_off, 0, "cut off",
                fmt::format("at least {} bytes", kMinPoolSize), fmt::format("{} bytes", available));
    return copy;
  }
  const bool length_possible = s.copy_bytes % kBlock == 0 && s.copy_bytes >= kBlock &&
                               s.copy_bytes <= superblock_bytes(kMaxSessions);
  const bool whole = length_possible && s.copy_bytes <= available;
  const std::uint32_t crc = whole ? checksum(bytes, s.copy_bytes) : 0;
  copy.sealed = whole && crc == s.crc;
  if (s.version != kFormatVersion) {
    set_problem(copy, Verdict::unknown_version, offsetof(Superblock, version), "unknown version",
                fmt::format("format version {}", kFormatVersion), std::to_string(s.version));
  } else if (!length_possible) {
    set_problem(copy, Verdict::damaged, offsetof(Superblock, copy_bytes), "impossible copy_bytes",
                fmt::format("a multiple of {} up to {}", kBlock, superblock_bytes(kMaxSessions)),
                std::to_string(s.copy_bytes));
  } else if (!whole) {
    set_problem(copy, Verdict::cut_off, 0, "cut off", fmt::format("{} bytes", s.pool_size),
                fmt::format("{} bytes", available));
  } else if (!copy.sealed) {
    set_problem(copy, Verdict::damaged, offsetof(Superblock, crc), "wrong checksum", hex(crc),
                hex(s.crc));
  } else if (has_unknown_features(s)) {
    copy.verdict = Verdict::intact;  // what else the numbers mean is not ours to say
  } else {
    std::optional<LayoutProblem> problem = find_layout_problem(s);
    if (!problem) {
      copy.image.heads.resize(s.max_sessions);
      std::memcpy(copy.image.heads.data(), bytes + sizeof s, s.max_sessions * sizeof(base::Lsn));
      problem = find_problem_of_counters(copy.image);
    }
    if (problem) {
      set_problem(copy, Verdict::damaged, problem->offset, "impossible " + problem->field,
                  problem->wanted, problem->found);
    } else {
      copy.verdict = Verdict::intact;
    }
  }
  return copy;
}

SuperblockChoice read_superblocks(const std::byte* prefix, std::uint64_t prefix_bytes,
                                  std::uint64_t file_size, const std::string& path) {
  SuperblockCopy a = examine_superblock(prefix, prefix_bytes, 0);
  const std::uint64_t b_offset = a.image.fixed.copy_bytes;
  SuperblockCopy b = a.sealed ? examine_superblock(prefix, prefix_bytes, b_offset)
                              : search_copy_b(prefix, prefix_bytes);
  const bool a_intact = a.verdict == Verdict::intact;
  const bool b_intact = b.verdict == Verdict::intact;
  if (!a_intact && !b_intact) {
    require_known(a, path);
    require_known(b, path);
    refuse_without_intact_copy(a, b, file_size, path);
  }
  const bool a_newer = !b_intact || a.image.fixed.number > b.image.fixed.number;
  const int current = a_intact && a_newer ? 0 : 1;
  SuperblockCopy& chosen = current == 0 ? a : b;
  const SuperblockCopy& other = current == 0 ? b : a;
  if (other.verdict == Verdict::unknown_version) require_known(other, path);
  require_known(chosen, path);
  if (a_intact && b_intact) require_one_pool(a, b, path);
  require_size(chosen, file_size, path);

  SuperblockChoice choice;
  choice.copy = current;
  const std::uint64_t copy_bytes = chosen.image.fixed.copy_bytes;
  choice.both_equal = a_intact && b_intact && a.image.fixed.copy_bytes == copy_bytes &&
                      b.image.fixed.copy_bytes == copy_bytes &&
                      std::memcmp(prefix, prefix + copy_bytes, copy_bytes) == 0;
  if (!a_intact || !b_intact) {
    choice.other = SuperblockChoice::Other::torn;
  } else if (seal_equal_metadata(chosen.image.fixed, other.image.fixed)) {
    choice.other = SuperblockChoice::Other::vouches;
  }
  choice.image = std::move(chosen.image);
  return choice;
}

void write_superblock(emu::Memory& memory, const Layout& layout, int copy,
                      const SuperblockImage& image, emu::FlushCounts& counts) {
  SP3_CHECK(image.heads.size() == layout.max_sessions);
  SP3_CHECK(layout.superblock_bytes == superblock_bytes(layout.max_sessions));
  SP3_ASSERT(image.fixed.copy_bytes == layout.superblock_bytes);
  SP3_ASSERT(image.fixed.pool_size == layout.size);
  std::vector<std::byte> bytes(layout.superblock_bytes);
  Superblock sealed = image.fixed;
  sealed.crc = 0;
  std::memcpy(bytes.data(), &sealed, sizeof sealed);
  std::memcpy(bytes.data() + sizeof sealed, image.heads.data(),
              image.heads.size() * sizeof(base::Lsn));
  sealed.crc = checksum(bytes.data(), bytes.size());
  std::memcpy(bytes.data() + offsetof(Superblock, crc), &sealed.crc, sizeof sealed.crc);

  const std::uint64_t offset = layout.superblock_offset(copy);
  memory.store(offset, bytes.data(), bytes.size());
  constexpr base::Mutant kNoFlush[2] = {base::Mutant::no_flush_superblock_a,
                                        base::Mutant::no_flush_superblock_b};
  if (!base::mutant(kNoFlush[copy])) memory.flush(offset, bytes.size(), counts);
}

}  // namespace sp3::pool

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "pool/limits.h"
#include "pool/superblock.h"
#include "tests/pool/support.h"

namespace sp3::pool {
namespace {

using test::code_of;
using test::error_of;
using test::kSmall;
using test::TempPath;

using Bytes = std::vector<std::byte>;

// From a file that ends after its first `bytes`.
SuperblockChoice choose(const std::byte* file, std::uint64_t bytes) {
  return read_superblocks(file, std::min(bytes, kSuperblocksEnd), bytes, "pool");
}
SuperblockChoice choose(const Bytes& file) { return choose(file.data(), file.size()); }

bool equal(const SuperblockImage& a, const SuperblockImage& b) {
  return std::memcmp(&a.fixed, &b.fixed, sizeof a.fixed) == 0 && a.heads == b.heads;
}

// A pool file's bytes at number n, and the same with copies as number n + 1 would write them.
struct Two {
  Bytes before, after;
  std::uint64_t copy_bytes;
  SuperblockImage old_image, new_image;

  explicit Two(std::uint32_t sessions = 8) {
    const TempPath temp("superblock");
    Options options = test::small_options();
    options.geometry.max_sessions = sessions - kOwnSessions;
    options.geometry.log_size = 4096 * std::max<std::uint64_t>(sessions, 2);
    const auto pool = PoolFile::create(temp.path(), kSmall + options.geometry.log_size, options);
    copy_bytes = pool->layout().superblock_bytes;
    before = test::read_file(temp.path());
    old_image = choose(before).image;
    new_image = pool->superblock();
    Superblock& fixed = new_image.fixed;
    ++fixed.number;
    ++fixed.generation;
    ++fixed.checkpoint_number;
    fixed.floor = 0x0123456789ABCDEF;
    fixed.largest_stamp = 0x1123456789ABCDEF;
    fixed.state = static_cast<std::uint32_t>(State::open);
    for (std::size_t i = 0; i < new_image.heads.size(); ++i) new_image.heads[i] = 1000 + i;
    emu::FlushCounts counts;
    write_superblock(pool->memory(), pool->layout(), 0, new_image, counts);
    write_superblock(pool->memory(), pool->layout(), 1, new_image, counts);
    REQUIRE(counts.lines == 2 * copy_bytes / 64);
    after = test::read_file(temp.path());
    new_image = choose(after).image;
  }

  // `before` with the words of copy `copy` for which `is_new(word)` replaced by those of `after`.
  template <class Predicate>
  [[nodiscard]] Bytes mix(Bytes file, int copy, Predicate is_new) const {
    const std::uint64_t base = static_cast<std::uint64_t>(copy) * copy_bytes;
    for (std::uint64_t at = 0; at < copy_bytes; at += 8) {
      const Bytes& from = is_new(at) ? after : before;
      std::memcpy(file.data() + base + at, from.data() + base + at, 8);
    }
    return file;
  }
  [[nodiscard]] bool is(const Bytes& file, int copy, const Bytes& other) const {
    const std::uint64_t base = static_cast<std::uint64_t>(copy) * copy_bytes;
    return std::memcmp(file.data() + base, other.data() + base, copy_bytes) == 0;
  }
};

// A torn copy A beside an old B, or a torn copy B beside a new A.
void check_torn(const Two& two, int copy, const Bytes& torn) {
  const SuperblockChoice choice = choose(torn);
  const bool is_new = copy == 1 || two.is(torn, 0, two.after);
  REQUIRE(equal(choice.image, is_new ? two.new_image : two.old_image));
  const bool both = copy == 0 ? two.is(torn, 0, two.before) : two.is(torn, 1, two.after);
  REQUIRE(choice.both_equal == both);
  using Other = SuperblockChoice::Other;
  const bool whole = two.is(torn, copy, two.before) || two.is(torn, copy, two.after);
  REQUIRE(choice.other == (!whole ? Other::torn : both ? Other::vouches : Other::older));
}

TEST_CASE("a superblock copy torn at any word leaves the other one") {
  // 600 sessions: a copy of two blocks, so that B must be searched for when A is torn.
  for (const std::uint32_t sessions : {8u, 600u}) {
    const Two two(sessions);
    Bytes a_new = two.mix(two.before, 0, [](std::uint64_t) { return true; });
    for (std::uint64_t cut = 0; cut <= two.copy_bytes; cut += 8) {
      CAPTURE(sessions, cut);
      const auto front = [cut](std::uint64_t at) { return at < cut; };
      const auto back = [cut](std::uint64_t at) { return at >= cut; };
      check_torn(two, 0, two.mix(two.before, 0, front));
      check_torn(two, 0, two.mix(two.before, 0, back));
      check_torn(two, 1, two.mix(a_new, 1, front));
      check_torn(two, 1, two.mix(a_new, 1, back));
    }
  }
}

TEST_CASE("a superblock copy of which any set of words is new leaves the other one") {
  const Two two;
  const Bytes a_new = two.mix(two.before, 0, [](std::uint64_t) { return true; });
  std::mt19937_64 random(7);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t seed = random();
    const auto some = [seed](std::uint64_t at) { return (seed >> (at / 8 % 64) & 1) != 0; };
    check_torn(two, 0, two.mix(two.before, 0, some));
    check_torn(two, 1, two.mix(a_new, 1, some));
  }
}

TEST_CASE("of two intact copies the newer is current, and B when they are equal") {
  const Two two;
  CHECK(choose(two.before).copy == 1);
  CHECK(choose(two.before).both_equal);
  const Bytes a_new = two.mix(two.before, 0, [](std::uint64_t) { return true; });
  CHECK(choose(a_new).copy == 0);
  CHECK_FALSE(choose(a_new).both_equal);
  CHECK(equal(choose(a_new).image, two.new_image));
  const Bytes b_new = two.mix(two.before, 1, [](std::uint64_t) { return true; });
  CHECK(choose(b_new).copy == 1);
  CHECK(equal(choose(b_new).image, two.new_image));
}

// What it describes may take the place of what is damaged.
TEST_CASE("a copy vouches for the metadata of no other checkpoint") {
  using Other = SuperblockChoice::Other;
  const Two two;
  const auto other = [&two](auto edit) {
    Bytes file = two.before;
    Superblock superblock;
    std::memcpy(&superblock, file.data(), sizeof superblock);
    ++superblock.number;
    edit(superblock);
    std::memcpy(file.data(), &superblock, sizeof superblock);
    test::seal_superblock(file.data());
    return choose(file).other;
  };
  CHECK(other([](Superblock& s) { ++s.generation; }) == Other::vouches);  // it was opened
  CHECK(other([](Superblock& s) { ++s.checkpoint_number; }) == Other::older);
  CHECK(other([](Superblock& s) { ++s.floor; }) == Other::older);
}

TEST_CASE("what is not a pool is told from what is damaged") {
  const Two two;
  CHECK(code_of([] { return choose(nullptr, 0); }) == "not_a_pool");
  for (const std::size_t length : {1u, 7u, 8u, 271u, 4096u, 100000u, 262144u}) {
    CAPTURE(length);
    CHECK(code_of([&] { return choose(Bytes(length)); }) == "not_a_pool");
    CHECK(code_of([&] { return choose(Bytes(length, std::byte{0xFF})); }) == "not_a_pool");
  }
  Bytes other = two.before;
  other[0] = std::byte{'X'};
  other[two.copy_bytes] = std::byte{'X'};
  const auto error = error_of([&] { return choose(other); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::not_a_pool);
  CHECK(error->facts().wanted == "a file that begins with S3POOL01");
  CHECK(error->facts().found == "0x31304c4f4f503358");

  Bytes damaged = two.before;
  damaged[100] ^= std::byte{1};
  damaged[two.copy_bytes + 100] ^= std::byte{1};
  const auto damage = error_of([&] { return choose(damaged); });
  REQUIRE(damage);
  CHECK(damage->code() == ErrorCode::damaged_superblock);
  CHECK(damage->facts().offset.has_value());
}

// So that nobody makes a new one in its place.
TEST_CASE("a pool that has lost one superblock copy and whose other is damaged is a damaged pool") {
  const Two two;
  const int lost = GENERATE(0, 1);
  Bytes file = two.before;
  std::memset(file.data() + static_cast<std::uint64_t>(lost) * two.copy_bytes, 0, two.copy_bytes);
  file[static_cast<std::uint64_t>(1 - lost) * two.copy_bytes + 100] ^= std::byte{1};
  CHECK(code_of([&] { return choose(file); }) == "damaged_superblock");
}

TEST_CASE("a pool cut short anywhere is of wrong size or no pool") {
  const Two two;
  for (std::size_t length = 0; length < two.before.size(); length += length < 9000 ? 1 : 997) {
    // What is behind the end is not there, and so is not looked at.
    const Bytes file(two.before.begin(), two.before.begin() + static_cast<std::ptrdiff_t>(length));
    const std::string code = code_of([&] { return choose(file); });
    const std::string wanted = length < 8 ? "not_a_pool" : "wrong_size";
    if (code != wanted) FAIL(length << " bytes: " << code);
  }
  Bytes longer = two.before;
  longer.resize(longer.size() + 1);
  const auto error = error_of([&] { return choose(longer); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::wrong_size);
  CHECK(error->facts().wanted == std::to_string(two.before.size()) + " bytes");
  CHECK(error->facts().found == std::to_string(longer.size()) + " bytes");
}

TEST_CASE("another version and unknown incompatible features are refused and named") {
  const Two two;
  const auto edited = [&two](auto edit, bool only_a) {
    Bytes file = two.before;
    for (std::uint64_t at = 0; at <= (only_a ? 0 : two.copy_bytes); at += two.copy_bytes) {
      Superblock superblock;
      std::memcpy(&superblock, file.data() + at, sizeof superblock);
      edit(superblock);
      std::memcpy(file.data() + at, &superblock, sizeof superblock);
      test::seal_superblock(file.data() + at);
    }
    return file;
  };
  const auto version =
      error_of([&] { return choose(edited([](Superblock& s) { s.version = 2; }, false)); });
  REQUIRE(version);
  CHECK(version->code() == ErrorCode::wrong_version);
  CHECK(version->facts().found == "2");
  const auto bits =
      error_of([&] { return choose(edited([](Superblock& s) { s.incompat = 0x50; }, false)); });
  REQUIRE(bits);
  CHECK(bits->code() == ErrorCode::wrong_version);
  CHECK_THAT(bits->what(), Catch::Contains("0x50"));

  // A newer copy that is intact decides, though the older could be read.
  CHECK(code_of([&] {
          return choose(edited([](Superblock& s) { s.incompat = 1, ++s.number; }, true));
        }) == "wrong_version");
  // So does one of another version, whichever it is: who wrote that knows what became of the pool.
  CHECK(code_of([&] { return choose(edited([](Superblock& s) { s.version = 2; }, true)); }) ==
        "wrong_version");
  // Other features are none of this function's business.
  CHECK(choose(edited([](Superblock& s) { s.compat = s.ro_compat = 0xFF; }, false)).both_equal);

  // One whose format seals and places copies in its own way.
  Bytes foreign = edited([](Superblock& s) { s.version = 3; }, true);
  std::memset(foreign.data() + two.copy_bytes, 0, two.copy_bytes);
  foreign[two.copy_bytes - 1] ^= std::byte{1};
  const auto other = error_of([&] { return choose(foreign); });
  REQUIRE(other);
  CHECK(other->code() == ErrorCode::wrong_version);
  CHECK(other->facts().offset == offsetof(Superblock, version));
  CHECK(other->facts().wanted == "format version 1");
  CHECK(other->facts().found == "3");

  // A version that only damage explains does not hide the other copy.
  Bytes flipped = two.before;
  flipped[offsetof(Superblock, version)] ^= std::byte{4};
  CHECK(equal(choose(flipped).image, two.old_image));
  // Nor what that one says of features.
  for (const std::uint64_t damaged : {std::uint64_t{0}, two.copy_bytes}) {
    Bytes unknown = edited([](Superblock& s) { s.incompat = 0x50; }, false);
    unknown[damaged + offsetof(Superblock, version)] ^= std::byte{4};
    const auto refused = error_of([&] { return choose(unknown); });
    REQUIRE(refused);
    CHECK(refused->code() == ErrorCode::wrong_version);
    CHECK_THAT(refused->what(), Catch::Contains("0x50"));
  }
}

TEST_CASE("sealed nonsense in one copy leaves the other, in both is damage") {
  const Two two;
  std::mt19937_64 random(99);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    Bytes file = two.before;
    const bool both = random() % 2 != 0;
    const std::uint64_t field = 40 + 4 * (random() % ((sizeof(Superblock) - 40) / 4));
    const std::uint64_t value = random() % 3 == 0 ? random() : (random() % 3) - 1;
    for (int copy = 0; copy <= (both ? 1 : 0); ++copy) {
      std::byte* const at = file.data() + static_cast<std::uint64_t>(copy) * two.copy_bytes;
      std::uint32_t word = 0;
      std::memcpy(&word, at + field, 4);
      word += static_cast<std::uint32_t>(value);
      std::memcpy(at + field, &word, 4);
      std::uint32_t copy_bytes = 0;
      std::memcpy(&copy_bytes, at + offsetof(Superblock, copy_bytes), 4);
      if (copy_bytes == two.copy_bytes) test::seal_superblock(at);
    }
    const auto error = error_of([&] {
      const SuperblockChoice choice = choose(file);
      // Whatever is accepted makes sense.
      REQUIRE_FALSE(find_layout_problem(choice.image.fixed));
      REQUIRE(choice.image.heads.size() == choice.image.fixed.max_sessions);
      REQUIRE(choice.image.fixed.pool_size == file.size());
      return 0;
    });
    if (!error) continue;
    ++refused;
    const bool typed = error->code() == ErrorCode::damaged_superblock ||
                       error->code() == ErrorCode::wrong_size ||
                       error->code() == ErrorCode::wrong_version;
    REQUIRE(typed);
  }
  CHECK(refused > 100);
}

TEST_CASE("numbers that no writer has time to reach are refused in both copies") {
  const Two two;
  for (const std::size_t field :
       {offsetof(Superblock, number), offsetof(Superblock, generation),
        offsetof(Superblock, checkpoint_number), offsetof(Superblock, floor),
        offsetof(Superblock, largest_stamp)}) {
    for (const std::uint64_t beyond : {std::uint64_t{0}, std::uint64_t{1}}) {
      INFO("field at " << field << ", " << beyond << " beyond what is possible");
      Bytes file = two.before;
      const std::uint64_t value = kMostCount - 1 + 2 * beyond;
      for (const std::uint64_t copy : {std::uint64_t{0}, two.copy_bytes}) {
        std::memcpy(file.data() + copy + field, &value, sizeof value);
        test::seal_superblock(file.data() + copy);
      }
      CHECK(code_of([&] { return choose(file); }) ==
            (beyond == 0 ? "no error" : "damaged_superblock"));
    }
  }
}

TEST_CASE("numbers that begin at one are never zero") {
  const Two two;
  for (const std::size_t field : {offsetof(Superblock, number), offsetof(Superblock, generation),
                                  sizeof(Superblock) + 2 * sizeof(base::Lsn)}) {  // a head
    Bytes file = two.before;
    for (const std::uint64_t copy : {std::uint64_t{0}, two.copy_bytes}) {
      std::memset(file.data() + copy + field, 0, sizeof(std::uint64_t));
      test::seal_superblock(file.data() + copy);
    }
    const auto error = error_of([&] { return choose(file); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::damaged_superblock);
    CHECK(error->facts().offset == field);
  }
}

TEST_CASE("intact copies of two pools are refused, whichever is newer") {
  const Two two;
  const Two other;
  for (const std::uint64_t at : {std::uint64_t{0}, two.copy_bytes}) {
    for (const Bytes* const from : {&other.before, &other.after}) {
      CAPTURE(at, from == &other.after);
      Bytes file = two.before;
      std::memcpy(file.data() + at, from->data() + at, two.copy_bytes);
      const auto error = error_of([&] { return choose(file); });
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::damaged_superblock);
      const auto& a = (at == 0 ? other : two).old_image.fixed.uuid;
      const auto& b = (at == 0 ? two : other).old_image.fixed.uuid;
      CHECK_THAT(error->facts().wanted, Catch::Contains(format_uuid(a)));
      CHECK_THAT(error->facts().found, Catch::Contains(format_uuid(b)));
      CHECK(error->facts().offset.value_or(0) - two.copy_bytes - offsetof(Superblock, uuid) < 16);
    }
  }
}

TEST_CASE("intact copies of one UUID and two geometries are refused") {
  const Two two;
  Bytes file = two.before;
  const std::uint32_t slab_size = 8192;
  std::memcpy(file.data() + offsetof(Superblock, slab_size), &slab_size, sizeof slab_size);
  test::seal_superblock(file.data());
  if (examine_superblock(file.data(), file.size(), 0).verdict != SuperblockCopy::Verdict::intact) {
    FAIL("the other geometry is not possible");
  }
  CHECK(code_of([&] { return choose(file); }) == "damaged_superblock");
}

TEST_CASE("copy B of a pool of as many sessions as there can be is found without A") {
  const std::uint64_t log_bytes = std::uint64_t{kMaxSessions} * kMinSegmentSize;
  const Layout layout =
      plan_layout(2 * log_bytes, {log_bytes, kMinSegmentSize, 0, kMaxUserSessions});
  Superblock superblock;
  superblock.number = superblock.generation = 1;
  superblock.state = static_cast<std::uint32_t>(State::clean);
  describe(layout, superblock);
  Bytes prefix(kSuperblocksEnd);
  REQUIRE(layout.superblock_offset(1) + layout.superblock_bytes == prefix.size());
  std::byte* const b = prefix.data() + layout.superblock_offset(1);
  std::memcpy(b, &superblock, sizeof superblock);
  const std::vector<base::Lsn> heads(kMaxSessions, 1);
  std::memcpy(b + sizeof superblock, heads.data(), heads.size() * sizeof(base::Lsn));
  test::seal_superblock(b);
  CHECK(read_superblocks(prefix.data(), prefix.size(), layout.size, "pool").copy == 1);
}

TEST_CASE("an image of a superblock in another place does not pass for copy B") {
  const Two two;
  Bytes file = two.before;
  // A user's object may hold a whole pool file. Both real copies are gone, and the image says that
  // copies are one block long but stands at the second.
  std::memcpy(file.data() + 2 * kBlock, two.after.data(), two.copy_bytes);
  std::memset(file.data(), 0, 2 * two.copy_bytes);
  CHECK(code_of([&] { return choose(file); }) == "not_a_pool");
}

}  // namespace
}  // namespace sp3::pool

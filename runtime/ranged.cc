// Ranged objects in the read phase, and what commit asks of them (ranged.h tells the idea).
//
// Who keeps whom out, of the bytes of one chunk:
//
//   reader, not holding the range     its version of the chunk is validated; any writer aborts it
//   reader under an exclusive range   nobody else writes these bytes before it has committed
//   writer                            the range, from write() to publish; the chunk's entry for the
//                                     steps between lock and publish, so that of two writers the
//                                     later to publish has the larger stamp and the other's bytes
//   resize, destroy                   all ranges, which keeps writers out; and the header, which
//                                     readers have read
//
// Who has read the header before it takes its range may make a patch for a chunk that is destroyed
// before commit, and whose slot is another object's by then. Its entry is locked and left as it
// was: whoever destroyed it has written that header, so validation fails.
#include "runtime/ranged.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <sp3/error.h>

#include "base/mutant.h"
#include "emu/touch.h"
#include "runtime/describe_type.h"
#include "runtime/pool_core.h"
#include "runtime/session_core.h"

namespace sp3::runtime {

using base::Mutant;
using base::mutant;
using detail::RangedHeader;

namespace {

constexpr std::uint64_t kLongest = (std::uint64_t{1} << kRangedLengthBits) - 1;

// What holes show.
alignas(64) constexpr std::array<std::byte, detail::kLargestChunk> kZeros{};

// One that does not fit into 64 bits is beyond every end.
std::uint64_t end_of(std::uint64_t offset, std::uint64_t bytes) {
  return bytes > ~std::uint64_t{0} - offset ? ~std::uint64_t{0} : offset + bytes;
}

std::string describe(std::uint64_t begin, std::uint64_t end) {
  return fmt::format("[{}, {})", begin, end);
}

}  // namespace

const detail::TypeInfo* ranged_chunk_type(std::uint32_t chunk_bytes) noexcept {
  switch (chunk_bytes) {
    case 256:
      return &detail::type_info<detail::RangedChunk<256>>;
    case 512:
      return &detail::type_info<detail::RangedChunk<512>>;
    case 1024:
      return &detail::type_info<detail::RangedChunk<1024>>;
    case 2048:
      return &detail::type_info<detail::RangedChunk<2048>>;
    case 4096:
      return &detail::type_info<detail::RangedChunk<4096>>;
    default:
      return nullptr;
  }
}

RangedAccess::RangedAccess(SessionCore& core)
    : core_(core),
      holds_(core.pool_->ranged_locks(), core.id_),
      attempts_(std::make_shared<std::atomic<std::uint64_t>>(1)) {}

RangedAccess::~RangedAccess() = default;

// ------------------------------------------------------------------------------- finding and
// checks

const RangedHeader& RangedAccess::header(std::uint64_t object) {
  core_.begin_ranged_operation();
  // What was read under a range alone has its length for certain; but while there is no table, the
  // first writer elsewhere makes one.
  if (cursor_.object == object && cursor_.header != nullptr &&
      (cursor_.version == kNoVersion || cursor_.header->top != 0)) {
    return *cursor_.header;
  }
  const auto* header = static_cast<const RangedHeader*>(core_.read(object, ranged_header_type()));
  check_shape(*header, object);
  cursor_ = {.object = object, .header = header};
  return *header;
}

// REQUIRES: a range of the object is held.
const RangedHeader& RangedAccess::held_header(std::uint64_t object) {
  if (cursor_.object == object && cursor_.header != nullptr) return *cursor_.header;
  if (core_.policy_ == CommitPolicy::ideal || core_.writes_.find(object) != nullptr) {
    return header(object);
  }
  index::Seen& seen = unvalidated_.emplace_back();
  const auto* header =
      reinterpret_cast<const RangedHeader*>(core_.read_held(object, ranged_header_type(), seen));
  if (checked_.object != object || checked_.version != seen.word0) {
    check_shape(*header, object);
    checked_ = {.object = object, .version = seen.word0};
  }
  cursor_ = {.object = object, .header = header, .version = seen.word0};
  return *header;
}

// Bytes of a damaged pool must not lead us astray.
void RangedAccess::check_shape(const RangedHeader& header, std::uint64_t object) {
  if (ranged_chunk_type(header.chunk_bytes) != nullptr && header.length <= kLongest &&
      header.levels == ranged_levels(header.length, header.chunk_bytes)) [[likely]] {
    return;
  }
  core_.fail(ErrorCode::damaged_metadata, "the header of a ranged object contradicts itself",
             object, "the levels that its length and chunk size need",
             std::to_string(header.levels) + " levels for " + std::to_string(header.length) +
                 " bytes in chunks of " + std::to_string(header.chunk_bytes));
}

void RangedAccess::check_range(const RangedHeader& header, std::uint64_t object,
                               std::uint64_t begin, std::uint64_t end) {
  if (begin < end && end <= header.length) [[likely]]
    return;
  if (begin >= end && begin <= header.length) {
    core_.fail(ErrorCode::invalid_range, "not a range of a ranged object", object, "begin < end",
               describe(begin, end));
  }
  core_.fail(ErrorCode::beyond_end, "the range reaches beyond the end of its object", object,
             fmt::format("at most {} bytes", header.length), describe(begin, end));
}

void RangedAccess::check_length(std::uint64_t length) const {
  if (length <= kLongest) return;
  throw Error(ErrorCode::invalid_argument, "a ranged object cannot be that long",
              {.path = core_.pool_->path(),
               .wanted = "at most " + std::to_string(kLongest) + " bytes",
               .found = std::to_string(length)});
}

template <class Visitor>
void RangedAccess::for_each_piece(std::uint32_t chunk_bytes, std::uint64_t offset,
                                  std::uint64_t bytes, Visitor&& visit) {
  const int shift = std::countr_zero(chunk_bytes);
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t at = offset + done;
    const auto from = static_cast<std::uint32_t>(at & (chunk_bytes - 1));
    const auto size =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(chunk_bytes - from, bytes - done));
    visit(Piece{at >> shift, from, size, done});
    done += size;
  }
}

// ---------------------------------------------------------------------------------------
// operations

std::uint64_t RangedAccess::create(std::uint64_t length, std::uint32_t chunk_bytes,
                                   std::uint64_t element) {
  core_.begin_ranged_operation();
  check_length(length);
  const detail::TypeInfo* const chunk_type = ranged_chunk_type(chunk_bytes);
  if (chunk_type == nullptr) {
    throw Error(ErrorCode::invalid_argument, "a ranged object cannot have chunks of that size",
                {.path = core_.pool_->path(),
                 .wanted = "a power of two from 256 to 4096",
                 .found = std::to_string(chunk_bytes)});
  }
  core_.slabs_.require_room_for(*chunk_type);
  void* storage = nullptr;
  const std::uint64_t object = core_.make(ranged_header_type(), &storage);
  auto& made = *static_cast<RangedHeader*>(storage);
  made.length = length;
  made.element = element;
  made.chunk_bytes = chunk_bytes;
  made.levels = ranged_levels(length, chunk_bytes);
  return object;
}

void RangedAccess::open(std::uint64_t object, const detail::TypeInfo& element) {
  const std::uint64_t found = header(object).element;
  if (found == element.fingerprint) return;
  core_.fail(ErrorCode::wrong_type, "the ranged object has elements of another type", object,
             describe_type(element), fmt::format("{:#x}", found));
}

// An error half-way ends the attempt, whatever the body catches: cells would name what is gone.
template <class Changes>
inline void RangedAccess::all_or_nothing(Changes&& changes) {
  try {
    changes();
  } catch (const Error&) {
    core_.refuse();
    throw;
  }
}

void RangedAccess::destroy(std::uint64_t object) {
  core_.require_locks();
  header(object);
  take_whole(object);
  all_or_nothing([&] {
    shrink(object, 0);
    core_.destroy(object, ranged_header_type());
  });
}

void RangedAccess::resize(std::uint64_t object, std::uint64_t length) {
  const std::uint64_t before = header(object).length;
  check_length(length);
  take_whole(object);
  all_or_nothing([&] {
    if (length > before) grow(object, length);
    if (length < before) shrink(object, length);
  });
}

inline void RangedAccess::take(const RangedSpace& space, const Range& range) {
  if (core_.policy_ == CommitPolicy::ideal) return;
  if (!holds_.take(*space.lock, range)) core_.conflict(SessionCore::Conflict::locked);
}

// Everything of the object, for those who change its shape.
void RangedAccess::take_whole(std::uint64_t object) {
  const RangedSpace space = core_.pool_->ranged_locks().space_of(object);
  if (holds_.is_viewed(object)) {
    core_.fail(ErrorCode::view_open, "a ranged object changes its size under a view of it", object,
               "all views closed", "one that is open in this transaction");
  }
  take(space, space.whole());
}

void RangedAccess::lock(std::uint64_t object, std::uint64_t begin, std::uint64_t end) {
  check_range(header(object), object, begin, end);
  const RangedSpace space = core_.pool_->ranged_locks().space_of(object);
  take(space, space.at(begin, end - begin));
}

// What the transaction itself writes of a chunk; null if nothing. The table of a damaged pool may
// lead to an object of another type here, or to a chunk that another cell has let go.
WriteEntry* RangedAccess::own_chunk(std::uint64_t chunk, const detail::TypeInfo& type) {
  WriteEntry* own = core_.writes_.find(chunk);
  if (own != nullptr) core_.check_own(*own, type);
  return own;
}

// The newest version of a chunk, for reading a piece of it.
const std::byte* RangedAccess::version_of(std::uint64_t chunk, const detail::TypeInfo& type,
                                          const RangedSpace& space, const Piece& piece,
                                          std::uint64_t offset) {
  if (!holds_.covers(*space.lock, space.at(offset + piece.done, piece.bytes))) {
    return core_.read_newest(chunk, type);
  }
  return core_.read_held(chunk, type, unvalidated_.emplace_back());
}

// REQUIRES: `chunk` is the piece's, or 0 for a hole.
void RangedAccess::copy_piece(const RangedHeader& header, const RangedSpace& space,
                              std::uint64_t chunk, const Piece& piece, std::uint64_t offset,
                              std::byte* to) {
  if (chunk == 0) {
    std::memset(to, 0, piece.bytes);
    return;
  }
  const detail::TypeInfo& type = *ranged_chunk_type(header.chunk_bytes);
  const WriteEntry* own = own_chunk(chunk, type);
  const std::uint32_t end = piece.from + piece.bytes;
  if (own != nullptr &&
      (own->mode != WriteMode::patch || runs_.covers(own->runs, piece.from, end))) {
    std::memcpy(to, own->copy + piece.from, piece.bytes);
    return;
  }
  const std::byte* version = version_of(chunk, type, space, piece, offset);
  std::memcpy(to, version + piece.from, piece.bytes);
  if (own == nullptr) return;
  for (const log::ByteRun& run : runs_.list(own->runs)) {
    const std::uint32_t first = std::max(run.begin, piece.from);
    const std::uint32_t last = std::min(run.end, end);
    if (first < last) std::memcpy(to + (first - piece.from), own->copy + first, last - first);
  }
}

void RangedAccess::read(std::uint64_t object, std::uint64_t offset, std::span<std::byte> to) {
  const RangedHeader& shape = header(object);
  check_range(shape, object, offset, end_of(offset, to.size()));
  const RangedSpace space = core_.pool_->ranged_locks().space_of(object);
  for_each_piece(shape.chunk_bytes, offset, to.size(), [&](const Piece& piece) {
    copy_piece(shape, space, find_chunk(object, piece.number), piece, offset,
               to.data() + piece.done);
  });
}

void RangedAccess::write_piece(std::uint64_t object, const detail::TypeInfo& type,
                               const Piece& piece, const std::byte* from) {
  const std::uint64_t chunk = find_or_make_chunk(object, piece.number);
  WriteEntry* own = own_chunk(chunk, type);
  if (own == nullptr) own = &core_.open_patch(chunk, type);
  std::memcpy(own->copy + piece.from, from, piece.bytes);
  if (own->mode == WriteMode::patch) {
    own->runs = runs_.add(own->runs, piece.from, piece.from + piece.bytes);
  }
}

void RangedAccess::write(std::uint64_t object, std::uint64_t offset,
                         std::span<const std::byte> from) {
  core_.begin_ranged_operation();
  const std::uint64_t end = end_of(offset, from.size());
  // What no object can have is not for its lock either.
  if (offset >= end || end > kLongest) [[unlikely]]
    check_range(header(object), object, offset, end);
  const RangedSpace space = core_.pool_->ranged_locks().space_of(object);
  take(space, space.at(offset, from.size()));
  const RangedHeader& shape = held_header(object);
  check_range(shape, object, offset, end);
  const detail::TypeInfo& type = *ranged_chunk_type(shape.chunk_bytes);
  all_or_nothing([&] {
    for_each_piece(shape.chunk_bytes, offset, from.size(), [&](const Piece& piece) {
      write_piece(object, type, piece, from.data() + piece.done);
    });
  });
}

void RangedAccess::fill(std::uint64_t object, std::uint64_t begin, std::uint64_t end) {
  const RangedHeader& shape = header(object);
  check_range(shape, object, begin, end);
  const std::uint32_t chunk_bytes = shape.chunk_bytes;
  all_or_nothing([&] {
    for (std::uint64_t number = begin / chunk_bytes; number <= (end - 1) / chunk_bytes; ++number) {
      find_or_make_chunk(object, number);
    }
  });
}

detail::RangedViewData RangedAccess::view(std::uint64_t object, std::uint64_t begin,
                                          std::uint64_t end) {
  const RangedHeader& shape = header(object);
  check_range(shape, object, begin, end);
  const RangedSpace space = core_.pool_->ranged_locks().space_of(object);
  const std::optional<std::uint32_t> number =
      holds_.take_view(*space.lock, space.at(begin, end - begin), object);
  if (!number) core_.conflict(SessionCore::Conflict::locked);
  detail::RangedViewData view;
  view.attempts = attempts_;
  view.attempt = attempts_->load(std::memory_order_relaxed);
  view.core = &core_;
  view.bytes = end - begin;
  view.chunk_bytes = shape.chunk_bytes;
  view.skipped = static_cast<std::uint32_t>(begin % shape.chunk_bytes);
  view.number = *number;
  const auto show = [&](const Piece& piece) {
    const std::uint64_t chunk = find_chunk(object, piece.number);
    if (chunk == 0) {
      view.parts.emplace_back(kZeros.data(), piece.bytes);
    } else if (core_.writes_.find(chunk) == nullptr) {
      // Validated even under the view's own range, which may be given up before the transaction
      // ends; but not under one that is held exclusively.
      const std::byte* version =
          version_of(chunk, *ranged_chunk_type(shape.chunk_bytes), space, piece, begin);
      view.parts.emplace_back(version + piece.from, piece.bytes);
    } else {
      auto own = std::make_unique<std::byte[]>(piece.bytes);
      copy_piece(shape, space, chunk, piece, begin, own.get());
      view.parts.emplace_back(own.get(), piece.bytes);
      view.own.push_back(std::move(own));
    }
  };
  try {
    for_each_piece(shape.chunk_bytes, begin, end - begin, show);
  } catch (const std::exception&) {  // there is no view
    holds_.release_view(*number);
    throw;
  }
  return view;
}

// -------------------------------------------------------------------------------------------
// commit

bool RangedAccess::note_patched_versions() {
  for (WriteEntry& w : core_.writes_.entries()) {
    if (w.mode != WriteMode::patch) continue;
    if (w.locked) {
      if (!mutant(Mutant::patch_completed_as_seen)) w.seen = w.entry().locked_version();
    } else {  // CommitPolicy::ideal
      w.seen = core_.observe_patiently(w.entry());
    }
    if (w.place.is_free(w.seen)) {
      core_.note_conflict(SessionCore::Conflict::changed);
      return false;
    }
  }
  return true;
}

void RangedAccess::complete_patches() noexcept {
  for (WriteEntry& w : core_.writes_.entries()) {
    if (w.mode != WriteMode::patch) continue;
    emu::touch(emu::Line::version, w.offset, emu::Access::load, w.size8);
    const std::byte* version = w.seen.at_home() ? core_.view_ + w.offset : w.seen.version();
    std::uint32_t at = 0;
    for (const log::ByteRun& run : runs_.list(w.runs)) {
      std::memcpy(w.copy + at, version + at, run.begin - at);
      at = run.end;
    }
    std::memcpy(w.copy + at, version + at, w.size8 - at);
  }
}

void RangedAccess::end_attempt() noexcept {
  holds_.release();
  runs_.clear();
  unvalidated_.clear();
  cursor_ = {};
  void_views();
}

void RangedAccess::void_views() noexcept {
  attempts_->store(attempts_->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void RangedAccess::close_view(std::uint32_t number) noexcept {
  if (!core_.pool_->was_inherited()) holds_.release_view(number);
}

}  // namespace sp3::runtime

namespace sp3::detail {

std::uint64_t ranged_create(runtime::SessionCore& core, std::uint64_t length,
                            std::uint32_t chunk_bytes, std::uint64_t element) {
  return core.operate([&] { return core.ranged().create(length, chunk_bytes, element); });
}
void ranged_open(runtime::SessionCore& core, std::uint64_t object, const TypeInfo& element) {
  core.operate([&] { core.ranged().open(object, element); });
}
void ranged_destroy(runtime::SessionCore& core, std::uint64_t object) {
  core.operate([&] { core.ranged().destroy(object); });
}
std::uint64_t ranged_size(runtime::SessionCore& core, std::uint64_t object) {
  return core.operate([&] { return core.ranged().size(object); });
}
void ranged_read(runtime::SessionCore& core, std::uint64_t object, std::uint64_t offset,
                 std::span<std::byte> to) {
  core.operate([&] { core.ranged().read(object, offset, to); });
}
void ranged_write(runtime::SessionCore& core, std::uint64_t object, std::uint64_t offset,
                  std::span<const std::byte> from) {
  core.operate([&] { core.ranged().write(object, offset, from); });
}
void ranged_lock(runtime::SessionCore& core, std::uint64_t object, std::uint64_t begin,
                 std::uint64_t end) {
  core.operate([&] { core.ranged().lock(object, begin, end); });
}
void ranged_fill(runtime::SessionCore& core, std::uint64_t object, std::uint64_t begin,
                 std::uint64_t end) {
  core.operate([&] { core.ranged().fill(object, begin, end); });
}
void ranged_resize(runtime::SessionCore& core, std::uint64_t object, std::uint64_t length) {
  core.operate([&] { core.ranged().resize(object, length); });
}
RangedViewData ranged_view(runtime::SessionCore& core, std::uint64_t object, std::uint64_t begin,
                           std::uint64_t end) {
  return core.operate([&] { return core.ranged().view(object, begin, end); });
}
std::string ranged_check(runtime::SessionCore& core, std::uint64_t object) {
  return core.operate([&] { return core.ranged().check(object); });
}
void ranged_close_view(runtime::SessionCore& core, std::uint32_t number) noexcept {
  core.ranged().close_view(number);
}
void ranged_view_expired() {
  throw Error(ErrorCode::view_expired, "the view of a ranged object is not open",
              {.wanted = "a view of the transaction in progress",
               .found = "one that was closed, whose transaction has ended, or that never was"});
}
void ranged_view_exceeded(std::uint64_t offset, std::uint64_t bytes, std::uint64_t size) {
  throw Error(ErrorCode::beyond_end, "the range reaches beyond the end of the view",
              {.wanted = fmt::format("at most {} bytes", size),
               .found = runtime::describe(offset, runtime::end_of(offset, bytes))});
}

}  // namespace sp3::detail

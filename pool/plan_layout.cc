// Planning a pool: what its creator left open is chosen here.
//
// A plan is made front to back: the log first (its size decides how many sessions make sense), then
// the segments, the sessions, and the slabs from what is left. All arithmetic is on sizes of at
// most kMaxPoolSize, which is checked first, so sums and small multiples of them cannot overflow.
#include "pool/layout.h"

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sp3/error.h>

#include "base/align.h"
#include "base/assert.h"

namespace sp3::pool {
namespace {

using base::is_power_of_two;
using base::round_down;
using base::round_up;

constexpr std::uint64_t kMaxDefaultLog = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxDefaultSegment = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxDefaultSlab = std::uint64_t{2} << 20;
constexpr std::uint64_t kMaxDefaultSessions = 256;  // the library's own included
// So many that a session that takes a few does not empty the log.
constexpr std::uint64_t kDefaultSegments = 64;
// So many that a few dozen types fit even in a small pool.
constexpr std::uint64_t kDefaultSlabs = 32;

// What plan_layout tells as an Error, which knows of the file.
struct Refusal {
  std::string_view option;
  std::string wanted;
  std::uint64_t found;
};

[[noreturn]] void refuse(std::string_view option, std::string wanted, std::uint64_t found) {
  throw Refusal{option, std::move(wanted), found};
}

std::string at_most(std::uint64_t bytes, std::uint64_t size) {
  return fmt::format("at most {} in a pool of {} bytes", bytes, size);
}

// The largest number of slabs that fits in `room` bytes together with both directory copies.
std::uint64_t slabs_in(std::uint64_t room, std::uint64_t slab_size) {
  // Rounding a directory copy up to a block costs at most two slabs against this bound.
  std::uint64_t slabs = room / (slab_size + 2 * sizeof(SlabRecord));
  while (slabs > 0 && 2 * directory_bytes(slabs) + slabs * slab_size > room) --slabs;
  return slabs;
}

void check_each_option(std::uint64_t size, const Geometry& geometry) {
  if (size < kMinPoolSize || size > kMaxPoolSize) {
    refuse("size", fmt::format("{} to {} bytes", kMinPoolSize, kMaxPoolSize), size);
  }
  if (geometry.segment_size != 0 &&
      (geometry.segment_size < kMinSegmentSize || !is_power_of_two(geometry.segment_size))) {
    refuse("segment_size", fmt::format("a power of two of at least {}", kMinSegmentSize),
           geometry.segment_size);
  }
  if (kMinSegments * std::uint64_t{geometry.segment_size} >= size) {
    refuse("segment_size", at_most(std::bit_floor(size / kMinSegments / 2), size),
           geometry.segment_size);
  }
  if (geometry.slab_size != 0 &&
      (geometry.slab_size < kMinSlabSize || !is_power_of_two(geometry.slab_size))) {
    refuse("slab_size", fmt::format("a power of two of at least {}", kMinSlabSize),
           geometry.slab_size);
  }
  if (geometry.max_sessions > kMaxUserSessions) {
    refuse("max_sessions", fmt::format("1 to {}", kMaxUserSessions), geometry.max_sessions);
  }
  if (geometry.log_size > size) {
    refuse("log_size", fmt::format("less than the pool, which has {} bytes", size),
           geometry.log_size);
  }
}

std::uint64_t choose_log_size(std::uint64_t size, const Geometry& geometry) {
  const std::uint64_t segment = std::max(geometry.segment_size, kMinSegmentSize);
  const std::uint64_t least = kMinSegments * segment;
  if (geometry.log_size == 0) return std::max(std::min(size / 4, kMaxDefaultLog), least);
  if (geometry.log_size < least) {
    refuse("log_size", fmt::format("at least {} segments, {} bytes", kMinSegments, least),
           geometry.log_size);
  }
  return geometry.log_size;
}

std::uint64_t choose_segment_size(std::uint64_t log_size, const Geometry& geometry) {
  std::uint64_t segment = geometry.segment_size;
  if (segment == 0) {
    const std::uint64_t sessions = std::uint64_t{geometry.max_sessions} + kOwnSessions;
    const std::uint64_t segments = std::max(kDefaultSegments, 2 * sessions);
    segment = std::bit_floor(std::max<std::uint64_t>(log_size / segments, 1));
    segment = std::clamp<std::uint64_t>(segment, kMinSegmentSize, kMaxDefaultSegment);
  }
  if (log_size / segment > kMaxCount) {
    refuse("segment_size", fmt::format("at least {}", std::bit_ceil(log_size / kMaxCount + 1)),
           segment);
  }
  return segment;
}

// The library's own included. Every session needs a log segment.
std::uint64_t choose_sessions(std::uint64_t segments, const Geometry& geometry) {
  if (geometry.max_sessions == 0) {
    return std::clamp<std::uint64_t>(segments / 2, kOwnSessions + 1, kMaxDefaultSessions);
  }
  // Segments are at least kMinSegments.
  const std::uint64_t most = segments - kOwnSessions;
  if (geometry.max_sessions > most) {
    refuse("max_sessions",
           fmt::format("at most {} (each needs one of {} log segments, and the library {} itself)",
                       most, segments, kOwnSessions),
           geometry.max_sessions);
  }
  return geometry.max_sessions + kOwnSessions;
}

// There is no room for a single slab: names an option that asks for too much, and the most that it
// can be while the others are as they are, or, if the log's size was left open, as they would be.
[[noreturn]] void refuse_for_space(const Layout& layout, std::uint64_t slab_size,
                                   const Geometry& geometry) {
  const std::uint64_t rest = 2 * layout.superblock_bytes + 2 * directory_bytes(1);
  const std::uint64_t segment = std::max(geometry.segment_size, kMinSegmentSize);
  const std::uint64_t least_log = kMinSegments * segment;
  const std::uint64_t log = geometry.log_size == 0 ? layout.log_bytes : least_log;
  const auto fits = [&](std::uint64_t log_bytes, std::uint64_t slab) {
    return rest + log_bytes + slab <= layout.size;
  };
  if (geometry.slab_size != 0 && !fits(log, slab_size) && fits(log, kMinSlabSize)) {
    refuse("slab_size",
           at_most(std::bit_floor(layout.size - rest - log), layout.size) +
               fmt::format(" with a log of {}", log),
           geometry.slab_size);
  }
  if (fits(least_log, slab_size)) {
    SP3_ASSERT(geometry.log_size != 0);
    refuse("log_size", at_most(layout.size - rest - slab_size, layout.size), geometry.log_size);
  }
  // The smallest slab and the smallest segments fit into a pool of any size.
  SP3_ASSERT(geometry.segment_size != 0);
  refuse("segment_size",
         at_most(std::bit_floor((layout.size - rest - kMinSlabSize) / kMinSegments), layout.size),
         geometry.segment_size);
}

void place(Layout& layout) {
  layout.directory_offset[0] = 2 * layout.superblock_bytes;
  layout.directory_offset[1] = layout.directory_offset[0] + layout.directory_bytes;
  layout.log_offset = layout.directory_offset[1] + layout.directory_bytes;
  layout.slabs_offset = layout.log_offset + layout.log_bytes;
  SP3_CHECK(layout.slabs_offset + std::uint64_t{layout.slabs} * layout.slab_size <= layout.size);
}

Layout plan(std::uint64_t size, const Geometry& geometry) {
  check_each_option(size, geometry);
  const std::uint64_t log_size = choose_log_size(size, geometry);
  const std::uint64_t segment_size = choose_segment_size(log_size, geometry);

  Layout layout;
  layout.size = size;
  layout.segment_size = static_cast<std::uint32_t>(segment_size);
  layout.log_bytes = round_down(log_size, segment_size);
  layout.segments = static_cast<std::uint32_t>(layout.log_bytes / segment_size);
  layout.max_sessions = static_cast<std::uint32_t>(choose_sessions(layout.segments, geometry));
  layout.superblock_bytes = superblock_bytes(layout.max_sessions);

  const std::uint64_t taken = 2 * layout.superblock_bytes + layout.log_bytes;
  const std::uint64_t room = taken < size ? size - taken : 0;
  std::uint64_t slab_size = geometry.slab_size;
  if (slab_size == 0) {
    slab_size = std::bit_floor(std::max<std::uint64_t>(room / kDefaultSlabs, 1));
    slab_size = std::clamp<std::uint64_t>(slab_size, kMinSlabSize, kMaxDefaultSlab);
  }
  const std::uint64_t slabs = slabs_in(room, slab_size);
  if (slabs == 0) refuse_for_space(layout, slab_size, geometry);
  if (slabs > kMaxCount) {
    refuse("slab_size", fmt::format("at least {}", std::bit_ceil(room / kMaxCount + 1)), slab_size);
  }
  layout.slab_size = static_cast<std::uint32_t>(slab_size);
  layout.slabs = static_cast<std::uint32_t>(slabs);
  layout.directory_bytes = directory_bytes(slabs);
  place(layout);
  return layout;
}

}  // namespace

Layout plan_layout(std::uint64_t size, const Geometry& geometry, const std::string& path) {
  try {
    return plan(size, geometry);
  } catch (const Refusal& refusal) {
    throw Error(ErrorCode::invalid_argument, fmt::format("impossible {}", refusal.option),
                {.path = path, .wanted = refusal.wanted, .found = std::to_string(refusal.found)});
  }
}

}  // namespace sp3::pool

// The layout that a superblock describes, believing nothing that it says.
//
// The checks go from the fields on their own to their relations; each step relies on the ones
// before it. pool_size is at most kMaxPoolSize once the first step has passed, so that sums and
// small multiples of offsets inside the file cannot overflow.
#include "pool/layout.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <sp3/error.h>

#include "base/align.h"
#include "base/assert.h"

namespace sp3::pool {

std::uint64_t Layout::max_object() const {
  // One slot of everything behind two one-line bitmaps.
  return slab_size - 2 * base::kCacheLine;
}

namespace {

using base::is_power_of_two;

constexpr std::size_t extent_index(ExtentKind kind) { return static_cast<std::size_t>(kind) - 1; }

const Extent& extent_of(const Superblock& superblock, ExtentKind kind) {
  return superblock.extents[extent_index(kind)];
}

constexpr std::uint64_t extent_field(std::size_t index) {
  return offsetof(Superblock, extents) + index * sizeof(Extent);
}

LayoutProblem problem(std::uint64_t offset, std::string field, std::string wanted,
                      std::uint64_t found) {
  return {offset, std::move(field), std::move(wanted), std::to_string(found)};
}

std::optional<LayoutProblem> find_problem_of_sizes(const Superblock& s) {
  if (s.pool_size < kMinPoolSize || s.pool_size > kMaxPoolSize) {
    return problem(offsetof(Superblock, pool_size), "pool_size",
                   fmt::format("{} to {}", kMinPoolSize, kMaxPoolSize), s.pool_size);
  }
  if (s.max_sessions == 0 || s.max_sessions > kMaxSessions) {
    return problem(offsetof(Superblock, max_sessions), "max_sessions",
                   fmt::format("1 to {}", kMaxSessions), s.max_sessions);
  }
  if (s.copy_bytes != superblock_bytes(s.max_sessions)) {
    return problem(offsetof(Superblock, copy_bytes), "copy_bytes",
                   std::to_string(superblock_bytes(s.max_sessions)), s.copy_bytes);
  }
  if (s.segment_size < kMinSegmentSize || !is_power_of_two(s.segment_size)) {
    return problem(offsetof(Superblock, segment_size), "segment_size",
                   fmt::format("a power of two of at least {}", kMinSegmentSize), s.segment_size);
  }
  if (s.slab_size < kMinSlabSize || !is_power_of_two(s.slab_size)) {
    return problem(offsetof(Superblock, slab_size), "slab_size",
                   fmt::format("a power of two of at least {}", kMinSlabSize), s.slab_size);
  }
  return std::nullopt;
}

// Each extent on its own: of the right kind for its place, aligned, not empty, inside the file.
// Format 1 keeps extent k of the table for kind k + 1, so that there is exactly one of each.
std::optional<LayoutProblem> find_problem_of_extents(const Superblock& s) {
  for (std::size_t i = 0; i < s.extents.size(); ++i) {
    const Extent& extent = s.extents[i];
    const bool used = i <= extent_index(ExtentKind::slabs);
    const std::uint32_t kind = used ? static_cast<std::uint32_t>(i + 1) : 0;
    const std::string name = fmt::format("extents[{}]", i);
    if (extent.kind != kind || extent.reserved != 0) {
      return problem(extent_field(i), name + ".kind", std::to_string(kind), extent.kind);
    }
    if (!used) {
      if (extent.offset == 0 && extent.length == 0) continue;
      return problem(extent_field(i), name, "zeros", extent.offset | extent.length);
    }
    if (extent.offset % kBlock != 0 || extent.offset >= s.pool_size) {
      return problem(extent_field(i) + offsetof(Extent, offset), name + ".offset",
                     fmt::format("a multiple of {} below {}", kBlock, s.pool_size), extent.offset);
    }
    if (extent.length == 0 || extent.length > s.pool_size - extent.offset) {
      return problem(extent_field(i) + offsetof(Extent, length), name + ".length",
                     fmt::format("1 to {}", s.pool_size - extent.offset), extent.length);
    }
  }
  return std::nullopt;
}

std::optional<LayoutProblem> find_overlap(const Superblock& s) {
  const std::size_t used = extent_index(ExtentKind::slabs) + 1;
  for (std::size_t i = 0; i < used; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Extent& a = s.extents[i];
      const Extent& b = s.extents[j];
      // The sums are at most pool_size: find_problem_of_extents has passed.
      if (a.offset + a.length <= b.offset || b.offset + b.length <= a.offset) continue;
      return problem(extent_field(i) + offsetof(Extent, offset),
                     fmt::format("extents[{}].offset", i), fmt::format("outside extents[{}]", j),
                     a.offset);
    }
  }
  return std::nullopt;
}

// Lengths against the counts that follow from them.
std::optional<LayoutProblem> find_problem_of_counts(const Superblock& s) {
  const auto length_of = [&s](ExtentKind kind, std::string wanted) {
    const std::size_t i = extent_index(kind);
    return problem(extent_field(i) + offsetof(Extent, length), fmt::format("extents[{}].length", i),
                   std::move(wanted), s.extents[i].length);
  };
  const Extent& superblocks = extent_of(s, ExtentKind::superblocks);
  if (superblocks.offset != 0) {
    return problem(extent_field(0) + offsetof(Extent, offset), "extents[0].offset", "0",
                   superblocks.offset);
  }
  if (superblocks.length != 2 * std::uint64_t{s.copy_bytes}) {
    return length_of(ExtentKind::superblocks, std::to_string(2 * std::uint64_t{s.copy_bytes}));
  }
  const std::uint64_t log = extent_of(s, ExtentKind::log).length;
  if (log % s.segment_size != 0 || log / s.segment_size < kMinSegments ||
      log / s.segment_size > kMaxCount) {
    return length_of(ExtentKind::log, fmt::format("{} to {} segments of {}", kMinSegments,
                                                  kMaxCount, s.segment_size));
  }
  const std::uint64_t slabs = extent_of(s, ExtentKind::slabs).length;
  if (slabs % s.slab_size != 0 || slabs / s.slab_size > kMaxCount) {
    return length_of(ExtentKind::slabs, fmt::format("1 to {} slabs of {}", kMaxCount, s.slab_size));
  }
  const std::uint64_t directory = 2 * directory_bytes(slabs / s.slab_size);
  if (extent_of(s, ExtentKind::directory).length != directory) {
    return length_of(ExtentKind::directory, std::to_string(directory));
  }
  return std::nullopt;
}

}  // namespace

std::optional<LayoutProblem> find_layout_problem(const Superblock& superblock) {
  // Each step relies on the ones before it.
  if (auto found = find_problem_of_sizes(superblock)) return found;
  if (auto found = find_problem_of_extents(superblock)) return found;
  if (auto found = find_overlap(superblock)) return found;
  return find_problem_of_counts(superblock);
}

Layout layout_of(const Superblock& superblock, const std::string& path) {
  if (const auto found = find_layout_problem(superblock)) {
    ErrorFacts facts;
    facts.path = path;
    facts.offset = found->offset;
    facts.wanted = found->wanted;
    facts.found = found->found;
    throw Error(ErrorCode::damaged_superblock,
                fmt::format("the superblock's {} cannot be true", found->field), std::move(facts));
  }
  Layout layout;
  layout.size = superblock.pool_size;
  layout.superblock_bytes = superblock.copy_bytes;
  const Extent& directory = extent_of(superblock, ExtentKind::directory);
  layout.directory_bytes = directory.length / 2;
  layout.directory_offset[0] = directory.offset;
  layout.directory_offset[1] = directory.offset + layout.directory_bytes;
  const Extent& log = extent_of(superblock, ExtentKind::log);
  layout.log_offset = log.offset;
  layout.log_bytes = log.length;
  const Extent& slabs = extent_of(superblock, ExtentKind::slabs);
  layout.slabs_offset = slabs.offset;
  layout.segment_size = superblock.segment_size;
  layout.slab_size = superblock.slab_size;
  layout.max_sessions = superblock.max_sessions;
  layout.segments = static_cast<std::uint32_t>(log.length / superblock.segment_size);
  layout.slabs = static_cast<std::uint32_t>(slabs.length / superblock.slab_size);
  return layout;
}

void describe(const Layout& layout, Superblock& superblock) {
  superblock.copy_bytes = static_cast<std::uint32_t>(layout.superblock_bytes);
  superblock.pool_size = layout.size;
  superblock.max_sessions = layout.max_sessions;
  superblock.segment_size = layout.segment_size;
  superblock.slab_size = layout.slab_size;
  superblock.extents = {};
  const auto set = [&superblock](ExtentKind kind, std::uint64_t offset, std::uint64_t length) {
    superblock.extents[extent_index(kind)] = {static_cast<std::uint32_t>(kind), 0, offset, length};
  };
  set(ExtentKind::superblocks, 0, 2 * layout.superblock_bytes);
  set(ExtentKind::directory, layout.directory_offset[0], 2 * layout.directory_bytes);
  set(ExtentKind::log, layout.log_offset, layout.log_bytes);
  set(ExtentKind::slabs, layout.slabs_offset, std::uint64_t{layout.slabs} * layout.slab_size);
  SP3_ASSERT(!find_layout_problem(superblock));
}

}  // namespace sp3::pool

// Layout: where everything is in one particular pool file, and the checks that an offset read from
// it must pass.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <sp3/options.h>

#include "pool/format.h"

namespace sp3::pool {

inline constexpr std::uint64_t kMinPoolSize = std::uint64_t{64} * 1024;
// Two mappings fit in the 47 bits of address space that are there, where the program lies at two
// thirds of them.
inline constexpr std::uint64_t kMaxPoolSize = std::uint64_t{1} << 45;
// One is recycled while the other is written.
inline constexpr std::uint32_t kMinSegments = 2;
// Segments, and slabs, are numbered in 32 bits.
inline constexpr std::uint64_t kMaxCount = std::numeric_limits<std::uint32_t>::max();

struct Layout {
  std::uint64_t size = 0;              // bytes of the file
  std::uint64_t superblock_bytes = 0;  // of one copy; copy A at 0, copy B behind it
  std::uint64_t directory_offset[2] = {0, 0};
  std::uint64_t directory_bytes = 0;  // of one copy
  std::uint64_t log_offset = 0;
  std::uint64_t log_bytes = 0;
  std::uint64_t slabs_offset = 0;
  std::uint32_t segment_size = 0;
  std::uint32_t slab_size = 0;
  std::uint32_t max_sessions = 0;  // the library's own included
  std::uint32_t segments = 0;
  std::uint32_t slabs = 0;

  [[nodiscard]] std::uint64_t superblock_offset(int copy) const {
    return static_cast<std::uint64_t>(copy) * superblock_bytes;
  }
  [[nodiscard]] std::uint64_t segment_offset(std::uint32_t segment) const {
    return log_offset + static_cast<std::uint64_t>(segment) * segment_size;
  }
  [[nodiscard]] std::uint64_t slab_offset(std::uint32_t slab) const {
    return slabs_offset + static_cast<std::uint64_t>(slab) * slab_size;
  }
  [[nodiscard]] std::uint64_t slabs_bytes() const {
    return static_cast<std::uint64_t>(slabs) * slab_size;
  }
  [[nodiscard]] bool in_slabs(std::uint64_t offset) const {
    return offset >= slabs_offset && offset - slabs_offset < slabs_bytes();
  }
  // REQUIRES: in_slabs(offset).
  [[nodiscard]] std::uint32_t slab_of(std::uint64_t offset) const {
    return static_cast<std::uint32_t>((offset - slabs_offset) / slab_size);
  }
  // The largest object a slab can hold.
  [[nodiscard]] std::uint64_t max_object() const;
};

// Chooses what `geometry` leaves open for a pool of `size` bytes and lays it out, with room for the
// library's own session beside those that `geometry` asks for.
// `path`: of the file that it is for, if there is one.
// Errors: invalid_argument with the option, what it allows and what was given.
Layout plan_layout(std::uint64_t size, const Geometry& geometry, const std::string& path = {});

// The first of a superblock's numbers that cannot be true.
struct LayoutProblem {
  std::uint64_t offset = 0;  // of the field, from the start of the superblock copy
  std::string field;
  std::string wanted;
  std::string found;
};
std::optional<LayoutProblem> find_layout_problem(const Superblock& superblock);

// The layout a superblock describes. Errors: damaged_superblock if its numbers contradict each
// other (offset: of the field, in copy A).
Layout layout_of(const Superblock& superblock, const std::string& path);

// Writes the layout into a superblock's geometry fields and extents.
void describe(const Layout& layout, Superblock& superblock);

}  // namespace sp3::pool

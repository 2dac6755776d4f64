// RangedLocks: the range locks of a pool's ranged objects: a small table, found by the object's
// Ptr.
//
// An object has no lock of its own. Its Ptr is hashed to one of a few locks and to a base in that
// lock's 64-bit address space:
//
//     63            44 43                                 0
//    +----------------+------------------------------------+
//    | from the Ptr   |  offset of the byte in the object   |
//    +----------------+------------------------------------+
//
// Two objects that get the same lock and the same base exclude each other where their ranges
// overlap: they wait without need, and nothing else. So no lock has to be made, counted or freed
// with an object.
//
// Thread safety: any thread. Lifetime: as long as the pool; made when the first range is taken.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <sp3/options.h>
#include <sp3/range_lock.h>

namespace sp3::runtime {

inline constexpr unsigned kRangedLengthBits = 44;

// An object's part of a lock.
struct RangedSpace {
  BlockingRangeLock* lock = nullptr;
  std::uint64_t base = 0;

  [[nodiscard]] Range at(std::uint64_t offset, std::uint64_t bytes) const {
    return {base + offset, base + offset + bytes};
  }
  // What no range of the object is outside of.
  [[nodiscard]] Range whole() const {
    // One less, so that the last base's range ends at kRangeMax; an object is never that long.
    return {base, base + ((std::uint64_t{1} << kRangedLengthBits) - 1)};
  }
};

class RangedLocks {
 public:
  // `owners`: sessions that may be open at a time. Errors: std::bad_alloc.
  RangedLocks(RangeLockKind kind, std::size_t owners);

  [[nodiscard]] RangeLockDomain& domain() noexcept { return domain_; }
  [[nodiscard]] RangedSpace space_of(std::uint64_t object) noexcept;

 private:
  static constexpr std::size_t kLocks = 16;

  RangeLockDomain domain_;
  std::array<std::unique_ptr<SkiplistRangeLock>, kLocks> skiplists_;
  std::array<std::unique_ptr<GridRangeLock>, kLocks> grids_;
};

}  // namespace sp3::runtime

// What the locks that the range locks are compared with share.
//
// They owe less than the library's: try_lock and unlock, and the shared mode where their source has
// it. Each is written from its paper's description, with the same care for memory as ours, so that
// what is compared is algorithms.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sp3/range_lock.h>

namespace sp3::workloads {

// Where a lock keeps something for each owner: up to 1024 threads, who holds ranges meanwhile, who
// looks.
inline constexpr std::size_t kMostOwners = 1026;

// A held range, or nothing.
struct RivalToken {
  Range range;
  RangeMode mode = RangeMode::exclusive;
  rangelock::OwnerCore* owner = nullptr;
  void* place = nullptr;
  bool held = false;

  explicit operator bool() const noexcept { return held; }
};

// Of those that block whole units only: what they cover, and the unit.
struct RivalSpace {
  std::uint64_t bytes = std::uint64_t{64} << 20;
  std::uint64_t unit = 1024;
};

}  // namespace sp3::workloads

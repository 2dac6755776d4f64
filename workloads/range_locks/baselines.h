// The two ends of the scale: no lock at all, and the least that can exclude.
#pragma once

#include <atomic>
#include <bit>
#include <memory>

#include "base/align.h"
#include "workloads/range_locks/rival.h"

namespace sp3::workloads {

// Excludes nobody: what the rest of a benchmark's loop costs.
class NoLock {
 public:
  RivalToken try_lock(RangeOwner&, std::uint64_t begin, std::uint64_t end) {
    return {.range = {begin, end}, .held = true};
  }
  void unlock(const RivalToken&) {}
};

// One CAS to lock and one store to unlock, on the cache line that the range's unit hashes to.
// Ranges that share a line exclude each other, and a range is taken to lie within its unit: the
// floor for the grid, not a lock to use.
class BareLock {
 public:
  // REQUIRES: a power of two of buckets, at least 2.
  BareLock(const RivalSpace& space, std::size_t buckets)
      : shift_(static_cast<unsigned>(std::countr_zero(space.unit))),
        hash_shift_(64 - static_cast<unsigned>(std::countr_zero(buckets))),
        buckets_(std::make_unique<Bucket[]>(buckets)) {}

  RivalToken try_lock(RangeOwner&, std::uint64_t begin, std::uint64_t end) {
    Bucket& bucket = buckets_[((begin >> shift_) * 0x9E3779B97F4A7C15ULL) >> hash_shift_];
    std::uint64_t expected = 0;
    // acquire pairs with the release in unlock.
    const bool held = bucket.locked.compare_exchange_strong(expected, 1, std::memory_order_acquire,
                                                            std::memory_order_relaxed);
    return {.range = {begin, end}, .place = &bucket, .held = held};
  }
  void unlock(const RivalToken& token) {
    static_cast<Bucket*>(token.place)->locked.store(0, std::memory_order_release);
  }

 private:
  struct alignas(base::kCacheLine) Bucket {
    std::atomic<std::uint64_t> locked{0};
  };
  const unsigned shift_, hash_shift_;
  std::unique_ptr<Bucket[]> buckets_;
};
static_assert(RangeLock<NoLock> && RangeLock<BareLock>);

}  // namespace sp3::workloads

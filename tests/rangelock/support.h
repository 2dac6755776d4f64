// What the range-lock tests share: how each lock is made, and the oracle that watches exclusion.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include <sp3/range_lock.h>

#include "workloads/range_locks/blocks.h"
#include "workloads/range_locks/combiner.h"
#include "workloads/range_locks/list.h"
#include "workloads/range_locks/spin_skiplist.h"
#include "workloads/range_locks/tree.h"
#include "workloads/rng.h"

namespace sp3::tests {

// All addresses that tests of rivals use are below this, because some cover no more.
inline constexpr std::uint64_t kSpace = 1024;

template <class Lock>
inline constexpr bool kIsOurs = std::is_base_of_v<BlockingRangeLock, Lock>;
template <class Lock>
inline constexpr bool kCoversAll =
    !std::is_same_v<Lock, workloads::BitmapLock> && !std::is_same_v<Lock, workloads::SegmentsLock>;
// The largest end that the lock takes.
template <class Lock>
inline constexpr std::uint64_t kEnd = kCoversAll<Lock> ? kRangeMax : kSpace;
template <class Lock>
inline constexpr bool kHasShared = requires(Lock& lock, RangeOwner& owner) {
  lock.try_lock_shared(owner, 0, 1);
};

// Granules of 16 addresses in 64 buckets: tests meet narrow, double, wide and overflowing ranges.
inline RangeLockOptions small_grid(RangeLockOptions options = {}) {
  options.granule = 16;
  options.buckets = 64;
  return options;
}

template <class Lock>
std::unique_ptr<Lock> make_lock(const RangeLockOptions& options = {}) {
  if constexpr (kIsOurs<Lock>) {
    return std::make_unique<Lock>(small_grid(options));
  } else if constexpr (kCoversAll<Lock>) {
    return std::make_unique<Lock>();
  } else {
    return std::make_unique<Lock>(workloads::RivalSpace{kSpace, 1});
  }
}

template <class Lock>
auto try_lock(Lock& lock, std::uint64_t begin, std::uint64_t end,
              RangeMode mode = RangeMode::exclusive) {
  RangeOwner& owner = RangeOwner::this_thread();
  if constexpr (kHasShared<Lock>) {
    if (mode == RangeMode::shared) return lock.try_lock_shared(owner, begin, end);
  }
  return lock.try_lock(owner, begin, end);
}

// Whether the range is free now.
template <class Lock>
bool is_free(Lock& lock, std::uint64_t begin, std::uint64_t end,
             RangeMode mode = RangeMode::exclusive) {
  auto token = try_lock(lock, begin, end, mode);
  if (!token) return false;
  lock.unlock(std::move(token));
  return true;
}

// Knows who may be where: a counter for each address, -1 for a writer. Ends are cut to kSpace.
class ExclusionOracle {
 public:
  void enter(const Range& range, RangeMode mode) {
    for_each(range, [&](std::atomic<int>& inside) {
      const int before = inside.fetch_add(step(mode), std::memory_order_relaxed);
      if (mode == RangeMode::exclusive ? before != 0 : before < 0) violations_.fetch_add(1);
    });
  }
  void leave(const Range& range, RangeMode mode) {
    for_each(range, [&](std::atomic<int>& inside) {
      inside.fetch_sub(step(mode), std::memory_order_relaxed);
    });
  }
  [[nodiscard]] std::uint64_t violations() const { return violations_.load(); }

 private:
  static constexpr int kWriter = -(1 << 20);
  static int step(RangeMode mode) { return mode == RangeMode::exclusive ? kWriter : 1; }
  template <class Visit>
  void for_each(const Range& range, Visit&& visit) {
    const std::uint64_t end = std::min(range.end, kSpace);
    for (std::uint64_t at = range.begin; at < end; ++at) visit(inside_[at]);
  }
  std::array<std::atomic<int>, kSpace> inside_{};
  std::atomic<std::uint64_t> violations_{0};
};

template <class Work>
void run_threads(unsigned count, Work&& work) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

// Waits for something that another thread is about to do.
template <class Condition>
void wait_until(Condition&& condition) {
  while (!condition()) std::this_thread::yield();
}

}  // namespace sp3::tests

#define SP3_ALL_RANGE_LOCKS                                                             \
  sp3::SkiplistRangeLock, sp3::GridRangeLock, sp3::workloads::BitmapLock,               \
      sp3::workloads::SegmentsLock, sp3::workloads::ListLock, sp3::workloads::TreeLock, \
      sp3::workloads::SpinSkiplistLock, sp3::workloads::CombinerLock
#define SP3_OUR_RANGE_LOCKS sp3::SkiplistRangeLock, sp3::GridRangeLock

// WaitQueue: the acquisitions that sleep, in the order they came.
//
// A waiter notes the range that blocks it. An unlocker looks at one counter; only if somebody waits
// it takes the mutex and wakes the first waiters that its range blocked, but none that conflicts
// with one it has just woken: that one is passed over, and now blocked by the other.
//
// Thread safety: all members by any thread; a Waiter belongs to the thread that waits.
// Invariants:
//   1. A waiter sleeps only after an attempt that failed because of its blocker, made after it
//      noted that blocker: the blocker's unlock then finds it.
//      One that was passed over has made no such attempt: it is woken if the other leaves without
//      the range, or has to sleep again.
//   2. A waiter that leaves without the range wakes those that it blocked.
//   3. Who holds a part of its batch already waits behind nobody, and so is never passed over: the
//      one before it may be waiting for that part.
//   4. An attempt that retreats wakes only those who took it for held; so waiters for what is held
//      fall asleep, however often their attempts meet each other.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include <sp3/range_lock.h>

#include "base/align.h"
#include "base/atomic.h"
#include "base/cold_mutex.h"
#include "rangelock/domain.h"

namespace sp3::rangelock {

class WaitQueue {
 public:
  using Clock = std::chrono::steady_clock;

  struct Waiter {
    Waiter(const OwnerCore& in, const Range& wanted, RangeMode in_mode, bool behind_elders)
        : owner(in),
          range(wanted),
          mode(in_mode),
          may_be_passed_over(behind_elders),
          since(Clock::now()) {}
    [[nodiscard]] Blocker as_blocker() const noexcept { return {range, mode}; }
    const OwnerCore& owner;
    const Range range;
    const RangeMode mode;
    const bool may_be_passed_over;  // see invariant 3
    const Clock::time_point since;
    base::Atomic<std::uint32_t> woken{0};
    Blocker blocker{};         // guarded by the queue's mutex, like all below
    bool passed_over = false;  // and has not tried since
    Waiter* prev = nullptr;
    Waiter* next = nullptr;
  };

  // Enqueues. From now on unlocks find the waiter, once it has set its blocker.
  void enter(Waiter& waiter);
  // REQUIRES: entered.
  void leave(Waiter& waiter, bool with_range);
  // Notes what blocks the waiter; true if that was noted before, and nothing woke it since.
  bool set_blocker(Waiter& waiter, const Blocker& blocker);
  // If someone who came before `waiter` (anyone, for nullptr) wants a range that conflicts with one
  // of `ranges`: notes that as the blocker. Else false.
  bool find_elder(std::span<const Range> ranges, RangeMode mode, Waiter* waiter, Blocker& blocker);
  // Until woken, or the deadline (nullptr: none).
  static void sleep(Waiter& waiter, const Clock::time_point* deadline);
  static void wake(Waiter& waiter);

  // After a range was unlocked, ordered by a full or a light fence.
  void released(Range range) noexcept {
    // seq_cst, store buffering: pairs with enter(), which counts before the attempt that can fail.
    if (waiting_.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      wake_blocked_by(range.begin, range.end);
  }
  // The same after a range was seen in a lock, and its owner could not have it. Wakes only those
  // who took it for held: an attempt that retreats must not wake its own waiter, nor another that
  // waits for the same and will retreat too, or they would wake each other for ever.
  void retreated(const Blocker& seen) noexcept {
    if (waiting_.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      wake_misled_by(seen);
  }
  [[nodiscard]] bool is_empty() const noexcept {
    return waiting_.load(std::memory_order_seq_cst) == 0;
  }
  [[nodiscard]] std::vector<RangeWaiter> list(const Domain& domain) const;

  // What BlockingRangeLock::counters() shows.
  std::atomic<std::uint64_t> contended{0}, timeouts{0}, waited_ns{0};

 private:
  // In registers; see BlockingRangeLock::release_at_once.
  void wake_blocked_by(std::uint64_t begin, std::uint64_t end) noexcept;
  void wake_misled_by(const Blocker& seen) noexcept;
  void wake_locked(const Range& range) noexcept;
  void wake_or_pass_over(Waiter& waiter) noexcept;

  alignas(base::kCacheLine) base::Atomic<std::uint32_t> waiting_{0};
  alignas(base::kCacheLine) mutable base::ColdMutex mutex_;  // guards all below
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

}  // namespace sp3::rangelock

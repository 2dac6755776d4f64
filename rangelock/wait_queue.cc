#include "rangelock/wait_queue.h"

#include <algorithm>

#include "base/atomic.h"
#include "base/fence.h"
#include "emu/futex.h"

namespace sp3::rangelock {

void WaitQueue::enter(Waiter& waiter) {
  {
    const std::lock_guard hold(mutex_);
    waiter.prev = last_;
    (last_ == nullptr ? first_ : last_->next) = &waiter;
    last_ = &waiter;
    waiting_.fetch_add(1, std::memory_order_seq_cst);
  }
  // Unlockers store, then look at waiting_ with a light fence between: either they see us, or the
  // attempt that follows sees what they stored.
  base::heavy_fence();
}

void WaitQueue::leave(Waiter& waiter, bool with_range) {
  const std::lock_guard hold(mutex_);
  (waiter.prev == nullptr ? first_ : waiter.prev->next) = waiter.next;
  (waiter.next == nullptr ? last_ : waiter.next->prev) = waiter.prev;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  // With the range: those it blocks are woken when it is unlocked.
  if (!with_range) wake_locked(waiter.range);
}

bool WaitQueue::set_blocker(Waiter& waiter, const Blocker& blocker) {
  const std::lock_guard hold(mutex_);
  // A wake since the blocker was noted means that it was unlocked after the attempt saw it: then it
  // is as if it were noted only now. acquire: a cancellation wakes without the mutex, and whoever
  // takes its wake away must see that it was requested. An exchange, so that none is lost between
  // two steps. One that was passed over was as good as woken, and what it was passed over for may
  // want the same range.
  const bool was_woken = waiter.woken.exchange(0, std::memory_order_acquire) != 0;
  const bool same = waiter.blocker == blocker && !was_woken && !waiter.passed_over;
  waiter.blocker = blocker;
  waiter.passed_over = false;
  if (was_woken) {
    for (Waiter* other = waiter.next; other != nullptr; other = other->next) {
      if (other->passed_over && other->blocker == waiter.as_blocker()) wake_or_pass_over(*other);
    }
  }
  return same;
}

bool WaitQueue::find_elder(std::span<const Range> ranges, RangeMode mode, Waiter* waiter,
                           Blocker& blocker) {
  const std::lock_guard hold(mutex_);
  for (const Waiter* elder = first_; elder != nullptr && elder != waiter; elder = elder->next) {
    const bool conflicts = std::ranges::any_of(ranges, [&](const Range& range) {
      return conflict(elder->range, elder->mode, range, mode);
    });
    if (!conflicts) continue;
    blocker = elder->as_blocker();
    if (waiter != nullptr) {
      waiter->blocker = blocker;
      waiter->passed_over = false;  // to be behind the elder is what fairness asks of it
      waiter->woken.exchange(0, std::memory_order_acquire);  // as in set_blocker
    }
    return true;
  }
  return false;
}

void WaitQueue::sleep(Waiter& waiter, const Clock::time_point* deadline) {
  // acquire: what the waker did is visible to the attempt that follows.
  if (waiter.woken.load(std::memory_order_acquire) != 0) return;
  // Returns at once if woken meanwhile; for another reason, the caller just tries again.
  emu::sleep_while(waiter.woken, 0, deadline);
}

void WaitQueue::wake(Waiter& waiter) {
  if (waiter.woken.exchange(1, std::memory_order_release) == 0) emu::wake_sleepers(waiter.woken);
}

[[gnu::noinline]] void WaitQueue::wake_blocked_by(std::uint64_t begin, std::uint64_t end) noexcept {
  const std::lock_guard hold(mutex_);
  wake_locked({begin, end});
}

void WaitQueue::wake_misled_by(const Blocker& seen) noexcept {
  const std::lock_guard hold(mutex_);
  for (Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next) {
    if (waiter->blocker == seen) wake_or_pass_over(*waiter);
  }
}

void WaitQueue::wake_locked(const Range& range) noexcept {
  for (Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next) {
    if (waiter->blocker.range().overlaps(range)) wake_or_pass_over(*waiter);
  }
}

// Wakes it, unless an elder that it conflicts with is awake.
void WaitQueue::wake_or_pass_over(Waiter& waiter) noexcept {
  if (!waiter.may_be_passed_over) return wake(waiter);
  const Waiter* elder = first_;
  while (elder != &waiter && !(elder->woken.load(std::memory_order_relaxed) != 0 &&
                               conflict(elder->range, elder->mode, waiter.range, waiter.mode))) {
    elder = elder->next;
  }
  waiter.passed_over = elder != &waiter;
  if (waiter.passed_over) {
    waiter.blocker = elder->as_blocker();
  } else {
    wake(waiter);
  }
}

std::vector<RangeWaiter> WaitQueue::list(const Domain& domain) const {
  std::vector<RangeWaiter> result;
  const std::lock_guard hold(mutex_);
  const auto now = Clock::now();
  for (const Waiter* waiter = first_; waiter != nullptr; waiter = waiter->next) {
    const std::chrono::nanoseconds waited = now - waiter->since;
    result.push_back({waiter->range, waiter->mode, domain.token_of(waiter->owner.number),
                      waiter->blocker.range(), static_cast<std::uint64_t>(waited.count())});
  }
  return result;
}

}  // namespace sp3::rangelock

// What an acquisition that does not wait, and an unlock, do besides what their lock does: checks,
// fairness, counters. Templates, so that a lock's part is compiled into them: without contention a
// range costs two calls in all.
#pragma once

#include <sp3/range_lock.h>

#include "base/assert.h"
#include "base/fence.h"
#include "rangelock/domain.h"
#include "rangelock/hook.h"
#include "rangelock/wait_queue.h"

namespace sp3 {

namespace rangelock {

[[noreturn, gnu::cold]] void refuse_range(Range range);
[[noreturn, gnu::cold]] void refuse_owner();
// `lock`: what the handle says, or null.
[[noreturn, gnu::cold]] void refuse_handle(const BlockingRangeLock* lock);

}  // namespace rangelock

// `attempt(claim)`: as BlockingRangeLock::attempt, but nobody asks for the blocker.
template <class Attempt>
[[gnu::always_inline]] inline void BlockingRangeLock::try_fill_by(RangeHandle& handle,
                                                                  rangelock::OwnerCore& owner,
                                                                  std::uint64_t begin,
                                                                  std::uint64_t end, RangeMode mode,
                                                                  Attempt&& attempt) {
  if (begin >= end) [[unlikely]]
    rangelock::refuse_range({begin, end});
  if (&owner.domain != domain_) [[unlikely]]
    rangelock::refuse_owner();
  if ((fifo_ && is_overtaking({&handle.claim_.range, 1}, mode)) || !attempt(handle.claim_))
      [[unlikely]] {
    owner.contended.add(1);
    handle.lock_ = nullptr;
    handle.claim_.place = 0;
    return;
  }
  owner.acquired.add(1);
  handle.lock_ = this;
}

// For what is simpler than try_fill_by: whether it may be tried at all, and what is left to do when
// the range is had. A function that calls others last, and nothing else, has no registers to save.
[[gnu::always_inline]] inline bool BlockingRangeLock::may_fill_at_once(
    const rangelock::OwnerCore& owner, std::uint64_t begin, std::uint64_t end) const noexcept {
  return begin < end && &owner.domain == domain_ && !fifo_;
}

[[gnu::always_inline]] inline void BlockingRangeLock::fill_at_once(RangeHandle& handle,
                                                                   rangelock::OwnerCore& owner,
                                                                   std::uintptr_t place) noexcept {
  handle.claim_.place = place;
  handle.lock_ = this;
  owner.acquired.add(1);
}

// `release(claim)`: unlocks what an attempt took.
template <class Release>
[[gnu::always_inline]] inline void BlockingRangeLock::release_by(RangeHandle& handle,
                                                                 Release&& release) {
  if (handle.lock_ != this) [[unlikely]]
    rangelock::refuse_handle(handle.lock_);
  rangelock::OwnerCore& owner = *handle.claim_.owner;
  SP3_ASSERT(owner.held() > 0);
  owner.released.add(1);
  // The handle may lie in what it protects, so nothing of it is touched once that is free.
  const rangelock::Claim claim = handle.claim_;
  handle.lock_ = nullptr;
  rangelock::hook(rangelock::Hook::before_unlock);
  release(claim);
}

// The same without a hook, where that is a store: `is_simple(claim)` says so, and `release(place)`
// does it; else `otherwise()` is called.
template <class IsSimple, class Release, class Otherwise>
[[gnu::always_inline]] inline void BlockingRangeLock::release_at_once(RangeHandle& handle,
                                                                      IsSimple&& is_simple,
                                                                      Release&& release,
                                                                      Otherwise&& otherwise) {
  if (handle.lock_ != this || rangelock::is_hooked() || !is_simple(handle.claim_)) [[unlikely]]
    return otherwise();
  rangelock::OwnerCore& owner = *handle.claim_.owner;
  const Range range = handle.claim_.range;
  SP3_ASSERT(owner.held() > 0);
  owner.released.add(1);
  handle.lock_ = nullptr;
  release(handle.claim_.place);
  base::light_fence();  // between the unlock and the look for waiters: see WaitQueue::enter
  queue_->released(range);
}

}  // namespace sp3

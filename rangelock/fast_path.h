// What an acquisition that does not wait, and an unlock, do besides what their lock does: checks,
// fairness, counters. Templates, so that a lock's part is compiled into them: without contention a
// range costs two calls in all.
#pragma once

#include <sp3/range_lock.h>

#include "base/assert.h"
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
[[gnu::always_inline]] inline RangeHandle BlockingRangeLock::try_acquire_by(
    RangeOwner& by, std::uint64_t begin, std::uint64_t end, RangeMode mode, Attempt&& attempt) {
  rangelock::OwnerCore& owner = by.core();
  if (begin >= end) [[unlikely]]
    rangelock::refuse_range({begin, end});
  if (&owner.domain != domain_) [[unlikely]]
    rangelock::refuse_owner();
  RangeHandle handle(owner, begin, end, mode);
  if ((fifo_ && is_overtaking({&handle.claim_.range, 1}, mode)) || !attempt(handle.claim_))
      [[unlikely]] {
    owner.contended.add(1);
    handle.lock_ = nullptr;
    handle.claim_.place[0] = handle.claim_.place[1] = 0;
    return handle;
  }
  owner.acquired.add(1);
  handle.lock_ = this;
  return handle;
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
  handle.lock_ = nullptr;
  rangelock::hook(rangelock::Hook::before_unlock);
  release(handle.claim_);
}

}  // namespace sp3

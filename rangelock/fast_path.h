// What an acquisition that does not wait, and an unlock, do besides what their lock does: checks,
// fairness, counters. Templates, so that a lock's part is compiled into them: without contention a
// range costs two calls in all.
#pragma once

#include <utility>

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
[[gnu::always_inline]] inline void BlockingRangeLock::try_fill_by(RangeHandle& handle,
                                                                  Attempt&& attempt) {
  rangelock::Claim& claim = handle.claim_;
  rangelock::OwnerCore& owner = *claim.owner;
  if (claim.range.begin >= claim.range.end) [[unlikely]]
    rangelock::refuse_range(claim.range);
  if (&owner.domain != domain_) [[unlikely]]
    rangelock::refuse_owner();
  if ((fifo_ && is_overtaking({&claim.range, 1}, claim.mode)) || !attempt(claim)) [[unlikely]] {
    owner.contended.add(1);
    handle.lock_ = nullptr;
    claim.place = 0;
    return;
  }
  owner.acquired.add(1);
  handle.lock_ = this;
}

// For what is simpler than try_fill_by: whether `attempt(claim)` was made, since there is nothing
// to refuse, and returned a place. A function that calls others last, and nothing else, and reads
// the claim again where it needs it, has no registers to save.
template <class Attempt>
[[gnu::always_inline]] inline bool BlockingRangeLock::try_fill_at_once(RangeHandle& handle,
                                                                       Attempt&& attempt) noexcept {
  rangelock::Claim& claim = handle.claim_;
  if (claim.range.begin >= claim.range.end || &claim.owner->domain != domain_ || fifo_) [[unlikely]]
    return false;
  const std::uintptr_t place = attempt(std::as_const(claim));
  if (place == 0) [[unlikely]]
    return false;
  claim.place = place;
  handle.lock_ = this;
  claim.owner->acquired.add(1);
  return true;
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

// The same without a hook, by `release(owner, place, range)`, if `may(claim)` says so. Returns
// whether it did. Stores no copy of the claim: of a range as a whole GCC makes one on the stack.
template <class May, class Release>
[[gnu::always_inline]] inline bool BlockingRangeLock::release_at_once(RangeHandle& handle,
                                                                      May&& may,
                                                                      Release&& release) noexcept {
  if (handle.lock_ != this || rangelock::is_hooked() || !may(std::as_const(handle.claim_)))
      [[unlikely]] {
    return false;
  }
  rangelock::OwnerCore& owner = *handle.claim_.owner;
  const std::uint64_t begin = handle.claim_.range.begin;
  const std::uint64_t end = handle.claim_.range.end;
  SP3_ASSERT(owner.held() > 0);
  owner.released.add(1);
  handle.lock_ = nullptr;
  release(owner, handle.claim_.place, Range{begin, end});
  return true;
}

}  // namespace sp3

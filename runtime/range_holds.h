// RangeHolds: the ranges that one transaction holds in the range locks of ranged objects.
//
// Exclusive ranges are held from the first write (or lock()) on to the end of publish, shared ones
// as long as their view lives. A range that is partly held already is taken in its missing parts
// only, since a lock does not know that two claims have one owner.
//
// Deadlock: nobody waits for long. take() gives up after some microseconds; the transaction then
// lets go of everything and starts again after a backoff. So neither ranges that are taken in
// different orders nor two views that both want to become writes are a matter of more than time.
//
// Complexity: O(log n) for each range held, in whatever order; with more than a few views, the same
// for what a write looks at, plus the views that overlap it or would if they were as long as the
// longest.
//
// Thread safety: none; a session owns one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include <sp3/range_lock.h>

#include "runtime/ranged_locks.h"
#include "runtime/sorted_blocks.h"

namespace sp3::runtime {

class RangeHolds {
 public:
  RangeHolds(RangedLocks& locks, std::uint64_t token) : owner_(token, locks.domain()) {}
  ~RangeHolds() { release(); }
  RangeHolds(const RangeHolds&) = delete;
  RangeHolds& operator=(const RangeHolds&) = delete;

  // Takes what is not held yet of `range`; views of it are given up first, but not what they show.
  // False if somebody held a part for too long.
  [[nodiscard]] bool take(BlockingRangeLock& lock, const Range& range);
  // Takes `range` shared for a view of `object`, but for what is held exclusively. The view's
  // number, never 0; none if somebody held a part for too long.
  [[nodiscard]] std::optional<std::uint32_t> take_view(BlockingRangeLock& lock, const Range& range,
                                                       std::uint64_t object);
  void release_view(std::uint32_t view) noexcept;

  // Whether all of `range` is held exclusively.
  [[nodiscard]] bool covers(const BlockingRangeLock& lock, const Range& range) const noexcept;
  // Whether a view of `object` still lives in this transaction. By the object, not by ranges: two
  // objects may share a part of a lock.
  [[nodiscard]] bool is_viewed(std::uint64_t object) const noexcept;

  // Lets go of everything.
  void release() noexcept;

 private:
  struct Hold {
    BlockingRangeLock* lock;
    RangeHandle handle;
  };
  struct View {
    BlockingRangeLock* lock = nullptr;  // null once it is closed
    Range range;
    std::uint64_t object = 0;
    std::vector<RangeHandle> handles;  // empty when a write needed the range
  };

  // An open view that holds something.
  struct IndexedView {
    const BlockingRangeLock* lock;
    std::uint64_t begin;
    std::size_t place;  // in views_

    friend bool operator<(const IndexedView& a, const IndexedView& b) noexcept {
      if (a.lock != b.lock) return std::less<>()(a.lock, b.lock);
      return std::tie(a.begin, a.place) < std::tie(b.begin, b.place);
    }
  };
  using Place = SortedBlocks<Hold>::Place;

  [[nodiscard]] Place first_ending_after(const BlockingRangeLock& lock,
                                         std::uint64_t begin) const noexcept;
  template <class Take>
  bool for_each_gap(const BlockingRangeLock& lock, const Range& range, Take&& take);
  RangeHandle try_patiently(BlockingRangeLock& lock, const Range& range, RangeMode mode);
  void unlock_views(const BlockingRangeLock& lock, const Range& range);
  void unlock_views_by_index(const BlockingRangeLock& lock, const Range& range);
  void unlock(std::size_t view) noexcept;

  RangeOwner owner_;
  SortedBlocks<Hold> holds_;  // exclusive; by lock and begin, disjoint
  std::vector<View> views_;   // the number of a view is its place + 1
  // The first `indexed_` views, as far as they hold something, once a write has met more than a
  // few.
  std::set<IndexedView> index_;
  std::size_t indexed_ = 0;
  std::uint64_t reach_ = 0;  // no indexed view is longer
};

}  // namespace sp3::runtime

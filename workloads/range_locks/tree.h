// TreeLock: an interval tree under a spinlock, after Kara's range lock for Linux, also in pNOVA.
//
// A blocking acquisition counts the earlier conflicting ones, waits until none is left, and is
// counted by later ones: first come, first served.
#pragma once

#include <mutex>

#include "emu/spin_lock.h"
#include "workloads/range_locks/interval_tree.h"
#include "workloads/range_locks/rival.h"

namespace sp3::workloads {

class TreeLock {
 public:
  RivalToken try_lock(RangeOwner&, std::uint64_t begin, std::uint64_t end) {
    return try_acquire({begin, end}, RangeMode::exclusive);
  }
  RivalToken try_lock_shared(RangeOwner&, std::uint64_t begin, std::uint64_t end) {
    return try_acquire({begin, end}, RangeMode::shared);
  }
  RivalToken lock(RangeOwner&, std::uint64_t begin, std::uint64_t end) {
    const Range range{begin, end};
    IntervalTree::Node* node = nullptr;
    {
      const std::lock_guard hold(spin_);
      std::uint32_t blockers = 0;
      tree_.for_each_overlap(range, [&](const IntervalTree::Node&) { return ++blockers != 0; });
      node = tree_.insert(range, RangeMode::exclusive);
      node->blockers = blockers;
    }
    for (emu::Spin spin;; spin.pause()) {
      const std::lock_guard hold(spin_);
      if (node->blockers == 0) break;
    }
    return {.range = range, .place = node, .held = true};
  }
  void unlock(const RivalToken& token) {
    auto* const node = static_cast<IntervalTree::Node*>(token.place);
    const std::lock_guard hold(spin_);
    tree_.erase(node);
    tree_.for_each_overlap(token.range, [&](IntervalTree::Node& other) {
      const bool counted =
          other.number > node->number && conflict(other.range, other.mode, token.range, token.mode);
      if (counted) --other.blockers;
      return true;
    });
  }

 private:
  RivalToken try_acquire(const Range& range, RangeMode mode) {
    const std::lock_guard hold(spin_);
    if (tree_.has_conflict(range, mode)) return {};
    return {.range = range, .mode = mode, .place = tree_.insert(range, mode), .held = true};
  }

  emu::SpinLock spin_;
  IntervalTree tree_;
};
static_assert(RangeLock<TreeLock>);

}  // namespace sp3::workloads

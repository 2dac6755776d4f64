// OrderedCore: exclusive and shared ranges in skip lists.
//
// Exclusive ranges are disjoint, so they are in one list in which an acquisition has to look at two
// neighbours only. Shared ranges may overlap each other, so their lists are ordered by begin alone,
// one list for each power of two of the length: what overlaps [b, e) in the list of lengths up to
// 2^k begins after b - 2^k.
//
// An acquisition links its node in its own list first and then looks at the other kind; of two that
// conflict at least one sees the other. A shared one that sees an exclusive one waits until that
// has looked, then retreats if it is still there; an exclusive one that sees a shared one retreats.
// So a pair of them never makes both fail.
//
// Thread safety: any thread. Reclamation: eras (ordered_list.h).
#pragma once

#include <array>
#include <vector>

#include "base/atomic.h"
#include "rangelock/ordered_list.h"
#include "rangelock/wait_queue.h"

namespace sp3::rangelock {

class OrderedCore {
 public:
  OrderedCore(unsigned max_height, WaitQueue& queue) : queue_(queue), exclusive_(max_height) {}
  ~OrderedCore();
  OrderedCore(const OrderedCore&) = delete;
  OrderedCore& operator=(const OrderedCore&) = delete;

  // The node that holds the range, or null and what it conflicts with. Errors: std::bad_alloc.
  Node* attempt(OwnerCore& owner, const Range& range, RangeMode mode, Blocker& blocker);
  // The same, compiled into its caller; for ordered_core.cc.
  Node* attempt_inline(OwnerCore& owner, const Range& range, RangeMode mode, Blocker& blocker);
  // REQUIRES: the node holds the owner's range; no Pin of the owner. Once it is marked the node may
  // be anybody's.
  void release(OwnerCore& owner, Node* node) noexcept {
    if (node->mode != RangeMode::exclusive || !exclusive_.is_released_by_mark()) [[unlikely]]
      return release_elsewhere(owner, node);
    const Range range = node->range();
    OrderedList::mark(node);
    queue_.released(range);
  }
  // The same, for a range that its owner could not have after all. Others may have taken the node
  // for a held one.
  void retreat(Node* node, const Range& range, RangeMode mode) noexcept {
    OrderedList::mark(node);
    queue_.retreated({range, mode});
  }
  // Whether a held range conflicts, and which. REQUIRES: no Pin of this owner.
  bool find_conflict(OwnerCore& owner, const Range& range, RangeMode mode, Blocker& blocker);
  // Gives all nodes to the owner's pool. REQUIRES: nobody else uses the lock, now or later.
  void clear(OwnerCore& owner) noexcept;
  [[nodiscard]] const OrderedList& exclusive() const noexcept { return exclusive_; }
  void list_holders(OwnerCore& owner, std::vector<RangeHolder>& holders) const;

 private:
  static constexpr unsigned kClasses = 64;
  static constexpr unsigned kSharedHeight = 12;

  // The lists of shared ranges.
  struct Shared {
    std::array<base::Atomic<OrderedList*>, kClasses> lists{};
    ~Shared();
    OrderedList& list(unsigned length_class);
    // REQUIRES: a range of the class has been linked.
    [[nodiscard]] OrderedList& list_of(unsigned length_class) const noexcept {
      return *lists[length_class].load(std::memory_order_acquire);
    }
  };
  static unsigned class_of(const Range& range) noexcept;
  static std::uint64_t reach_of(unsigned length_class) noexcept;

  Node* attempt_exclusive(OwnerCore& owner, const Range& range, Blocker& blocker);
  bool is_clear_of_shared(OwnerCore& owner, Node* node, std::uint64_t classes, Blocker& blocker);
  Node* attempt_shared(OwnerCore& owner, const Range& range, Blocker& blocker);
  Node* find_shared(OwnerCore& owner, const Range& range, std::uint64_t classes);
  void retreat_unbuilt(Node* node) noexcept;
  void release_elsewhere(OwnerCore& owner, Node* node) noexcept;

  WaitQueue& queue_;
  OrderedList exclusive_;
  // Bit k: class k has a list. Bits are never cleared, so that this line is read, not written.
  alignas(base::kCacheLine) base::Atomic<std::uint64_t> classes_{0};
  Shared shared_;
};

}  // namespace sp3::rangelock

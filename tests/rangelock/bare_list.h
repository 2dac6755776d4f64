// An ordered list without a lock around it.
#pragma once

#include "rangelock/domain.h"
#include "rangelock/ordered_list.h"

namespace sp3::tests {

// With one owner. REQUIRES, of all that links: Pin.
struct BareList {
  ~BareList() { list.clear(owner.core().pool); }
  rangelock::Node* link(const Range& range) {
    rangelock::Blocker blocker;
    rangelock::Node* const node =
        list.link_disjoint(owner.core(), range, rangelock::NodeState::held, blocker);
    if (node != nullptr) list.build_tower(owner.core(), node);
    return node;
  }
  rangelock::Node* link_shared(const Range& range) {
    rangelock::Node* const node = list.link_any(owner.core(), range);
    list.build_tower(owner.core(), node);
    return node;
  }
  // Whether nothing is linked behind the node, marked or not.
  static bool is_last(const rangelock::Node* node) {
    return rangelock::node_of(node->next(0).load())->begin() == kRangeMax;
  }

  rangelock::Domain domain{2};
  const rangelock::Guest owner{domain};
  rangelock::OrderedList list{12};
};

}  // namespace sp3::tests

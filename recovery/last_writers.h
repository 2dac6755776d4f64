// LastWriters: who wrote each object last, while records are gone through in stamp order.
//
// Four bytes for each slot of the slabs that are written to, of which those of slots that are not
// cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "base/prefetch.h"
#include "base/zeroed_array.h"
#include "recovery/node_set.h"
#include "recovery/slab_plan.h"

namespace sp3::recovery {

// Thread safety: members by any thread; exchange() of one object must be ordered by the caller.
class LastWriters {
 public:
  // `slots`: how many each slab has, 0 where nothing is written. Errors: std::bad_alloc.
  explicit LastWriters(const std::vector<std::uint32_t>& slots)
      : first_(sums(slots)), writers_(first_.back()) {}

  using Object = std::size_t;
  // REQUIRES: the slab has that slot.
  [[nodiscard]] Object object_at(SlabPlan::Place place) const {
    return first_[place.slab] + place.index;
  }

  // Asks for the memory that exchange() will want.
  void ask_for(Object object) const { base::prefetch_for_write(&writers_[object]); }

  // The last writer is now `node`; returns the one before it or kNoNode. REQUIRES: node != kNoNode.
  Node exchange(Object object, Node node) {
    // One more than it is, so that 0 is none.
    static_assert(kNoNode + 1 == 0);
    return std::exchange(writers_[object], node + 1) - 1;
  }

 private:
  // How many slots the slabs before each have; at the end, all.
  static std::vector<std::size_t> sums(const std::vector<std::uint32_t>& slots) {
    std::vector<std::size_t> before(slots.size() + 1);
    std::inclusive_scan(slots.begin(), slots.end(), before.begin() + 1, std::plus<>(),
                        std::size_t{0});
    return before;
  }

  const std::vector<std::size_t> first_;
  base::ZeroedArray<Node> writers_;
};

}  // namespace sp3::recovery

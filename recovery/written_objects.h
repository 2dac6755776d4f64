// WrittenObjects: a number for each slot of the slabs that the log writes to, from 0 on.
//
// What replay keeps for each object lies in arrays over these numbers. Those of slots that are not
// written to cost nothing where the array does not (base::ZeroedArray).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "recovery/slab_plan.h"

namespace sp3::recovery {

// Thread safety: constant.
class WrittenObjects {
 public:
  using Object = std::size_t;

  // `slots`: how many each slab has, 0 where nothing is written. Errors: std::bad_alloc.
  explicit WrittenObjects(const std::vector<std::uint32_t>& slots) : first_(slots.size() + 1) {
    std::inclusive_scan(slots.begin(), slots.end(), first_.begin() + 1, std::plus<>(), Object{0});
  }

  // REQUIRES: the slab is written to and has that slot.
  [[nodiscard]] Object number(SlabPlan::Place place) const {
    return first_[place.slab] + place.index;
  }
  [[nodiscard]] std::size_t size() const { return first_.back(); }

 private:
  std::vector<Object> first_;  // of each slab; at the end, how many there are
};

}  // namespace sp3::recovery

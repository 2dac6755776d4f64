// WrittenObjects: a number for each object that the log writes to.
//
// What replay keeps for each object lies in arrays over these numbers. Mostly an object's number is
// that of its slot, counted through the slabs that are written to: nothing is looked up, and slots
// that are not written to cost nothing where the array does not (base::ZeroedArray). But where few
// of very many small slots are written, all over the pool, most pages of such an array would be
// touched, and memory would grow with the pool instead of the log. There the slots get numbers from
// a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "recovery/preparation.h"
#include "recovery/slab_plan.h"
#include "recovery/slot_table.h"

namespace sp3::recovery {

// Thread safety: number() of objects of different shards by different threads; the rest by any.
class WrittenObjects {
 public:
  // With more slots to each write there is a table, which takes less than an array of such a size.
  static constexpr std::uint64_t kSlotsToAWrite = 32;

  // REQUIRES: `plan` is the preparation's and outlives this. Errors: std::bad_alloc.
  WrittenObjects(const SlabPlan& plan, const Preparation& preparation) : plan_(plan) {
    const std::vector<std::uint32_t> slots = plan.written_slots();
    first_.resize(slots.size() + 1);
    std::inclusive_scan(slots.begin(), slots.end(), first_.begin() + 1, std::plus<>(),
                        std::size_t{0});
    if (first_.back() / kSlotsToAWrite > preparation.writes) table_.emplace(preparation.by_shard());
  }

  // REQUIRES: the preparation has a write to the slot, in that shard.
  [[nodiscard]] std::size_t number(std::uint32_t shard, std::uint64_t slot) {
    if (table_) return table_->number(shard, slot);
    const SlabPlan::Place place = plan_.place_of(slot);
    return first_[place.slab] + place.index;
  }
  // Above all numbers.
  [[nodiscard]] std::size_t size() const { return table_ ? table_->size() : first_.back(); }

 private:
  const SlabPlan& plan_;
  std::vector<std::size_t> first_;  // slot of each slab; at the end, how many there are
  std::optional<SlotTable> table_;
};

}  // namespace sp3::recovery

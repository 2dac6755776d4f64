// ListLock: a lock-free sorted list of ranges, after Kogan, Dice and Issa, "Scalable range locks
// for scalable address spaces and beyond" (EuroSys 2020), with its fast path for an empty list and
// its shared mode. Nodes and eras are the library's; what is still linked when the lock goes away
// is freed with the domain.
#pragma once

#include <atomic>

#include "rangelock/domain.h"
#include "rangelock/ordered_list.h"
#include "workloads/range_locks/rival.h"

namespace sp3::workloads {

class ListLock {
 public:
  RivalToken try_lock(RangeOwner& owner, std::uint64_t begin, std::uint64_t end) {
    return acquire(owner.core(), {begin, end}, RangeMode::exclusive);
  }
  RivalToken try_lock_shared(RangeOwner& owner, std::uint64_t begin, std::uint64_t end) {
    return acquire(owner.core(), {begin, end}, RangeMode::shared);
  }
  void unlock(const RivalToken& token);

 private:
  RivalToken acquire(rangelock::OwnerCore& owner, const Range& range, RangeMode mode);
  bool insert(rangelock::OwnerCore& owner, rangelock::Node* node);
  bool is_clear_for_reader(rangelock::OwnerCore& owner, rangelock::Node* node);
  bool is_clear_for_writer(rangelock::OwnerCore& owner, rangelock::Node* node);

  // A mark here means: the only range was linked by the fast path, and leaves by it if it can.
  alignas(64) std::atomic<rangelock::Link> head_{rangelock::OrderedList::end_link()};
};
static_assert(RangeLock<ListLock>);

}  // namespace sp3::workloads

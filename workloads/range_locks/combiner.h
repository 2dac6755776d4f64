// CombinerLock: flat combining over an interval tree, after the EPFL report on server-sided range
// locks (its local variant) and CC-Synch (Fatourou and Kallimanis, PPoPP 2012).
//
// Threads queue their requests with one atomic exchange; whoever is first serves the others' until
// it has served many, then passes the duty on. Readers do not block each other.
#pragma once

#include <atomic>
#include <memory>

#include "workloads/range_locks/interval_tree.h"
#include "workloads/range_locks/rival.h"

namespace sp3::workloads {

class CombinerLock {
 public:
  CombinerLock();
  ~CombinerLock();
  CombinerLock(const CombinerLock&) = delete;
  CombinerLock& operator=(const CombinerLock&) = delete;

  RivalToken try_lock(RangeOwner& owner, std::uint64_t begin, std::uint64_t end);
  RivalToken try_lock_shared(RangeOwner& owner, std::uint64_t begin, std::uint64_t end);
  void unlock(const RivalToken& token);

 private:
  struct Request;

  void submit(std::uint32_t owner, RivalToken& token, bool lock);
  void serve(Request& request);

  alignas(64) std::atomic<Request*> tail_;
  IntervalTree tree_;                  // the one who combines
  std::unique_ptr<Request*[]> spare_;  // of each owner
};
static_assert(RangeLock<CombinerLock>);

}  // namespace sp3::workloads

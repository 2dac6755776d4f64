// SpinSkiplistLock: a skip list of ranges under one spinlock, after Song et al., "Parallelizing
// live migration of virtual machines" (VEE 2013).
#pragma once

#include <array>

#include "emu/spin_lock.h"
#include "rangelock/domain.h"
#include "workloads/range_locks/rival.h"

namespace sp3::workloads {

class SpinSkiplistLock {
 public:
  SpinSkiplistLock() = default;
  ~SpinSkiplistLock();
  SpinSkiplistLock(const SpinSkiplistLock&) = delete;
  SpinSkiplistLock& operator=(const SpinSkiplistLock&) = delete;

  RivalToken try_lock(RangeOwner& owner, std::uint64_t begin, std::uint64_t end);
  void unlock(const RivalToken& token);

 private:
  static constexpr unsigned kHeight = 12;
  struct Node {
    Range range;
    unsigned height;
    Node* next[kHeight];
  };
  // The links that lead past `begin`, on each level.
  void find(std::uint64_t begin, std::array<Node**, kHeight>& links, Node*& pred);

  emu::SpinLock spin_;
  Node head_{};
  Node* free_ = nullptr;
  unsigned levels_ = 1;
};
static_assert(RangeLock<SpinSkiplistLock>);

}  // namespace sp3::workloads

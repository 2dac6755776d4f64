#include "runtime/commit_mark.h"

#include "base/atomic.h"

namespace sp3::runtime {

base::Atomic<CommitMark*> CommitMark::spare_{nullptr};
base::Atomic<CommitMark*> CommitMark::lost_{nullptr};

CommitMark& CommitMark::take(SessionShared& session) {
  // All at once and back again: popping one alone would meet the ABA problem.
  CommitMark* mark = spare_.exchange(nullptr, std::memory_order_acquire);
  if (mark == nullptr) {
    mark = new CommitMark;
  } else if (CommitMark* rest = mark->next_; rest != nullptr) {
    CommitMark* last = rest;
    while (last->next_ != nullptr) last = last->next_;
    push(spare_, rest, last);
  }
  mark->session.store(&session, std::memory_order_release);
  return *mark;
}

void CommitMark::retire(bool all_durable) noexcept {
  session.store(nullptr, std::memory_order_release);
  if (!all_durable) return push(lost_, this, this);
  // First the generation: see covers().
  generation.fetch_add(1, std::memory_order_acq_rel);
  committed_stamp.store(0, std::memory_order_release);
  push(spare_, this, this);
}

void CommitMark::push(base::Atomic<CommitMark*>& list, CommitMark* first,
                      CommitMark* last) noexcept {
  last->next_ = list.load(std::memory_order_relaxed);  // relaxed: compared below
  while (!list.compare_exchange_weak(last->next_, first, std::memory_order_acq_rel)) {
  }
}

}  // namespace sp3::runtime

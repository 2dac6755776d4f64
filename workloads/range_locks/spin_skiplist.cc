#include "workloads/range_locks/spin_skiplist.h"

#include <bit>

namespace sp3::workloads {

SpinSkiplistLock::~SpinSkiplistLock() {
  for (Node* list : {head_.next[0], free_}) {
    while (list != nullptr) {
      Node* const next = list->next[0];
      delete list;
      list = next;
    }
  }
}

void SpinSkiplistLock::find(std::uint64_t begin, std::array<Node**, kHeight>& links, Node*& pred) {
  pred = &head_;
  for (unsigned level = levels_; level-- > 0;) {
    while (pred->next[level] != nullptr && pred->next[level]->range.begin < begin) {
      pred = pred->next[level];
    }
    links[level] = &pred->next[level];
  }
}

RivalToken SpinSkiplistLock::try_lock(RangeOwner& owner, std::uint64_t begin, std::uint64_t end) {
  const auto zeros = static_cast<unsigned>(std::countl_zero(owner.core().next_random()));
  const unsigned height = std::min(1 + zeros, kHeight);
  const std::lock_guard hold(spin_);
  std::array<Node**, kHeight> links{};
  Node* pred = nullptr;
  find(begin, links, pred);
  const Node* const succ = *links[0];
  if ((pred != &head_ && pred->range.end > begin) || (succ != nullptr && succ->range.begin < end)) {
    return {};
  }
  Node* node = free_;
  if (node != nullptr) {
    free_ = node->next[0];
  } else {
    node = new Node;
  }
  node->range = {begin, end};
  node->height = height;
  for (; levels_ < height; ++levels_) links[levels_] = &head_.next[levels_];
  for (unsigned level = 0; level < height; ++level) {
    node->next[level] = *links[level];
    *links[level] = node;
  }
  return {.range = {begin, end}, .held = true};
}

void SpinSkiplistLock::unlock(const RivalToken& token) {
  const std::lock_guard hold(spin_);
  std::array<Node**, kHeight> links{};
  Node* pred = nullptr;
  find(token.range.begin, links, pred);
  Node* const node = *links[0];
  for (unsigned level = 0; level < node->height; ++level) *links[level] = node->next[level];
  while (levels_ > 1 && head_.next[levels_ - 1] == nullptr) --levels_;
  node->next[0] = free_;
  free_ = node;
}

}  // namespace sp3::workloads

#include "workloads/range_locks/published.h"

#include <atomic>
#include <bit>
#include <utility>

#include "base/assert.h"
#include "rangelock/domain.h"

namespace sp3::workloads {

class PublishedLock::MarkableReference {
 public:
  void store(Node* node, bool mark) { word_.store(pack(node, mark), std::memory_order_relaxed); }
  bool compare_and_swap(Node* expected, Node* wanted, bool expected_mark, bool wanted_mark) {
    std::uintptr_t word = pack(expected, expected_mark);
    return word_.compare_exchange_strong(word, pack(wanted, wanted_mark),
                                         std::memory_order_acq_rel);
  }
  bool attempt_mark(Node* expected, bool mark) {
    std::uintptr_t word = word_.load(std::memory_order_acquire);
    const auto [node, marked] = unpack(word);
    if (node != expected || marked == mark) return false;
    return word_.compare_exchange_strong(word, pack(expected, mark), std::memory_order_acq_rel);
  }
  Node* get(bool& mark) const {
    const auto [node, marked] = unpack(word_.load(std::memory_order_acquire));
    mark = marked;
    return node;
  }
  [[nodiscard]] Node* reference() const {
    return unpack(word_.load(std::memory_order_acquire)).first;
  }

 private:
  static std::uintptr_t pack(Node* node, bool mark) {
    return reinterpret_cast<std::uintptr_t>(node) | (mark ? 1 : 0);
  }
  static std::pair<Node*, bool> unpack(std::uintptr_t word) {
    return {reinterpret_cast<Node*>(word & ~std::uintptr_t{1}), (word & 1) != 0};
  }
  std::atomic<std::uintptr_t> word_{0};
};

struct PublishedLock::Node {
  std::uint64_t start;
  std::uint64_t end;
  unsigned top_level;
  MarkableReference** next;
  Node* made_before = nullptr;
};

PublishedLock::Node* PublishedLock::make_node(std::uint64_t start, std::uint64_t end,
                                              unsigned top_level) {
  auto* const node = new Node{start, end, top_level, new MarkableReference*[top_level + 1]};
  for (unsigned level = 0; level <= top_level; ++level) node->next[level] = new MarkableReference;
  return node;
}

void PublishedLock::destroy(Node* node) {
  for (unsigned level = 0; level <= node->top_level; ++level) delete node->next[level];
  delete[] node->next;
  delete node;
}

PublishedLock::PublishedLock(unsigned max_level)
    : max_level_(max_level),
      tail_(make_node(kRangeMax, kRangeMax, max_level)),
      head_(make_node(0, 0, max_level)),
      made_(std::make_unique<Made[]>(kMostOwners)) {
  SP3_CHECK(max_level <= kMaxLevel);
  for (unsigned level = 0; level <= max_level; ++level) head_->next[level]->store(tail_, false);
}

PublishedLock::~PublishedLock() {
  for (std::size_t i = 0; i < kMostOwners; ++i) {
    for (Node* node = made_[i].last; node != nullptr;)
      destroy(std::exchange(node, node->made_before));
  }
  destroy(head_);
  destroy(tail_);
}

unsigned PublishedLock::random_level(rangelock::OwnerCore& owner) const {
  const auto zeros = static_cast<unsigned>(std::countl_zero(owner.next_random()));
  return std::min(zeros, max_level_);
}

void PublishedLock::find(std::uint64_t start, Nodes& preds, Nodes& succs) {
retry:
  Node* pred = head_;
  for (unsigned level = max_level_ + 1; level-- > 0;) {
    Node* curr = pred->next[level]->reference();
    while (start > curr->start) {
      bool marked = false;
      Node* succ = curr->next[level]->get(marked);
      while (marked) {
        if (!pred->next[level]->compare_and_swap(curr, succ, false, false)) goto retry;
        curr = pred->next[level]->reference();
        if (curr == tail_) break;
        succ = curr->next[level]->get(marked);
      }
      if (start <= curr->start || curr == tail_) break;
      pred = curr;
      curr = succ;
    }
    preds[level] = pred;
    succs[level] = curr;
  }
}

bool PublishedLock::find_insert(std::uint64_t start, std::uint64_t end, Nodes& preds,
                                Nodes& succs) {
  find(start, preds, succs);
  return !(start > preds[0]->end && end < succs[0]->start);
}

bool PublishedLock::find_exact(std::uint64_t start, std::uint64_t end, Nodes& preds, Nodes& succs) {
  find(start, preds, succs);
  return start == succs[0]->start && end == succs[0]->end;
}

RivalToken PublishedLock::try_lock(RangeOwner& owner, std::uint64_t begin, std::uint64_t end) {
  const std::uint32_t number = owner.core().number;
  SP3_CHECK(number < kMostOwners);
  // Neither zero nor the maximum, and inclusive ends.
  const std::uint64_t start = begin + 1;
  const std::uint64_t last = end;
  const unsigned top_level = random_level(owner.core());
  Nodes preds, succs;
  Node* node = nullptr;
  for (;;) {
    if (find_insert(start, last, preds, succs)) {
      if (node != nullptr) destroy(node);
      return {};
    }
    if (node == nullptr) node = make_node(start, last, top_level);
    for (unsigned level = 0; level <= top_level; ++level) {
      node->next[level]->store(succs[level], false);
    }
    if (preds[0]->next[0]->compare_and_swap(succs[0], node, false, false)) break;
  }
  for (unsigned level = 1; level <= top_level; ++level) {
    while (!preds[level]->next[level]->compare_and_swap(succs[level], node, false, false)) {
      find_insert(start, last, preds, succs);
      node->next[level]->store(succs[level], false);
    }
  }
  node->made_before = std::exchange(made_[number].last, node);
  return {.range = {begin, end}, .owner = &owner.core(), .held = true};
}

void PublishedLock::unlock(const RivalToken& token) {
  const std::uint64_t start = token.range.begin + 1;
  const std::uint64_t last = token.range.end;
  Nodes preds, succs;
  if (!find_exact(start, last, preds, succs)) return;
  Node* const node = succs[0];
  bool marked = false;
  for (unsigned level = node->top_level; level >= 1; --level) {
    Node* succ = node->next[level]->get(marked);
    while (!marked) {
      node->next[level]->attempt_mark(succ, true);
      succ = node->next[level]->get(marked);
    }
  }
  for (Node* succ = node->next[0]->get(marked);; succ = node->next[0]->get(marked)) {
    if (node->next[0]->compare_and_swap(succ, succ, false, true)) break;
    if (marked) return;
  }
  // Their findDelete: one more search, past the node, snips it.
  find(start + 1, preds, succs);
}

}  // namespace sp3::workloads

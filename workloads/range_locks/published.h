// PublishedLock: the lock-free skip list of the thesis "Concurrent Range Locking" (Nguyen, TUM
// 2024), from its description: try_lock, releaseLock and the three finds of its chapter 4, with the
// memory layout of its chapter 3 (a node, an array of links, and each link in a block of its own).
//
// It is here because targets are ratios against it. Its flaws as a lock stay: sentinels compared
// like ranges, inclusive ends, a marked node that blocks its range, no memory ever used again.
// Changed is only what it needs to run at all:
//   - the mask that takes the mark off an address (the listing's clears nothing);
//   - a failed CAS uses its node again (the listing leaks it);
//   - a node's own link is set afresh when a CAS on an upper level fails, without which searches
//     would follow a link to a wrong place;
//   - a search that has just snipped a node does not go past one that begins where it searches (the
//     listing does; releaseLock then finds nothing, and the range stays locked for ever);
//   - all nodes are chained, so that the destructor can free them.
#pragma once

#include <array>
#include <memory>

#include "workloads/range_locks/rival.h"

namespace sp3::workloads {

class PublishedLock {
 public:
  explicit PublishedLock(unsigned max_level = 10);
  ~PublishedLock();
  PublishedLock(const PublishedLock&) = delete;
  PublishedLock& operator=(const PublishedLock&) = delete;

  // REQUIRES: 0 < begin + 1 < end < kRangeMax; see the flaws above.
  RivalToken try_lock(RangeOwner& owner, std::uint64_t begin, std::uint64_t end);
  void unlock(const RivalToken& token);

 private:
  static constexpr unsigned kMaxLevel = 16;

  class MarkableReference;
  struct Node;
  using Nodes = std::array<Node*, kMaxLevel + 1>;

  static Node* make_node(std::uint64_t start, std::uint64_t end, unsigned top_level);
  static void destroy(Node* node);
  unsigned random_level(rangelock::OwnerCore& owner) const;
  // Fills both arrays for `start`; snips marked nodes on the way.
  void find(std::uint64_t start, Nodes& preds, Nodes& succs);
  bool find_insert(std::uint64_t start, std::uint64_t end, Nodes& preds, Nodes& succs);
  bool find_exact(std::uint64_t start, std::uint64_t end, Nodes& preds, Nodes& succs);

  const unsigned max_level_;
  Node* const tail_;
  Node* const head_;
  struct alignas(64) Made {
    Node* last = nullptr;
  };
  std::unique_ptr<Made[]> made_;  // by each owner
};
static_assert(RangeLock<PublishedLock>);

}  // namespace sp3::workloads

// IntervalTree: a balanced tree of ranges that finds what overlaps a range. For one thread at a
// time.
//
// A treap ordered by begin, each node knowing the largest end in its subtree. Stands in for the
// papers' red-black trees: equally deep within a small factor, and much shorter.
#pragma once

#include <cstdint>
#include <deque>

#include <sp3/range_lock.h>

namespace sp3::workloads {

class IntervalTree {
 public:
  struct Node {
    Range range;
    RangeMode mode = RangeMode::exclusive;
    std::uint64_t number = 0;  // order of arrival
    std::uint32_t blockers = 0;
    std::uint32_t priority = 0;
    std::uint64_t largest_end = 0;
    Node* left = nullptr;
    Node* right = nullptr;
  };

  Node* insert(const Range& range, RangeMode mode);
  void erase(Node* node);

  // Calls visit(Node&) for each that overlaps the range, until it returns false; false if it did.
  template <class Visit>
  bool for_each_overlap(const Range& range, Visit&& visit) {
    return visit_subtree(root_, range, visit);
  }
  // Whether one conflicts.
  bool has_conflict(const Range& range, RangeMode mode) {
    return !for_each_overlap(
        range, [&](const Node& node) { return !conflict(node.range, node.mode, range, mode); });
  }

 private:
  template <class Visit>
  static bool visit_subtree(Node* node, const Range& range, Visit& visit) {
    while (node != nullptr && node->largest_end > range.begin) {
      if (!visit_subtree(node->left, range, visit)) return false;
      if (node->range.begin >= range.end) return true;
      if (node->range.overlaps(range) && !visit(*node)) return false;
      node = node->right;
    }
    return true;
  }
  static bool is_before(const Node* a, const Node* b) {
    return a->range.begin != b->range.begin ? a->range.begin < b->range.begin
                                            : a->number < b->number;
  }
  static void update(Node* node);
  static Node* merge(Node* left, Node* right);
  static void split(Node* tree, const Node* at, Node*& left, Node*& right);
  static Node* insert_into(Node* tree, Node* node);
  static Node* erase_from(Node* tree, const Node* node);

  Node* root_ = nullptr;
  Node* free_ = nullptr;  // chained by left
  std::deque<Node> nodes_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t random_ = 1;
};

}  // namespace sp3::workloads

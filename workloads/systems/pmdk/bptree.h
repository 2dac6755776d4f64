// A B+ tree on libpmemobj, of the shape of sp3's own (include/sp3/containers/bp_tree.h): nodes of
// half a kilobyte, every value an object of its own; one readers-writer lock for the tree, held to
// commit.
//
// A node that changes is put into the undo log whole, as in libpmemobj's btree_map example: one
// fence, where its count, keys and children in turn would cost three.
//
// Invariants, for fan-out F:
//   1. All leaves are `height` levels below the root (0: the root is a leaf).
//   2. Keys within a node increase. Of an inner node's children, child i holds the keys k with
//      keys[i-1] <= k < keys[i].
//   3. A node other than the root has at least (F-1)/2 keys (rounded down).
//   4. `next` links every leaf to the one that follows in key order, and the last to none.
// Source: Comer, "The Ubiquitous B-Tree", ACM Computing Surveys 1979.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "workloads/systems/pmdk/map.h"

namespace sp3::workloads::pmdk {

template <std::size_t Size>
class BpTree {
 public:
  BpTree(const Heap& heap, const WorkloadSpec&) : heap_(heap) {}

  void create() {
    heap_.make_array(heap_.root<Root>().tree, 1);
    attach();
    Tx tx(heap_);
    const Ref<Node> leaf = tx.make(Node{});
    tx.change(tree_->top) = {leaf, 0};
    tx.commit();
  }
  void attach() { tree_ = &heap_.at(heap_.root<Root>().tree); }

  bool search(std::uint64_t key, Entry<Size>& result) const {
    const SharedLock lock(heap_, tree_->lock);
    return read(key, result);
  }

  std::uint64_t scan(std::uint64_t key, std::uint64_t count, Entry<Size>& result) const {
    const SharedLock lock(heap_, tree_->lock);
    Ref<Node> at = leaf_of(key);
    std::uint64_t found = 0;
    std::uint64_t position = position_of(node(at), key);
    for (; at && found < count; at = Ref<Node>{node(at).children[kFanout - 1]}, position = 0) {
      const std::uint64_t end = std::min(node(at).count, position + (count - found));
      for (; position < end; ++position, ++found) result = value(node(at), position).entry;
    }
    return found;
  }

  void insert(std::uint64_t key, const Entry<Size>& entry) {
    Tx tx(heap_);
    tx.lock(tree_->lock);
    put(tx, key, entry);
    tx.commit();
  }

  bool modify(std::uint64_t key, const Entry<Size>& entry, Entry<Size>& before) {
    Tx tx(heap_);
    tx.lock(tree_->lock);
    const bool found = read(key, before);
    put(tx, key, entry);
    tx.commit();
    return found;
  }

  std::string check_structure() const {
    Check check{*this, {}, {}};
    check.node(tree_->top.node, tree_->top.height, 0, ~std::uint64_t{0}, true);
    if (check.violation.empty() && check.next) return "The last leaf has a successor.";
    return check.violation;
  }

  void visit(const ItemVisitor& visitor) const {
    Ref<Node> at = tree_->top.node;
    for (std::uint64_t level = tree_->top.height; level > 0; --level) {
      at = Ref<Node>{node(at).children[0]};
    }
    for (; at; at = Ref<Node>{node(at).children[kFanout - 1]}) {
      for (std::uint64_t i = 0; i < node(at).count; ++i) {
        const Entry<Size>& entry = value(node(at), i).entry;
        if (!visitor({node(at).keys[i], entry.tag(), entry.intact()})) return;
      }
    }
  }

 private:
  static constexpr std::uint64_t kFanout = 32;
  static constexpr std::uint64_t kMostKeys = kFanout - 1;
  static constexpr std::uint64_t kLeastKeys = kMostKeys / 2;

  struct Value {
    static constexpr std::uint64_t kType = 1;
    [[no_unique_address]] Gap<gap_before_value(0, Size)> gap;
    Entry<Size> entry;
  };
  // A leaf's children are values, one per key, and the last of them is the leaf that follows; an
  // inner node's are nodes, one more than keys.
  struct Node {
    static constexpr std::uint64_t kType = 2;
    std::uint64_t count;  // of keys
    std::array<std::uint64_t, kMostKeys> keys;
    std::array<std::uint64_t, kFanout> children;
  };
  struct Top {
    Ref<Node> node;
    std::uint64_t height;
  };
  struct Tree {
    PMEMrwlock lock;
    Top top;
  };
  struct Root {
    Ref<Tree> tree;
  };
  // The node that a full one gave its upper half to, and the least key below it; or nothing.
  struct Split {
    Ref<Node> right;
    std::uint64_t key = 0;
  };

  [[nodiscard]] Node& node(Ref<Node> at) const { return heap_.at(at); }
  [[nodiscard]] Ref<Node> leaf_of(std::uint64_t key) const {
    Ref<Node> at = tree_->top.node;
    for (std::uint64_t level = tree_->top.height; level > 0; --level) {
      at = Ref<Node>{node(at).children[child_of(node(at), key)]};
    }
    return at;
  }
  [[nodiscard]] Value& value(const Node& leaf, std::uint64_t i) const {
    return heap_.at(Ref<Value>{leaf.children[i]});
  }
  static std::uint64_t position_of(const Node& n, std::uint64_t key) {
    return static_cast<std::uint64_t>(
        std::lower_bound(n.keys.begin(), n.keys.begin() + n.count, key) - n.keys.begin());
  }
  static std::uint64_t child_of(const Node& n, std::uint64_t key) {
    return static_cast<std::uint64_t>(
        std::upper_bound(n.keys.begin(), n.keys.begin() + n.count, key) - n.keys.begin());
  }
  static bool holds(const Node& leaf, std::uint64_t position, std::uint64_t key) {
    return position < leaf.count && leaf.keys[position] == key;
  }
  template <class Array>
  static void shift_in(Array& array, std::uint64_t used, std::uint64_t position,
                       std::uint64_t word) {
    std::copy_backward(array.begin() + position, array.begin() + used, array.begin() + used + 1);
    array[position] = word;
  }

  // REQUIRES (both): the tree is locked.
  bool read(std::uint64_t key, Entry<Size>& result) const {
    const Node& leaf = node(leaf_of(key));
    const std::uint64_t position = position_of(leaf, key);
    if (!holds(leaf, position, key)) return false;
    result = value(leaf, position).entry;
    return true;
  }
  void put(Tx& tx, std::uint64_t key, const Entry<Size>& entry) {
    const Split split = insert_below(tx, tree_->top.node, tree_->top.height, key, entry);
    if (split.right) {
      Node root{};
      root.count = 1;
      root.keys[0] = split.key;
      root.children[0] = tree_->top.node.offset;
      root.children[1] = split.right.offset;
      const Ref<Node> made = tx.make(root);
      tx.change(tree_->top) = {made, tree_->top.height + 1};
    }
  }

  Split insert_below(Tx& tx, Ref<Node> at, std::uint64_t level, std::uint64_t key,
                     const Entry<Size>& entry) {
    if (level == 0) return insert_into_leaf(tx, at, key, entry);
    const std::uint64_t position = child_of(node(at), key);
    const Split below =
        insert_below(tx, Ref<Node>{node(at).children[position]}, level - 1, key, entry);
    if (!below.right) return {};
    Node* target = &tx.change(node(at));
    const Split split = target->count == kMostKeys ? split_inner(tx, at) : Split{};
    if (split.right && below.key >= split.key) target = &node(split.right);
    const std::uint64_t to = child_of(*target, below.key);
    shift_in(target->keys, target->count, to, below.key);
    shift_in(target->children, target->count + 1, to + 1, below.right.offset);
    ++target->count;
    return split;
  }

  Split insert_into_leaf(Tx& tx, Ref<Node> at, std::uint64_t key, const Entry<Size>& entry) {
    const std::uint64_t position = position_of(node(at), key);
    if (holds(node(at), position, key)) {
      tx.change(value(node(at), position).entry) = entry;
      return {};
    }
    Node* target = &tx.change(node(at));
    const Split split = target->count == kMostKeys ? split_leaf(tx, at) : Split{};
    if (split.right && key >= split.key) target = &node(split.right);
    const std::uint64_t to = position_of(*target, key);
    shift_in(target->keys, target->count, to, key);
    shift_in(target->children, target->count, to, tx.make(Value{.gap = {}, .entry = entry}).offset);
    ++target->count;
    return split;
  }

  // REQUIRES (both): the node is full and in the undo log.
  Split split_leaf(Tx& tx, Ref<Node> at) {
    Node& left = node(at);
    constexpr std::uint64_t kKept = kFanout / 2;
    Node upper{};
    upper.count = kMostKeys - kKept;
    std::copy(left.keys.begin() + kKept, left.keys.end(), upper.keys.begin());
    std::copy(left.children.begin() + kKept, left.children.begin() + kMostKeys,
              upper.children.begin());
    upper.children[kFanout - 1] = left.children[kFanout - 1];
    const Ref<Node> right = tx.make(upper);
    left.children[kFanout - 1] = right.offset;
    left.count = kKept;
    return {right, upper.keys[0]};
  }

  Split split_inner(Tx& tx, Ref<Node> at) {
    Node& left = node(at);
    constexpr std::uint64_t kKept = kMostKeys / 2;  // and the key after them goes up
    Node upper{};
    upper.count = kMostKeys - kKept - 1;
    std::copy(left.keys.begin() + kKept + 1, left.keys.end(), upper.keys.begin());
    std::copy(left.children.begin() + kKept + 1, left.children.end(), upper.children.begin());
    left.count = kKept;
    return {tx.make(upper), left.keys[kKept]};
  }

  // Walks in order and remembers the first violation.
  struct Check {
    const BpTree& tree;
    std::string violation;
    Ref<Node> next;  // of the leaf visited last
    bool first_leaf = true;

    // Keys k below must have low <= k < high.
    void node(Ref<Node> at, std::uint64_t level, std::uint64_t low, std::uint64_t high,
              bool is_root) {
      const Node& n = tree.node(at);
      if (n.count > kMostKeys || (!is_root && n.count < kLeastKeys)) {
        violation = fmt::format("A node has {} keys.", n.count);
      }
      for (std::uint64_t i = 0; i < n.count && violation.empty(); ++i) {
        const std::uint64_t least = i == 0 ? low : n.keys[i - 1] + 1;
        if (n.keys[i] < least || n.keys[i] >= high) {
          violation = fmt::format("Key {} is out of order.", n.keys[i]);
        }
      }
      if (!violation.empty()) return;
      if (level == 0) {
        if (!first_leaf && next != at) violation = "A leaf's successor is not the next leaf.";
        first_leaf = false;
        next = Ref<Node>{n.children[kFanout - 1]};
        return;
      }
      for (std::uint64_t i = 0; i <= n.count && violation.empty(); ++i) {
        node(Ref<Node>{n.children[i]}, level - 1, i == 0 ? low : n.keys[i - 1],
             i == n.count ? high : n.keys[i], false);
      }
    }
  };

  const Heap& heap_;
  Tree* tree_ = nullptr;
};

template <std::size_t Size>
using BpTreeWorkload = MapWorkload<BpTree<Size>, Size>;

}  // namespace sp3::workloads::pmdk

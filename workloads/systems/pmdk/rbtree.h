// A red-black tree on libpmemobj, with values in its nodes, as in libpmemobj's rbtree_map example;
// one readers-writer lock for the tree, held to commit. (The example has none and leaves it to its
// user; a writer may turn the root, so nothing finer is correct without another algorithm.)
//
// Invariants:
//   1. Keys are ordered: left below, right above.
//   2. The root is black; a red node has black children.
//   3. All paths from the root to a missing child pass the same number of black nodes.
//   4. A child's parent link leads back.
// Source: Cormen et al., "Introduction to Algorithms", with missing children in place of a
// sentinel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "workloads/systems/pmdk/map.h"

namespace sp3::workloads::pmdk {

template <std::size_t Size>
class RbTree {
 public:
  RbTree(const Heap& heap, const WorkloadSpec&) : heap_(heap) {}

  void create() {
    heap_.make_array(heap_.root<Root>().tree, 1);
    attach();
  }
  void attach() { tree_ = &heap_.at(heap_.root<Root>().tree); }

  bool search(std::uint64_t key, Entry<Size>& result) const {
    const SharedLock lock(heap_, tree_->lock);
    Ref<Node> at = tree_->top;
    while (at && node(at).key != key) at = node(at).links.child[side_of(at, key)];
    if (at) result = node(at).value;
    return static_cast<bool>(at);
  }

  void insert(std::uint64_t key, const Entry<Size>& value) {
    Tx tx(heap_);
    tx.lock(tree_->lock);
    Ref<Node> parent;
    Ref<Node> at = tree_->top;
    while (at && node(at).key != key) {
      parent = at;
      at = links(at).child[side_of(at, key)];
    }
    if (at) {
      tx.change(node(at).value) = value;
    } else {
      add(tx, parent, key, value);
    }
    tx.commit();
  }

  std::string check_structure() const {
    if (tree_->top && (links(tree_->top).red != 0 || links(tree_->top).parent)) {
      return "The root is red or has a parent.";
    }
    Check check{*this, {}, {}, false};
    check.black_height(tree_->top);
    return check.violation;
  }

  void visit(const ItemVisitor& visitor) const { walk(tree_->top, visitor); }

 private:
  struct Node;
  // What rebalancing changes, in one piece: a snapshot of it costs one fence, of each member one.
  struct Links {
    Ref<Node> parent;
    Ref<Node> child[2];  // left, right
    std::uint64_t red;
  };
  struct Node {
    static constexpr std::uint64_t kType = 1;
    std::uint64_t key;
    Links links;
    [[no_unique_address]] Gap<gap_before_value(8 + sizeof(Links), Size)> gap;
    Entry<Size> value;
  };
  struct Tree {
    PMEMrwlock lock;
    Ref<Node> top;
  };
  struct Root {
    Ref<Tree> tree;
  };

  [[nodiscard]] Node& node(Ref<Node> at) const { return heap_.at(at); }
  [[nodiscard]] Links& links(Ref<Node> at) const { return heap_.at(at).links; }
  [[nodiscard]] int side_of(Ref<Node> at, std::uint64_t key) const {
    return key > node(at).key ? 1 : 0;
  }
  [[nodiscard]] bool is_red(Ref<Node> at) const { return at && links(at).red != 0; }
  // Which child of `parent` it is.
  [[nodiscard]] int side_in(Ref<Node> parent, Ref<Node> at) const {
    return links(parent).child[1] == at ? 1 : 0;
  }

  void add(Tx& tx, Ref<Node> parent, std::uint64_t key, const Entry<Size>& value) {
    const Ref<Node> fresh = tx.make(Node{
        .key = key, .links = {.parent = parent, .child = {}, .red = 1}, .gap = {}, .value = value});
    if (parent) {
      tx.change(links(parent)).child[side_of(parent, key)] = fresh;
    } else {
      tx.change(tree_->top) = fresh;
    }
    restore(tx, fresh);
    if (is_red(tree_->top)) tx.change(links(tree_->top)).red = 0;
  }

  // `at` is red and may be a child of a red node; everything else is in order.
  void restore(Tx& tx, Ref<Node> at) {
    while (is_red(links(at).parent)) {
      Ref<Node> parent = links(at).parent;
      const Ref<Node> grandparent = links(parent).parent;  // there is one: the root is black
      const int side = side_in(grandparent, parent);
      const Ref<Node> uncle = links(grandparent).child[1 - side];
      if (is_red(uncle)) {
        tx.change(links(parent)).red = 0;
        tx.change(links(uncle)).red = 0;
        tx.change(links(grandparent)).red = 1;
        at = grandparent;
        continue;
      }
      if (side_in(parent, at) != side) {
        rotate(tx, parent, side);
        std::swap(at, parent);
      }
      tx.change(links(parent)).red = 0;
      tx.change(links(grandparent)).red = 1;
      rotate(tx, grandparent, 1 - side);
    }
  }

  // `top` goes down to `side`, its other child takes its place.
  void rotate(Tx& tx, Ref<Node> top, int side) {
    const Ref<Node> riser = links(top).child[1 - side];
    const Ref<Node> moved = links(riser).child[side];
    const Ref<Node> above = links(top).parent;
    Links& lowered = tx.change(links(top));
    Links& raised = tx.change(links(riser));
    lowered.child[1 - side] = moved;
    if (moved) tx.change(links(moved)).parent = top;
    if (above) {
      tx.change(links(above)).child[side_in(above, top)] = riser;
    } else {
      tx.change(tree_->top) = riser;
    }
    raised.parent = above;
    raised.child[side] = top;
    lowered.parent = riser;
  }

  bool walk(Ref<Node> at, const ItemVisitor& visitor) const {
    if (!at) return true;
    const Node& n = node(at);
    return walk(n.links.child[0], visitor) && visitor({n.key, n.value.tag(), n.value.intact()}) &&
           walk(n.links.child[1], visitor);
  }

  // Walks in order and remembers the first violation.
  struct Check {
    const RbTree& tree;
    std::string violation;
    std::uint64_t last_key;
    bool any;

    std::uint64_t black_height(Ref<Node> at) {
      if (!at || !violation.empty()) return 0;
      const Node& n = tree.node(at);
      for (const Ref<Node> child : n.links.child) {
        if (!child) continue;
        if (tree.links(child).parent != at) return fail("Key {}'s child has another parent.", n);
        if (n.links.red != 0 && tree.is_red(child)) return fail("Key {} and its child are red.", n);
      }
      const std::uint64_t left = black_height(n.links.child[0]);
      if (any && n.key <= last_key) return fail("Key {} is out of order.", n);
      any = true;
      last_key = n.key;
      const std::uint64_t right = black_height(n.links.child[1]);
      if (left != right) return fail("The paths below key {} differ in black nodes.", n);
      return left + (n.links.red != 0 ? 0 : 1);
    }
    std::uint64_t fail(fmt::format_string<const std::uint64_t&> what, const Node& n) {
      if (violation.empty()) violation = fmt::format(what, n.key);
      return 0;
    }
  };

  const Heap& heap_;
  Tree* tree_ = nullptr;
};

template <std::size_t Size>
using RbTreeWorkload = MapWorkload<RbTree<Size>, Size>;

}  // namespace sp3::workloads::pmdk

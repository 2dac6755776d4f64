// RbTree<K, V>: an ordered map in a pool, as a red-black tree.
//
// Thread safety: an RbTree is a small value; its const members may be called by several threads,
//   each with its own transaction. Values are objects of their own: giving a present key a new
//   value conflicts only with uses of that key. New and erased keys conflict with what passes
//   through the few nodes that they change.
// Ownership and lifetime: the pool owns the tree until destroy(). A handle made by create() is good
//   once that transaction has committed; no handle may be used after destroy().
// Invariants:
//   1. Keys on the left of a node are less than its key, keys on the right greater.
//   2. The root is black; a red node has no red child.
//   3. Every path from the root to a missing child has the same number of black nodes.
//   4. A node's key never changes: erase moves nodes, not contents, so a Ptr to a node names its
//      key as long as the key is there.
//   5. Every node names a value object of its own.
// Durable: with the transaction, as everything done through it.
// Complexity: O(log n) reads. A new value writes one object. Else a change writes only nodes of
//   which a word changes: an insert on average about three besides the new node and value, an erase
//   about three, a word or two of each. The object that holds the root is written only when another
//   node becomes the root.
// Source: the red-black tree of the paper's Table I; algorithms after Cormen et al., chapter 13,
//   with the path kept in DRAM. Nodes have no parent links: a link to the parent would make every
//   rotation write one more node, which costs log and conflicts, and save nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sp3/containers/detail/damaged.h>
#include <sp3/containers/detail/put.h>
#include <sp3/containers/detail/violation.h>
#include <sp3/containers/detail/visit.h>
#include <sp3/ptr.h>
#include <sp3/transaction.h>
#include <sp3/type.h>

namespace sp3 {

template <Storable K, Storable V>
requires detail::Ordered<K>
class RbTree {
 public:
  // Without the value: who passes through on the way down conflicts with nobody who writes it, and
  // a search touches one cache line per node.
  struct Node {
    using Holds = detail::Holds<K>;
    K key;
    std::array<Ptr<Node>, 2> child;  // left, right
    std::uint64_t red;               // 1 or 0; a word, so that a recolouring logs one word
    Ptr<V> value;
  };

  // What names the tree in the pool.
  struct Header {
    Ptr<Node> root;
  };

  using Entry = std::pair<K, V>;

  RbTree() noexcept = default;

  // A new, empty tree.
  static RbTree create(Transaction& tx) { return RbTree(tx.make<Header>()); }

  // The tree that `header` names.
  static RbTree open(Transaction& tx, Ptr<Header> header) {
    static_cast<void>(tx.read(header));  // reports a wrong Ptr here, not at first use
    return RbTree(header);
  }

  // The value of `key`, valid to the end of the transaction; null if there is none. It stays as it
  // is now, unless the transaction has changed something near it before: then it may show later
  // writes.
  [[nodiscard]] const V* lookup(Transaction& tx, const K& key) const {
    const Found found = search(tx, key, [](Ptr<Node>, unsigned) {});
    return found.at ? &tx.read(found.node->value) : nullptr;
  }

  // A copy of the value of `key`.
  [[nodiscard]] std::optional<V> find(Transaction& tx, const K& key) const {
    const V* value = lookup(tx, key);
    return value == nullptr ? std::nullopt : std::optional<V>(*value);
  }

  [[nodiscard]] bool contains(Transaction& tx, const K& key) const {
    return static_cast<bool>(search(tx, key, [](Ptr<Node>, unsigned) {}).at);
  }

  // The value of `key`, to be changed in place until the transaction ends; null if there is none.
  // As Transaction::write: of a value that changes little, little is logged.
  [[nodiscard]] V* write(Transaction& tx, const K& key) const {
    const Found found = search(tx, key, [](Ptr<Node>, unsigned) {});
    return found.at ? &tx.write(found.node->value) : nullptr;
  }

  // Makes `value` the value of `key`, if that has none yet. Returns whether the key is new.
  bool insert(Transaction& tx, const K& key, const V& value) const {
    return put<detail::Present::stays>(tx, key, value);
  }

  // Makes `value` the value of `key`. Returns whether the key is new.
  bool insert_or_assign(Transaction& tx, const K& key, const V& value) const {
    return put<detail::Present::is_replaced>(tx, key, value);
  }

  // Removes `key`. Returns whether it was there.
  bool erase(Transaction& tx, const K& key) const;

  // The entry with the least key that is not less than `key`.
  [[nodiscard]] std::optional<Entry> lower_bound(Transaction& tx, const K& key) const {
    return nearest<left>(tx, &key);
  }

  // The entry with the least key that is greater than `key`.
  [[nodiscard]] std::optional<Entry> upper_bound(Transaction& tx, const K& key) const {
    std::optional<Entry> result;
    const auto take = take_one(tx, result);
    walk<left>(tx, &key, [&](const Node& node) { return !(key < node.key) || take(node); });
    return result;
  }

  // The entry with the greatest key that is not greater than `key`.
  [[nodiscard]] std::optional<Entry> floor(Transaction& tx, const K& key) const {
    return nearest<right>(tx, &key);
  }

  // The entries with the least key and with the greatest.
  [[nodiscard]] std::optional<Entry> first(Transaction& tx) const {
    return nearest<left>(tx, nullptr);
  }
  [[nodiscard]] std::optional<Entry> last(Transaction& tx) const {
    return nearest<right>(tx, nullptr);
  }

  // Calls visit(key, value) in order for every key k with from <= k < to; a visitor that returns
  // false ends the walk. It must not change the tree.
  template <class F>
  void range(Transaction& tx, const K& from, const K& to, F&& visit) const {
    const auto show = shown_to(visit, tx);
    walk<left>(tx, &from, [&](const Node& node) { return node.key < to && show(node); });
  }

  // As range(), for every key k with from <= k: the greatest there can be is below no `to`.
  template <class F>
  void range(Transaction& tx, const K& from, F&& visit) const {
    walk<left>(tx, &from, shown_to(visit, tx));
  }

  // As range(), for all keys.
  template <class F>
  void for_each(Transaction& tx, F&& visit) const {
    walk<left>(tx, nullptr, shown_to(visit, tx));
  }

  // As range(), from the greatest key down: every key k with from >= k > to.
  template <class F>
  void range_down(Transaction& tx, const K& from, const K& to, F&& visit) const {
    const auto show = shown_to(visit, tx);
    walk<right>(tx, &from, [&](const Node& node) { return to < node.key && show(node); });
  }

  // As range_down(), for every key k with from >= k: the least there can be is above no `to`.
  template <class F>
  void range_down(Transaction& tx, const K& from, F&& visit) const {
    walk<right>(tx, &from, shown_to(visit, tx));
  }

  // As range_down(), for all keys.
  template <class F>
  void for_each_down(Transaction& tx, F&& visit) const {
    walk<right>(tx, nullptr, shown_to(visit, tx));
  }

  // The number of keys, by walking: a counter would be written by all.
  [[nodiscard]] std::uint64_t size(Transaction& tx) const {
    std::uint64_t count = 0;
    walk<left>(tx, nullptr, [&](const Node&) { return ++count != 0; });
    return count;
  }

  [[nodiscard]] bool empty(Transaction& tx) const { return !tx.read(header_).root; }

  // Erases up to `limit` keys, least first: emptying a large tree in several transactions.
  // Returns whether the tree is empty.
  bool drain(Transaction& tx, std::uint64_t limit) const {
    for (; limit > 0 && !empty(tx); --limit) {
      Ptr<Node> at = tx.read(header_).root;
      for (unsigned height = 1; const Ptr<Node> below = child(tx, at, left); ++height) {
        if (height == max_height) [[unlikely]]
          too_high(tx, at);
        at = below;
      }
      const K key = tx.read(at).key;
      if (!erase(tx, key)) [[unlikely]]  // else without end
        out_of_order(tx, at);
    }
    return empty(tx);
  }

  // Frees everything, the header included.
  void destroy(Transaction& tx) const {
    std::vector<Ptr<Node>> pending;
    pending.reserve(max_height + 2);  // nothing may fail half-way for want of memory
    pending.push_back(tx.read(header_).root);
    while (!pending.empty()) {
      const Ptr<Node> at = pending.back();
      pending.pop_back();
      if (!at) continue;
      const Node& node = tx.read(at);  // throws where ways meet again
      if (pending.size() > max_height) [[unlikely]]
        too_high(tx, at);
      pending.insert(pending.end(), node.child.begin(), node.child.end());
      tx.destroy(node.value);
      tx.destroy(at);
    }
    tx.destroy(header_);
  }

  // Empty if invariants 1, 2, 3 and 5 hold; else a sentence that names the violation.
  [[nodiscard]] std::string check_invariants(Transaction& tx) const;

  [[nodiscard]] Ptr<Header> header() const noexcept { return header_; }

 private:
  static constexpr unsigned left = 0;
  static constexpr unsigned right = 1;
  // A red-black tree of 2^62 nodes is not higher.
  static constexpr unsigned max_height = 128;

  struct Check;

  // The way down from the root: each step names a node and the side on which it was left. The words
  // stay uninitialised until pushed: clearing two kilobytes would cost more than the descent.
  class Path {
   public:
    Path() noexcept {}  // NOLINT(modernize-use-equals-default): `= default` would clear steps_
    void push(Transaction& tx, Ptr<Node> node, unsigned side) {
      if (size_ == max_height) [[unlikely]]
        too_high(tx, node);
      steps_[size_++] = node.offset() | side;
    }
    void pop(unsigned count = 1) noexcept { size_ -= count; }
    [[nodiscard]] unsigned size() const noexcept { return size_; }
    [[nodiscard]] Ptr<Node> node(unsigned i) const noexcept {
      return Ptr<Node>::from_offset(steps_[i] & ~std::uint64_t{1});
    }
    [[nodiscard]] unsigned side(unsigned i) const noexcept {
      return static_cast<unsigned>(steps_[i] & 1);
    }
    void replace(unsigned i, Ptr<Node> node) noexcept { steps_[i] = node.offset() | side(i); }

   private:
    std::array<std::uint64_t, max_height> steps_;
    unsigned size_ = 0;
  };

  struct Found {
    Ptr<Node> at;
    const Node* node = nullptr;
  };

  explicit RbTree(Ptr<Header> header) noexcept : header_(header) {}

  [[noreturn]] static void too_high(Transaction& tx, Ptr<Node> at) {
    detail::exceeded(tx, at, "a red-black tree is too high", max_height, max_height + 1);
  }
  [[noreturn]] static void out_of_order(Transaction& tx, Ptr<Node> at) {
    detail::damaged(tx, at, "a red-black tree is out of order", "a node at its place", at.offset());
  }

  // The node with `key`, if there is one. Calls step(node, side) for each node above it, or above
  // where it would be.
  template <class Step>
  Found search(Transaction& tx, const K& key, Step&& step) const {
    Ptr<Node> at = tx.read(header_).root;
    for (unsigned height = 0; at; ++height) {
      if (height == max_height) [[unlikely]]
        too_high(tx, at);
      const Node& node = tx.read(at);
      // No jump depends on the side: nobody can foretell it, and half of such jumps would go wrong.
      const auto side = static_cast<unsigned>(static_cast<bool>(node.key < key));
      const auto other = static_cast<unsigned>(static_cast<bool>(key < node.key));
      if ((side | other) == 0) return {at, &node};
      step(at, side);
      at = node.child[side];
    }
    return {};
  }

  // Each of these reads anew: a reference from before a write would show the old version.
  static Ptr<Node> child(Transaction& tx, Ptr<Node> node, unsigned side) {
    return tx.read(node).child[side];
  }
  static bool is_red(Transaction& tx, Ptr<Node> node) { return node && tx.read(node).red != 0; }
  static void set_red(Transaction& tx, Ptr<Node> node, bool red) {
    if ((tx.read(node).red != 0) != red) tx.write(node).red = red ? 1 : 0;
  }

  // Hangs `node` where step `steps` of the path hangs: under the step before it, or at the root.
  void hang(Transaction& tx, const Path& path, unsigned steps, Ptr<Node> node) const {
    if (steps == 0) {
      tx.write(header_).root = node;
    } else {
      tx.write(path.node(steps - 1)).child[path.side(steps - 1)] = node;
    }
  }

  // Returns whether the key is new.
  template <detail::Present present>
  bool put(Transaction& tx, const K& key, const V& value) const;
  void repair_red(Transaction& tx, Path& path, Ptr<Node> node) const;
  void repair_black(Transaction& tx, Path& path, Ptr<Node> node) const;
  Ptr<Node> unlink(Transaction& tx, Path& path, Ptr<Node> node, bool& removed_red) const;

  // Whether `a` comes before `b` on the way that begins at the side `Near`.
  template <unsigned Near>
  static bool comes_before(const K& a, const K& b) {
    return static_cast<bool>(Near == left ? a < b : b < a);
  }

  // Calls visit(node) in key order, upwards if `Near` is left and downwards if it is right, from the
  // first key that does not come before *from (null: from the first of all), until it returns false.
  // Every 64th key must come behind the 64th before, so that whatever damage says, no walk meets
  // more than 64 times as many nodes as there are.
  template <unsigned Near, class F>
  void walk(Transaction& tx, const K* from, F&& visit) const {
    constexpr unsigned far = left + right - Near;
    Path pending;  // nodes whose near sides are done
    unsigned height = 0;
    for (Ptr<Node> at = tx.read(header_).root; at; ++height) {
      if (height == max_height) [[unlikely]]
        too_high(tx, at);
      const Node& node = tx.read(at);
      const bool skip = from != nullptr && comes_before<Near>(node.key, *from);
      if (!skip) pending.push(tx, at, Near);
      at = node.child[skip ? far : Near];
    }
    const Node* mark = nullptr;
    for (unsigned visits = 1; pending.size() != 0; ++visits) {
      const Ptr<Node> at = pending.node(pending.size() - 1);
      const Node& node = tx.read(at);
      pending.pop();
      if (visits % 64 == 0) [[unlikely]] {
        if (mark != nullptr && !comes_before<Near>(mark->key, node.key)) out_of_order(tx, at);
        mark = &node;
      }
      if (!visit(node)) return;
      for (Ptr<Node> below = node.child[far]; below; below = child(tx, below, Near)) {
        pending.push(tx, below, Near);
      }
    }
  }

  // A visitor of nodes that shows each entry to the user's. Both must outlive it.
  template <class F>
  static auto shown_to(F& visit, Transaction& tx) {
    return [&](const Node& node) {
      return detail::visit_goes_on(visit, node.key, tx.read(node.value));
    };
  }

  // The entry at which walk() begins.
  template <unsigned Near>
  std::optional<Entry> nearest(Transaction& tx, const K* from) const {
    std::optional<Entry> result;
    walk<Near>(tx, from, take_one(tx, result));
    return result;
  }

  // A visitor that keeps the first entry it is shown.
  static auto take_one(Transaction& tx, std::optional<Entry>& result) {
    return [&](const Node& node) {
      result.emplace(node.key, tx.read(node.value));
      return false;
    };
  }

  Ptr<Header> header_;
};

}  // namespace sp3

#include <sp3/containers/detail/rb_tree_change.h>
#include <sp3/containers/detail/rb_tree_check.h>

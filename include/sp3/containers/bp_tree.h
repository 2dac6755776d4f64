// BpTree<K, V>: an ordered map in a pool, as a B+ tree.
//
// Thread safety: a BpTree is a small value; its const members may be called by several threads,
//   each with its own transaction. Values are objects of their own: giving a present key a new
//   value conflicts only with uses of that key. New and erased keys conflict within their leaf, and
//   where it splits, borrows or merges, with what passes through its parent.
// Ownership and lifetime: the pool owns the tree until destroy(). A handle made by create() is good
//   once that transaction has committed; no handle may be used after destroy().
// Invariants, for fan-out F:
//   1. All leaves are `height` levels below the root (0: the root is a leaf).
//   2. Keys within a node increase. Of an inner node's children, child i holds the keys k with
//      keys[i-1] <= k < keys[i].
//   3. A leaf has F/2 to F-1 keys, an inner node (F-1)/2 to F-1 (rounded down); only the root may
//      have fewer, though at least one if it is an inner node.
//   4. `next` links every leaf to the one that follows in key order, and the last to null.
//   5. Every key names a value object of its own. Array elements at or beyond `count` mean nothing:
//      they are not cleared, for that would be logged.
// Durable: with the transaction, as everything done through it.
// Complexity: a search reads `height` inner nodes, a leaf and the value, with binary search in
//   each; height is about log(n) / log(0.7 F). A new value writes one object. A new key makes one
//   object and shifts keys and pointers, not values, in one leaf, rarely in its ancestors. range()
//   follows `next`; range_down() goes by the inner nodes above, and so conflicts with splits there.
// Source: the B+ tree of the paper's Table I; Comer, "The Ubiquitous B-Tree", ACM Computing Surveys
//   1979.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <sp3/containers/detail/damaged.h>
#include <sp3/containers/detail/put.h>
#include <sp3/containers/detail/read_whole.h>
#include <sp3/containers/detail/violation.h>
#include <sp3/containers/detail/visit.h>
#include <sp3/ptr.h>
#include <sp3/transaction.h>
#include <sp3/type.h>

namespace sp3 {

namespace detail {
// Nodes of half a kilobyte: eight cache lines, of which a binary search touches three or four.
// Wider ones save few levels and make splits and conflicts larger; narrower ones add reads to every
// search.
template <class K>
constexpr unsigned default_fanout() {
  return std::max(4U, static_cast<unsigned>(512 / (sizeof(K) + sizeof(std::uint64_t))));
}

// Makes room at `position` of the first `count` elements and puts `element` there.
template <class A, class T>
void insert_at(A& array, std::uint64_t count, unsigned position, const T& element) {
  std::copy_backward(array.begin() + position, array.begin() + count, array.begin() + count + 1);
  array[position] = element;
}
// Closes the gap that the element at `position` leaves.
template <class A>
void remove_at(A& array, std::uint64_t count, unsigned position) {
  std::copy(array.begin() + position + 1, array.begin() + count, array.begin() + position);
}
}  // namespace detail

template <Storable K, Storable V, unsigned Fanout = detail::default_fanout<K>()>
requires detail::Ordered<K> && std::default_initializable<K>
class BpTree {
 public:
  static_assert(Fanout >= 4, "below 4 an inner node of minimal size could not give up a child");
  static constexpr unsigned max_keys = Fanout - 1;
  static constexpr unsigned min_leaf_keys = Fanout / 2;
  static constexpr unsigned min_inner_keys = (Fanout - 1) / 2;

  struct Leaf {
    using Holds = detail::Holds<K>;
    std::uint64_t count;
    Ptr<Leaf> next;
    std::array<K, max_keys> keys;
    std::array<Ptr<V>, max_keys> values;
  };
  struct Inner {
    using Holds = detail::Holds<K>;
    std::uint64_t count;  // of keys; one child more
    std::array<K, max_keys> keys;
    std::array<std::uint64_t, Fanout> children;  // offsets of leaves or, higher up, of inner nodes
  };

  // What names the tree in the pool; written only when the height changes.
  struct Header {
    std::uint64_t height;
    std::uint64_t root;  // the offset of a leaf or inner node
  };

  using Entry = std::pair<K, V>;

  BpTree() noexcept = default;

  // A new, empty tree.
  static BpTree create(Transaction& tx) {
    const Ptr<Leaf> root = tx.make<Leaf>();
    return BpTree(tx.make<Header>(std::uint64_t{0}, root.offset()));
  }

  // The tree that `header` names.
  static BpTree open(Transaction& tx, Ptr<Header> header) {
    static_cast<void>(tx.read(header));  // reports a wrong Ptr here, not at first use
    return BpTree(header);
  }

  // The value of `key`, valid to the end of the transaction; null if there is none. It stays as it
  // is now, unless the transaction has changed something near it before: then it may show later
  // writes.
  [[nodiscard]] const V* lookup(Transaction& tx, const K& key) const {
    const Leaf& leaf = read_leaf(tx, descend(tx, key));
    const unsigned position = lower_position(leaf, key);
    return holds(leaf, position, key) ? &tx.read(leaf.values[position]) : nullptr;
  }

  // A copy of the value of `key`.
  [[nodiscard]] std::optional<V> find(Transaction& tx, const K& key) const {
    const V* value = lookup(tx, key);
    return value == nullptr ? std::nullopt : std::optional<V>(*value);
  }

  [[nodiscard]] bool contains(Transaction& tx, const K& key) const {
    const Leaf& leaf = read_leaf(tx, descend(tx, key));
    return holds(leaf, lower_position(leaf, key), key);
  }

  // The value of `key`, to be changed in place until the transaction ends; null if there is none.
  // As Transaction::write: of a value that changes little, little is logged.
  [[nodiscard]] V* write(Transaction& tx, const K& key) const {
    const Leaf& leaf = read_leaf(tx, descend(tx, key));
    const unsigned position = lower_position(leaf, key);
    return holds(leaf, position, key) ? &tx.write(leaf.values[position]) : nullptr;
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
    std::optional<Entry> result;
    walk(tx, descend(tx, key), &key, take_one(tx, result));
    return result;
  }

  // The entry with the least key that is greater than `key`.
  [[nodiscard]] std::optional<Entry> upper_bound(Transaction& tx, const K& key) const {
    std::optional<Entry> result;
    const auto take = take_one(tx, result);
    walk(tx, descend(tx, key), &key,
         [&](const K& found, Ptr<V> value) { return !(key < found) || take(found, value); });
    return result;
  }

  // The entry with the greatest key that is not greater than `key`.
  [[nodiscard]] std::optional<Entry> floor(Transaction& tx, const K& key) const {
    std::optional<Entry> result;
    walk_down(tx, &key, take_one(tx, result));
    return result;
  }

  // The entries with the least key and with the greatest.
  [[nodiscard]] std::optional<Entry> first(Transaction& tx) const {
    std::optional<Entry> result;
    walk(tx, first_leaf(tx), nullptr, take_one(tx, result));
    return result;
  }
  [[nodiscard]] std::optional<Entry> last(Transaction& tx) const {
    std::optional<Entry> result;
    walk_down(tx, nullptr, take_one(tx, result));
    return result;
  }

  // Calls visit(key, value) in order for every key k with from <= k < to; a visitor that returns
  // false ends the walk. It must not change the tree.
  template <class F>
  void range(Transaction& tx, const K& from, const K& to, F&& visit) const {
    const auto show = shown_to(visit, tx);
    walk(tx, descend(tx, from), &from,
         [&](const K& key, Ptr<V> value) { return key < to && show(key, value); });
  }

  // As range(), for every key k with from <= k: the greatest there can be is below no `to`.
  template <class F>
  void range(Transaction& tx, const K& from, F&& visit) const {
    walk(tx, descend(tx, from), &from, shown_to(visit, tx));
  }

  // As range(), for all keys.
  template <class F>
  void for_each(Transaction& tx, F&& visit) const {
    walk(tx, first_leaf(tx), nullptr, shown_to(visit, tx));
  }

  // As range(), from the greatest key down: every key k with from >= k > to.
  template <class F>
  void range_down(Transaction& tx, const K& from, const K& to, F&& visit) const {
    const auto show = shown_to(visit, tx);
    walk_down(tx, &from, [&](const K& key, Ptr<V> value) { return to < key && show(key, value); });
  }

  // As range_down(), for every key k with from >= k: the least there can be is above no `to`.
  template <class F>
  void range_down(Transaction& tx, const K& from, F&& visit) const {
    walk_down(tx, &from, shown_to(visit, tx));
  }

  // As range_down(), for all keys.
  template <class F>
  void for_each_down(Transaction& tx, F&& visit) const {
    walk_down(tx, nullptr, shown_to(visit, tx));
  }

  // The number of keys, by walking the leaves: a counter would be written by all.
  [[nodiscard]] std::uint64_t size(Transaction& tx) const {
    const Leaf* leaf = &read_count(tx, first_leaf(tx));
    std::uint64_t count = leaf->count;
    while (leaf->next) {
      leaf = &read_beyond(tx, *leaf, leaf->next, true);
      count += leaf->count;
    }
    return count;
  }

  [[nodiscard]] bool empty(Transaction& tx) const {
    const Header& header = tx.read(header_);
    return header.height == 0 && tx.read(Ptr<Leaf>::from_offset(header.root)).count == 0;
  }

  // Erases up to `limit` keys, least first: emptying a large tree in several transactions.
  // Returns whether the tree is empty.
  bool drain(Transaction& tx, std::uint64_t limit) const {
    for (; limit > 0 && !empty(tx); --limit) {
      const Ptr<Leaf> first = first_leaf(tx);
      const K key = tx.read(first).keys[0];
      if (!erase(tx, key)) [[unlikely]]  // else without end
        out_of_order(tx, first);
    }
    return empty(tx);
  }

  // Frees everything, the header included.
  void destroy(Transaction& tx) const {
    const Header header = tx.read(header_);
    destroy_subtree(tx, header.root, height_in(tx, header));
    tx.destroy(header_);
  }

  // Empty if the invariants hold; else a sentence that names the violation.
  [[nodiscard]] std::string check_invariants(Transaction& tx) const;

  [[nodiscard]] Ptr<Header> header() const noexcept { return header_; }

 private:
  struct Check;

  static constexpr unsigned max_height = 64;  // inner nodes have at least two children

  // The inner nodes from the root down, and which child was taken in each. Left uninitialised until
  // pushed: clearing it would cost more than the descent.
  class Path {
   public:
    Path() noexcept {}  // NOLINT(modernize-use-equals-default): `= default` would clear the arrays
    void push(Ptr<Inner> node, unsigned index) noexcept {
      assert(size_ < max_height);
      nodes_[size_] = node.offset();
      indices_[size_++] = index;
    }
    void pop() noexcept { --size_; }
    void step_left() noexcept { --indices_[size_ - 1]; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] unsigned size() const noexcept { return size_; }
    [[nodiscard]] Ptr<Inner> node() const noexcept {
      return Ptr<Inner>::from_offset(nodes_[size_ - 1]);
    }
    [[nodiscard]] unsigned index() const noexcept { return indices_[size_ - 1]; }

   private:
    std::array<std::uint64_t, max_height> nodes_;
    std::array<unsigned, max_height> indices_;
    unsigned size_ = 0;
  };

  explicit BpTree(Ptr<Header> header) noexcept : header_(header) {}

  // What nodes say is believed only as far as it leads to no place outside of them: who enters one
  // looks at its count, and who sets out at the height.
  std::uint64_t height_in(Transaction& tx, const Header& header) const {
    if (header.height > max_height) [[unlikely]]
      detail::exceeded(tx, header_, "a B+ tree is too high", max_height, header.height);
    return header.height;
  }
  template <class Node>
  static const Node& counted(Transaction& tx, Ptr<Node> name, const Node& node) {
    if (node.count > max_keys) [[unlikely]]
      detail::exceeded(tx, name, "a node of a B+ tree has too many keys", max_keys, node.count);
    return node;
  }
  template <class Node>
  static const Node& read_count(Transaction& tx, Ptr<Node> name) {
    return counted(tx, name, tx.read(name));
  }
  static const Leaf& read_leaf(Transaction& tx, Ptr<Leaf> name) {
    return counted(tx, name, detail::read_whole(tx, name));
  }
  // The leaf at which a walk arrives after `from`, upwards or downwards. As first keys must go on in
  // that direction, no leaf is met twice.
  static const Leaf& read_beyond(Transaction& tx, const Leaf& from, Ptr<Leaf> name, bool upwards) {
    const Leaf& leaf = upwards ? read_count(tx, name) : read_leaf(tx, name);
    const K& low = upwards ? from.keys[0] : leaf.keys[0];
    const K& high = upwards ? leaf.keys[0] : from.keys[0];
    if (from.count == 0 || leaf.count == 0 || !(low < high)) [[unlikely]]
      out_of_order(tx, name);
    return leaf;
  }
  template <class Node>
  [[noreturn]] static void out_of_order(Transaction& tx, Ptr<Node> name) {
    detail::damaged(tx, name, "a B+ tree is out of order", "a node at its place", name.offset());
  }

  // The position of the first key that is not less than `key`.
  static unsigned lower_position(const Leaf& leaf, const K& key) {
    const auto end = leaf.keys.begin() + leaf.count;
    const auto less = [](const K& a, const K& b) { return static_cast<bool>(a < b); };
    return static_cast<unsigned>(std::lower_bound(leaf.keys.begin(), end, key, less) -
                                 leaf.keys.begin());
  }
  static bool holds(const Leaf& leaf, unsigned position, const K& key) {
    return position < leaf.count && !(key < leaf.keys[position]);
  }
  // The index of the child whose subtree is the place for `key`.
  static unsigned child_index(const Inner& inner, const K& key) {
    const auto end = inner.keys.begin() + inner.count;
    const auto less = [](const K& a, const K& b) { return static_cast<bool>(a < b); };
    return static_cast<unsigned>(std::upper_bound(inner.keys.begin(), end, key, less) -
                                 inner.keys.begin());
  }

  // The leaf that is the place for `key`.
  Ptr<Leaf> descend(Transaction& tx, const K& key, Path* path = nullptr) const {
    const Header& header = tx.read(header_);
    std::uint64_t at = header.root;
    for (std::uint64_t level = height_in(tx, header); level > 0; --level) {
      const Ptr<Inner> name = Ptr<Inner>::from_offset(at);
      const Inner& inner = read_count(tx, name);
      const unsigned index = child_index(inner, key);
      if (path != nullptr) path->push(name, index);
      at = inner.children[index];
    }
    return Ptr<Leaf>::from_offset(at);
  }

  Ptr<Leaf> first_leaf(Transaction& tx) const {
    const Header& header = tx.read(header_);
    std::uint64_t at = header.root;
    for (std::uint64_t level = height_in(tx, header); level > 0; --level) {
      at = tx.read(Ptr<Inner>::from_offset(at)).children[0];
    }
    return Ptr<Leaf>::from_offset(at);
  }

  // Calls visit(key, value) from `leaf` on, skipping keys less than *from, until it returns false.
  // Values are asked for ahead, and behind a leaf's last value the next leaf: the further the longer
  // the walk already is, so that who wants one entry pays for no other.
  template <class F>
  void walk(Transaction& tx, Ptr<Leaf> leaf, const K* from, F&& visit) const {
    constexpr unsigned kFurthest = 7;
    unsigned ahead = 0;
    const Leaf* at = from == nullptr ? &read_count(tx, leaf) : &read_leaf(tx, leaf);
    unsigned i = from == nullptr ? 0 : lower_position(*at, *from);
    for (;; i = 0) {
      const Leaf& contents = *at;
      const auto count = static_cast<unsigned>(contents.count);
      for (unsigned asked = i + 1; i < count; ++i) {
        for (; asked < std::min(count + 1, i + 1 + ahead); ++asked) {
          if (asked < count) {
            tx.prefetch(contents.values[asked]);
          } else {
            tx.prefetch(contents.next);
          }
        }
        if (ahead < kFurthest) ahead = 2 * ahead + 1;
        if (!visit(contents.keys[i], contents.values[i])) return;
      }
      if (!contents.next) return;
      at = &read_beyond(tx, contents, contents.next, true);
    }
  }

  // The last leaf below the node at `at`, whose leaves are `levels` below it; the path goes on to it.
  static Ptr<Leaf> last_leaf(Transaction& tx, std::uint64_t at, std::uint64_t levels, Path& path) {
    for (; levels > 0; --levels) {
      const Ptr<Inner> name = Ptr<Inner>::from_offset(at);
      const Inner& inner = read_count(tx, name);
      path.push(name, static_cast<unsigned>(inner.count));
      at = inner.children[inner.count];
    }
    return Ptr<Leaf>::from_offset(at);
  }

  // Calls visit(key, value) downwards, from the greatest key not greater than *from (null: from the
  // greatest of all), until it returns false. Leaves have no links back: the path leads to the leaf
  // before.
  template <class F>
  void walk_down(Transaction& tx, const K* from, F&& visit) const {
    const Header& header = tx.read(header_);
    const std::uint64_t height = height_in(tx, header);
    Path path;
    const Leaf* at = &read_leaf(
        tx, from == nullptr ? last_leaf(tx, header.root, height, path) : descend(tx, *from, &path));
    for (const K* most = from;; most = nullptr) {
      const Leaf& contents = *at;
      auto i = static_cast<unsigned>(contents.count);
      if (most != nullptr) {
        const unsigned position = lower_position(contents, *most);
        i = holds(contents, position, *most) ? position + 1 : position;
      }
      while (i-- > 0) {
        if (!visit(contents.keys[i], contents.values[i])) return;
      }
      while (!path.empty() && path.index() == 0) path.pop();
      if (path.empty()) return;
      path.step_left();
      const std::uint64_t before = tx.read(path.node()).children[path.index()];
      at = &read_beyond(tx, contents, last_leaf(tx, before, height - path.size(), path), false);
    }
  }

  // A visitor that shows each entry to the user's. Both must outlive it.
  template <class F>
  static auto shown_to(F& visit, Transaction& tx) {
    return [&](const K& key, Ptr<V> value) {
      return detail::visit_goes_on(visit, key, tx.read(value));
    };
  }

  // A visitor that keeps the first entry it is shown.
  static auto take_one(Transaction& tx, std::optional<Entry>& result) {
    return [&](const K& key, Ptr<V> value) {
      result.emplace(key, tx.read(value));
      return false;
    };
  }

  // Returns whether the key is new.
  template <detail::Present present>
  bool put(Transaction& tx, const K& key, const V& value) const;
  void split_leaf(Transaction& tx, Path& path, Ptr<Leaf> leaf, unsigned position, const K& key,
                  Ptr<V> value) const;
  void insert_child(Transaction& tx, Path& path, K key, std::uint64_t child) const;
  std::uint64_t split_inner(Transaction& tx, Ptr<Inner> node, unsigned position, K& key,
                            std::uint64_t child) const;
  bool borrow_for_leaf(Transaction& tx, const Path& path, Ptr<Leaf> leaf) const;
  bool borrow_for_inner(Transaction& tx, const Path& path, Ptr<Inner> node) const;
  static void require_room(Transaction& tx, const Path& path, std::uint64_t keys, unsigned most);
  unsigned merge_leaf(Transaction& tx, const Path& path) const;
  unsigned merge_inner(Transaction& tx, const Path& path) const;
  void remove_child(Transaction& tx, Path& path, unsigned separator) const;
  void destroy_subtree(Transaction& tx, std::uint64_t offset, std::uint64_t level) const;

  Ptr<Header> header_;
};

}  // namespace sp3

#include <sp3/containers/detail/bp_tree_check.h>
#include <sp3/containers/detail/bp_tree_erase.h>
#include <sp3/containers/detail/bp_tree_insert.h>

// BpTree: insertion. Included by bp_tree.h.
//
// A full leaf splits into halves and hands its parent the first key of the right half; a full inner
// node splits likewise and hands up its middle key, which it no longer holds. When the root
// splits, the tree grows by a level on top.
#pragma once

#include <sp3/containers/bp_tree.h>

namespace sp3 {

template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K>
template <detail::Present present>
bool BpTree<K, V, Fanout>::put(Transaction& tx, const K& key, const V& value) const {
  Path path;
  const Ptr<Leaf> name = descend(tx, key, &path);
  const Leaf& leaf = read_leaf(tx, name);
  const unsigned position = lower_position(leaf, key);
  if (holds(leaf, position, key)) {
    if constexpr (present == detail::Present::is_replaced) {
      detail::put(tx, leaf.values[position], value);
    }
    return false;
  }
  const Ptr<V> object = tx.make<V>(value);
  if (leaf.count == max_keys) {
    split_leaf(tx, path, name, position, key, object);
    return true;
  }
  Leaf& changed = tx.write(name);
  detail::insert_at(changed.keys, changed.count, position, key);
  detail::insert_at(changed.values, changed.count, position, object);
  ++changed.count;
  return true;
}

template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K>
void BpTree<K, V, Fanout>::split_leaf(Transaction& tx, Path& path, Ptr<Leaf> leaf,
                                      unsigned position, const K& key, Ptr<V> value) const {
  constexpr unsigned left_keys = Fanout - min_leaf_keys;  // of max_keys + 1 = Fanout in all
  const Ptr<Leaf> sibling = tx.make<Leaf>();
  Leaf& l = tx.write(leaf);
  Leaf& r = tx.write(sibling);
  const bool goes_left = position < left_keys;
  const unsigned moved_from = goes_left ? left_keys - 1 : left_keys;
  r.count = max_keys - moved_from;
  std::copy_n(l.keys.begin() + moved_from, r.count, r.keys.begin());
  std::copy_n(l.values.begin() + moved_from, r.count, r.values.begin());
  l.count = moved_from;
  Leaf& target = goes_left ? l : r;
  const unsigned at = goes_left ? position : position - left_keys;
  detail::insert_at(target.keys, target.count, at, key);
  detail::insert_at(target.values, target.count, at, value);
  ++target.count;
  r.next = l.next;
  l.next = sibling;
  insert_child(tx, path, r.keys[0], sibling.offset());
}

// Inserts `child`, whose least key is `key`, to the right of the child that the path leads to.
template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K>
void BpTree<K, V, Fanout>::insert_child(Transaction& tx, Path& path, K key,
                                        std::uint64_t child) const {
  for (; !path.empty(); path.pop()) {
    const unsigned position = path.index();
    const std::uint64_t count = read_count(tx, path.node()).count;
    if (position > count) [[unlikely]]  // not so on the way down: one node in two places
      out_of_order(tx, path.node());
    if (count < max_keys) {
      Inner& inner = tx.write(path.node());
      detail::insert_at(inner.keys, inner.count, position, key);
      detail::insert_at(inner.children, inner.count + 1, position + 1, child);
      ++inner.count;
      return;
    }
    child = split_inner(tx, path.node(), position, key, child);
  }
  const Ptr<Inner> root = tx.make<Inner>();
  Header& header = tx.write(header_);
  Inner& inner = tx.write(root);
  inner.count = 1;
  inner.keys[0] = key;
  inner.children[0] = header.root;
  inner.children[1] = child;
  header.root = root.offset();
  ++header.height;
}

// Splits the full inner node `node` while it takes in `key` at `position` and `child` right of it.
// Returns the new sibling; `key` becomes what separates the two.
template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K> std::uint64_t
BpTree<K, V, Fanout>::split_inner(Transaction& tx, Ptr<Inner> node, unsigned position, K& key,
                                  std::uint64_t child)
const {
  // One key and one child too many, for a moment.
  std::array<K, max_keys + 1> keys;
  std::array<std::uint64_t, Fanout + 1> children;
  const Inner& full = tx.read(node);
  std::copy_n(full.keys.begin(), max_keys, keys.begin());
  std::copy_n(full.children.begin(), Fanout, children.begin());
  detail::insert_at(keys, max_keys, position, key);
  detail::insert_at(children, Fanout, position + 1, child);

  constexpr unsigned right_keys = min_inner_keys;
  constexpr unsigned left_keys = max_keys - right_keys;
  const Ptr<Inner> sibling = tx.make<Inner>();
  Inner& l = tx.write(node);
  Inner& r = tx.write(sibling);
  l.count = left_keys;
  std::copy_n(keys.begin(), left_keys, l.keys.begin());
  std::copy_n(children.begin(), left_keys + 1, l.children.begin());
  r.count = right_keys;
  std::copy_n(keys.begin() + left_keys + 1, right_keys, r.keys.begin());
  std::copy_n(children.begin() + left_keys + 1, right_keys + 1, r.children.begin());
  key = keys[left_keys];
  return sibling.offset();
}

}  // namespace sp3

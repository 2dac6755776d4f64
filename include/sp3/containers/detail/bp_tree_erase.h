// BpTree: removal. Included by bp_tree.h.
//
// A node that falls below its minimum borrows from a neighbour under the same parent, or, if both
// neighbours are at their minimum, merges with one. A merge takes a key from the parent, which may
// then be too small in turn. An inner root without keys gives way to its only child.
//
// The right one of two merged leaves goes away, so only the left one's `next` changes and no leaf
// under another parent is touched.
#pragma once

#include <sp3/containers/bp_tree.h>

namespace sp3 {

template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K>
bool BpTree<K, V, Fanout>::erase(Transaction& tx, const K& key) const {
  Path path;
  const Ptr<Leaf> name = descend(tx, key, &path);
  const unsigned position = lower_position(read_count(tx, name), key);
  if (!holds(tx.read(name), position, key)) return false;
  Leaf& leaf = tx.write(name);
  tx.destroy(leaf.values[position]);
  detail::remove_at(leaf.keys, leaf.count, position);
  detail::remove_at(leaf.values, leaf.count, position);
  --leaf.count;
  if (leaf.count >= min_leaf_keys || path.empty()) return true;
  if (!borrow_for_leaf(tx, path, name)) remove_child(tx, path, merge_leaf(tx, path));
  return true;
}

template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K>
bool BpTree<K, V, Fanout>::borrow_for_leaf(Transaction& tx, const Path& path,
                                           Ptr<Leaf> leaf) const {
  const Inner& parent = tx.read(path.node());
  const unsigned index = path.index();
  if (index > 0) {
    const Ptr<Leaf> neighbour = Ptr<Leaf>::from_offset(parent.children[index - 1]);
    if (read_count(tx, neighbour).count > min_leaf_keys) {
      Leaf& from = tx.write(neighbour);
      Leaf& to = tx.write(leaf);
      --from.count;
      detail::insert_at(to.keys, to.count, 0, from.keys[from.count]);
      detail::insert_at(to.values, to.count, 0, from.values[from.count]);
      ++to.count;
      tx.write(path.node()).keys[index - 1] = to.keys[0];
      return true;
    }
  }
  if (index < parent.count) {
    const Ptr<Leaf> neighbour = Ptr<Leaf>::from_offset(parent.children[index + 1]);
    if (read_count(tx, neighbour).count > min_leaf_keys) {
      Leaf& from = tx.write(neighbour);
      Leaf& to = tx.write(leaf);
      to.keys[to.count] = from.keys[0];
      to.values[to.count] = from.values[0];
      ++to.count;
      detail::remove_at(from.keys, from.count, 0);
      detail::remove_at(from.values, from.count, 0);
      --from.count;
      tx.write(path.node()).keys[index] = from.keys[0];
      return true;
    }
  }
  return false;
}

// Neighbours too small to give anything fit into one node, if they are two, and sound.
template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K>
void BpTree<K, V, Fanout>::require_room(Transaction& tx, const Path& path, std::uint64_t keys,
                                        unsigned most) {
  if (keys > most) [[unlikely]]
    detail::exceeded(tx, path.node(), "two nodes of a B+ tree do not fit in one", most, keys);
}

// Merges the leaf to which the path leads with a neighbour. Returns the separator that is void now.
template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K>
unsigned BpTree<K, V, Fanout>::merge_leaf(Transaction& tx, const Path& path) const {
  const Inner& parent = tx.read(path.node());
  const unsigned separator = path.index() > 0 ? path.index() - 1 : 0;
  const Ptr<Leaf> gone = Ptr<Leaf>::from_offset(parent.children[separator + 1]);
  Leaf& l = tx.write(Ptr<Leaf>::from_offset(parent.children[separator]));
  const Leaf& r = read_count(tx, gone);
  require_room(tx, path, l.count + r.count, max_keys);
  std::copy_n(r.keys.begin(), r.count, l.keys.begin() + l.count);
  std::copy_n(r.values.begin(), r.count, l.values.begin() + l.count);
  l.count += r.count;
  l.next = r.next;
  tx.destroy(gone);
  return separator;
}

template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K>
bool BpTree<K, V, Fanout>::borrow_for_inner(Transaction& tx, const Path& path,
                                            Ptr<Inner> node) const {
  const Inner& parent = tx.read(path.node());
  const unsigned index = path.index();
  if (index > 0) {
    const Ptr<Inner> neighbour = Ptr<Inner>::from_offset(parent.children[index - 1]);
    if (read_count(tx, neighbour).count > min_inner_keys) {
      Inner& from = tx.write(neighbour);
      Inner& to = tx.write(node);
      K& separator = tx.write(path.node()).keys[index - 1];
      detail::insert_at(to.keys, to.count, 0, separator);
      detail::insert_at(to.children, to.count + 1, 0, from.children[from.count]);
      ++to.count;
      --from.count;
      separator = from.keys[from.count];
      return true;
    }
  }
  if (index < parent.count) {
    const Ptr<Inner> neighbour = Ptr<Inner>::from_offset(parent.children[index + 1]);
    if (read_count(tx, neighbour).count > min_inner_keys) {
      Inner& from = tx.write(neighbour);
      Inner& to = tx.write(node);
      K& separator = tx.write(path.node()).keys[index];
      to.keys[to.count] = separator;
      to.children[to.count + 1] = from.children[0];
      ++to.count;
      separator = from.keys[0];
      detail::remove_at(from.keys, from.count, 0);
      detail::remove_at(from.children, from.count + 1, 0);
      --from.count;
      return true;
    }
  }
  return false;
}

// As merge_leaf(); what separated the two comes down between their keys.
template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K>
unsigned BpTree<K, V, Fanout>::merge_inner(Transaction& tx, const Path& path) const {
  const Inner& parent = tx.read(path.node());
  const unsigned separator = path.index() > 0 ? path.index() - 1 : 0;
  const Ptr<Inner> gone = Ptr<Inner>::from_offset(parent.children[separator + 1]);
  Inner& l = tx.write(Ptr<Inner>::from_offset(parent.children[separator]));
  const Inner& r = read_count(tx, gone);
  require_room(tx, path, l.count + r.count, max_keys - 1);
  l.keys[l.count] = parent.keys[separator];
  std::copy_n(r.keys.begin(), r.count, l.keys.begin() + l.count + 1);
  std::copy_n(r.children.begin(), r.count + 1, l.children.begin() + l.count + 1);
  l.count += r.count + 1;
  tx.destroy(gone);
  return separator;
}

// Takes key `separator`, and the child right of it, out of the inner node at the end of the path.
template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K>
void BpTree<K, V, Fanout>::remove_child(Transaction& tx, Path& path, unsigned separator) const {
  for (;;) {
    const Ptr<Inner> name = path.node();
    Inner& inner = tx.write(name);
    if (separator >= inner.count) [[unlikely]]  // not so on the way down: one node in two places
      out_of_order(tx, name);
    detail::remove_at(inner.keys, inner.count, separator);
    detail::remove_at(inner.children, inner.count + 1, separator + 1);
    --inner.count;
    path.pop();
    if (path.empty()) {
      if (inner.count > 0) return;
      Header& header = tx.write(header_);
      header.root = inner.children[0];
      --header.height;
      tx.destroy(name);
      return;
    }
    if (inner.count >= min_inner_keys || borrow_for_inner(tx, path, name)) return;
    separator = merge_inner(tx, path);
  }
}

template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K>
void BpTree<K, V, Fanout>::destroy_subtree(Transaction& tx, std::uint64_t offset,
                                           std::uint64_t level) const {
  if (level == 0) {
    const Ptr<Leaf> leaf = Ptr<Leaf>::from_offset(offset);
    const Leaf& contents = read_count(tx, leaf);
    for (unsigned i = 0; i < contents.count; ++i) tx.destroy(contents.values[i]);
    tx.destroy(leaf);
    return;
  }
  const Ptr<Inner> inner = Ptr<Inner>::from_offset(offset);
  const Inner& contents = read_count(tx, inner);
  for (unsigned i = 0; i <= contents.count; ++i) {
    destroy_subtree(tx, contents.children[i], level - 1);
  }
  tx.destroy(inner);
}

}  // namespace sp3

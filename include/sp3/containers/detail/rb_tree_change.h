// RbTree: insertion and removal. Included by rb_tree.h.
//
// Both go down once, keeping the path, and come up as far as a rule is broken. Restructuring is
// written out as the words that change rather than as rotations: a double rotation done in two
// steps would write one node twice and, in between, words that do not last.
#pragma once

#include <sp3/containers/rb_tree.h>

namespace sp3 {

template <Storable K, Storable V>
requires detail::Ordered<K>
template <detail::Present present>
bool RbTree<K, V>::put(Transaction& tx, const K& key, const V& value) const {
  Path path;
  const Found found =
      search(tx, key, [&](Ptr<Node> at, unsigned side) { path.push(tx, at, side); });
  if (found.at) {
    if constexpr (present == detail::Present::is_replaced) {
      detail::put(tx, found.node->value, value);
    }
    return false;
  }
  const std::uint64_t red = path.size() == 0 ? 0 : 1;
  const Ptr<Node> node = tx.make<Node>(key, std::array<Ptr<Node>, 2>{}, red, tx.make<V>(value));
  hang(tx, path, path.size(), node);
  repair_red(tx, path, node);
  return true;
}

// `node` is red and hangs at the end of the path; its parent may be red too.
template <Storable K, Storable V>
requires detail::Ordered<K>
void RbTree<K, V>::repair_red(Transaction& tx, Path& path, Ptr<Node> node) const {
  while (path.size() >= 2) {
    const unsigned last = path.size() - 1;
    const Ptr<Node> parent = path.node(last);
    if (!is_red(tx, parent)) return;
    const Ptr<Node> grand = path.node(last - 1);
    const unsigned side = path.side(last - 1);
    const Ptr<Node> uncle = child(tx, grand, 1 - side);
    if (is_red(tx, uncle)) {
      set_red(tx, parent, false);
      set_red(tx, uncle, false);
      if (last == 1) return;  // the grandparent is the root and stays black
      set_red(tx, grand, true);
      node = grand;
      path.pop(2);
      continue;
    }
    Ptr<Node> top = parent;
    if (path.side(last) == side) {
      tx.write(grand).child[side] = child(tx, parent, 1 - side);
    } else {
      top = node;
      tx.write(parent).child[1 - side] = child(tx, node, side);
      tx.write(grand).child[side] = child(tx, node, 1 - side);
      tx.write(node).child[side] = parent;
    }
    tx.write(top).child[1 - side] = grand;
    set_red(tx, top, false);
    set_red(tx, grand, true);
    hang(tx, path, last - 1, top);
    return;
  }
}

template <Storable K, Storable V>
requires detail::Ordered<K>
bool RbTree<K, V>::erase(Transaction& tx, const K& key) const {
  Path path;
  const Found found =
      search(tx, key, [&](Ptr<Node> at, unsigned side) { path.push(tx, at, side); });
  if (!found.at) return false;
  const Ptr<V> value = found.node->value;
  bool removed_red = false;
  const Ptr<Node> orphan = unlink(tx, path, found.at, removed_red);
  tx.destroy(found.at);
  tx.destroy(value);
  if (!removed_red) repair_black(tx, path, orphan);
  return true;
}

// Takes `node`, which hangs at the end of the path, out of the tree. A node with two children has
// its place, colour included, taken by its successor. Returns the subtree (perhaps null) that moved
// up where a node is now missing, with `path` leading there, and the colour that is missing.
template <Storable K, Storable V>
requires detail::Ordered<K>
auto RbTree<K, V>::unlink(Transaction& tx, Path& path, Ptr<Node> node, bool& removed_red) const
    -> Ptr<Node> {
  const Node gone = tx.read(node);
  const unsigned place = path.size();
  if (!gone.child[left] || !gone.child[right]) {
    const Ptr<Node> orphan = gone.child[gone.child[left] ? left : right];
    hang(tx, path, place, orphan);
    removed_red = gone.red != 0;
    return orphan;
  }
  path.push(tx, node, right);
  Ptr<Node> successor = gone.child[right];
  while (const Ptr<Node> below = child(tx, successor, left)) {
    path.push(tx, successor, left);
    successor = below;
  }
  removed_red = is_red(tx, successor);
  const Ptr<Node> orphan = child(tx, successor, right);
  path.replace(place, successor);
  if (path.size() != place + 1) {  // not the child itself: its old parent gets what it leaves
    tx.write(path.node(path.size() - 1)).child[left] = orphan;
    tx.write(successor).child[right] = gone.child[right];
  }
  tx.write(successor).child[left] = gone.child[left];
  set_red(tx, successor, gone.red != 0);
  hang(tx, path, place, successor);
  return orphan;
}

// The paths through `node` (perhaps null), which hangs at the end of the path, lack a black node.
template <Storable K, Storable V>
requires detail::Ordered<K>
void RbTree<K, V>::repair_black(Transaction& tx, Path& path, Ptr<Node> node) const {
  while (path.size() > 0 && !is_red(tx, node)) {
    const unsigned last = path.size() - 1;
    const Ptr<Node> parent = path.node(last);
    const unsigned side = path.side(last);
    const unsigned other = 1 - side;
    const Ptr<Node> sibling = child(tx, parent, other);
    if (!sibling) [[unlikely]]  // its side has at least one black node more
      detail::damaged(tx, parent, "a node of a red-black tree lacks a child", "an object", 0);
    if (is_red(tx, sibling)) {
      // Put the red sibling above the parent; the new sibling is black.
      tx.write(parent).child[other] = child(tx, sibling, side);
      tx.write(sibling).child[side] = parent;
      set_red(tx, sibling, false);
      set_red(tx, parent, true);
      hang(tx, path, last, sibling);
      path.replace(last, sibling);
      path.push(tx, parent, side);
      continue;
    }
    const Ptr<Node> near = child(tx, sibling, side);
    const Ptr<Node> far = child(tx, sibling, other);
    if (!is_red(tx, near) && !is_red(tx, far)) {
      set_red(tx, sibling, true);
      node = parent;
      path.pop();
      continue;
    }
    Ptr<Node> top = sibling;
    if (is_red(tx, far)) {
      tx.write(parent).child[other] = near;
      set_red(tx, far, false);
    } else {
      top = near;
      tx.write(parent).child[other] = child(tx, near, side);
      tx.write(sibling).child[side] = child(tx, near, other);
      tx.write(near).child[other] = sibling;
    }
    tx.write(top).child[side] = parent;
    set_red(tx, top, is_red(tx, parent));
    set_red(tx, parent, false);
    hang(tx, path, last, top);
    return;
  }
  if (node) set_red(tx, node, false);
}

}  // namespace sp3

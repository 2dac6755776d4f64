// RbTree: the invariants, checked. Included by rb_tree.h.
#pragma once

#include <unordered_set>

#include <sp3/containers/rb_tree.h>

namespace sp3 {

// Walks the tree. `error` is the first violation met.
template <Storable K, Storable V>
requires detail::Ordered<K>
struct RbTree<K, V>::Check {
  Transaction& tx;
  std::string error;
  std::unordered_set<std::uint64_t> values;  // offsets

  void fail(Ptr<Node> at, const std::string& what) {
    if (error.empty()) error = "The node at " + std::to_string(at.offset()) + " " + what + ".";
  }

  // The number of black nodes on each way down from `at`, whose keys must lie between the keys
  // `above` and `below` (null: no bound). A circle would break the order or the height, so this
  // ends.
  std::uint64_t black_height(Ptr<Node> at, const K* above, const K* below, bool red_parent,
                             unsigned depth) {
    if (!at || !error.empty()) return 0;
    const Node& node = tx.read(at);
    if (depth > max_height) {
      fail(at, "is " + std::to_string(depth) + " levels deep");
    } else if (node.red > 1) {
      fail(at, "has colour " + std::to_string(node.red));
    } else if (node.red != 0 && red_parent) {
      fail(at, depth == 0 ? "is the root and red" : "is red and so is its parent");
    } else if (above != nullptr && !(*above < node.key)) {
      fail(at, "is right of a key that is not less than its own");
    } else if (below != nullptr && !(node.key < *below)) {
      fail(at, "is left of a key that is not greater than its own");
    } else if (!values.insert(node.value.offset()).second) {
      fail(at, "has the value at " + std::to_string(node.value.offset()) + ", as another has");
    } else {
      static_cast<void>(tx.read(node.value));  // throws if there is no such object
    }
    const bool red = node.red != 0;
    const std::uint64_t l = black_height(node.child[left], above, &node.key, red, depth + 1);
    const std::uint64_t r = black_height(node.child[right], &node.key, below, red, depth + 1);
    if (l != r) {
      fail(at, "has " + std::to_string(l) + " black nodes below on the left and " +
                   std::to_string(r) + " on the right");
    }
    return l + (red ? 0 : 1);
  }
};

template <Storable K, Storable V>
requires detail::Ordered<K> std::string RbTree<K, V>::check_invariants(Transaction& tx)
const {
  return detail::violation_in([&] {
    Check check{tx, {}, {}};
    // A red root is reported as if it had a red parent.
    check.black_height(tx.read(header_).root, nullptr, nullptr, true, 0);
    return check.error;
  });
}

}  // namespace sp3

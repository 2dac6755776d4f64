// BpTree: the invariants, checked. Included by bp_tree.h.
#pragma once

#include <unordered_set>
#include <vector>

#include <sp3/containers/bp_tree.h>

namespace sp3 {

// Walks the tree; every member returns the first violation it meets.
template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K>
struct BpTree<K, V, Fanout>::Check {
  Transaction& tx;
  std::uint64_t height;
  std::vector<Ptr<Leaf>> leaves;           // in the order of the tree
  std::unordered_set<std::uint64_t> seen;  // offsets of nodes and values

  static std::string the(const char* kind, std::uint64_t offset) {
    return std::string("The ") + kind + " at " + std::to_string(offset);
  }

  // Keys of `node` must increase and lie in [low, high); null: no bound.
  template <class Node>
  std::string keys(const Node& node, const std::string& name, std::uint64_t least, const K* low,
                   const K* high) {
    if (node.count > max_keys || node.count < least) {
      return name + " has " + std::to_string(node.count) + " keys, not " + std::to_string(least) +
             " to " + std::to_string(max_keys) + ".";
    }
    for (unsigned i = 0; i < node.count; ++i) {
      if (i > 0 && !(node.keys[i - 1] < node.keys[i])) {
        return name + " has keys " + std::to_string(i - 1) + " and " + std::to_string(i) +
               " out of order.";
      }
      if ((low != nullptr && node.keys[i] < *low) || (high != nullptr && !(node.keys[i] < *high))) {
        return name + " has key " + std::to_string(i) + " on the wrong side of a separator.";
      }
    }
    return {};
  }

  std::string subtree(std::uint64_t offset, std::uint64_t level, const K* low, const K* high) {
    if (!seen.insert(offset).second) return the("node", offset) + " occurs twice.";
    const bool root = level == height;
    if (level == 0)
      return leaf(Ptr<Leaf>::from_offset(offset), root ? 0 : min_leaf_keys, low, high);
    const Inner& inner = tx.read(Ptr<Inner>::from_offset(offset));
    std::string error =
        keys(inner, the("inner node", offset), root ? 1 : min_inner_keys, low, high);
    for (unsigned i = 0; i <= inner.count && error.empty(); ++i) {
      error = subtree(inner.children[i], level - 1, i == 0 ? low : &inner.keys[i - 1],
                      i == inner.count ? high : &inner.keys[i]);
    }
    return error;
  }

  std::string leaf(Ptr<Leaf> name, std::uint64_t least, const K* low, const K* high) {
    leaves.push_back(name);
    const Leaf& contents = tx.read(name);
    std::string error = keys(contents, the("leaf", name.offset()), least, low, high);
    for (unsigned i = 0; i < contents.count && error.empty(); ++i) {
      const Ptr<V> value = contents.values[i];
      if (!seen.insert(value.offset()).second) {
        error = the("value", value.offset()) + " belongs to two keys.";
      }
      static_cast<void>(tx.read(value));  // throws if there is no such object
    }
    return error;
  }

  std::string links() {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const Ptr<Leaf> wanted = i + 1 < leaves.size() ? leaves[i + 1] : Ptr<Leaf>();
      const Ptr<Leaf> found = tx.read(leaves[i]).next;
      if (found != wanted) {
        return the("leaf", leaves[i].offset()) + " is linked to " + std::to_string(found.offset()) +
               ", not to " + std::to_string(wanted.offset()) + ".";
      }
    }
    return {};
  }
};

template <Storable K, Storable V, unsigned Fanout>
requires detail::Ordered<K> && std::default_initializable<K> std::string
BpTree<K, V, Fanout>::check_invariants(Transaction& tx)
const {
  return detail::violation_in([&] {
    const Header& header = tx.read(header_);
    if (header.height > max_height) {
      return "The tree is said to be " + std::to_string(header.height) + " levels high.";
    }
    Check check{tx, header.height, {}, {}};
    std::string error = check.subtree(header.root, header.height, nullptr, nullptr);
    return error.empty() ? check.links() : error;
  });
}

}  // namespace sp3

// Walks a structure's objects as they lie on media, for the audit of what is allocated: each must
// be of its type and reachable exactly once. Whether the structure is in order is for its own
// check_invariants; a walk only follows what names objects.
//
// `reach.operator()<T>(offset)` gives the object, or null when there is something wrong with it,
// which ends the walk.
#pragma once

#include <cstdint>
#include <utility>

#include "sim/structure.h"

namespace sp3::sim::walk {

template <class Reach>
bool queue(Reach& reach, std::uint64_t offset) {
  const auto* header = reach.template operator()<SimQueue::Header>(offset);
  if (header == nullptr) return false;
  const auto* first = reach.template operator()<SimQueue::First>(header->first.offset());
  if (first == nullptr) return false;
  if (reach.template operator()<SimQueue::Last>(header->last.offset()) == nullptr) return false;
  for (std::uint64_t at = first->node.offset(); at != 0;) {
    const auto* node = reach.template operator()<SimQueue::Node>(at);
    if (node == nullptr) return false;
    at = node->next.offset();
  }
  return true;
}

// Neighbouring cells may name the same bucket.
template <class Table, class Directory, class Reach>
bool hash_directory(Reach& reach, std::uint64_t offset) {
  constexpr std::uint64_t kOffset = (std::uint64_t{1} << 48) - 1;  // of a slot; the rest is a tag
  const auto* directory = reach.template operator()<Directory>(offset);
  if (directory == nullptr) return false;
  std::uint64_t before = 0;
  for (const std::uint64_t cell : directory->cells) {
    if (std::exchange(before, cell) == cell) continue;
    if ((cell & 1) != 0) {
      const bool sound =
          (cell & 2) != 0 ? hash_directory<Table, typename Table::SmallDirectory>(reach, cell - 3)
                          : hash_directory<Table, typename Table::Directory>(reach, cell - 1);
      if (!sound) return false;
      continue;
    }
    for (std::uint64_t at = cell; at != 0;) {
      const auto* bucket = reach.template operator()<typename Table::Bucket>(at);
      if (bucket == nullptr) return false;
      for (const std::uint64_t slot : bucket->slots) {
        if (slot != 0 &&
            reach.template operator()<typename Table::Node>(slot & kOffset) == nullptr) {
          return false;
        }
      }
      at = bucket->next.offset();
    }
  }
  return true;
}

template <class Table, class Reach>
bool hash_table(Reach& reach, std::uint64_t offset) {
  const auto* header = reach.template operator()<typename Table::Header>(offset);
  return header != nullptr &&
         hash_directory<Table, typename Table::Directory>(reach, header->root.offset());
}

template <class Reach>
bool rb_node(Reach& reach, std::uint64_t offset) {
  if (offset == 0) return true;
  const auto* node = reach.template operator()<SimRbTree::Node>(offset);
  return node != nullptr && reach.template operator()<Value>(node->value.offset()) != nullptr &&
         rb_node(reach, node->child[0].offset()) && rb_node(reach, node->child[1].offset());
}

template <class Reach>
bool rb_tree(Reach& reach, std::uint64_t offset) {
  const auto* header = reach.template operator()<SimRbTree::Header>(offset);
  return header != nullptr && rb_node(reach, header->root.offset());
}

// A count that cannot be true names no object beyond the node: check_invariants will say so.
template <class Reach>
bool bp_node(Reach& reach, std::uint64_t offset, std::uint64_t height) {
  if (height == 0) {
    const auto* leaf = reach.template operator()<SimBpTree::Leaf>(offset);
    if (leaf == nullptr) return false;
    for (std::uint64_t i = 0; i < leaf->count && i < SimBpTree::max_keys; ++i) {
      if (reach.template operator()<Value>(leaf->values[i].offset()) == nullptr) return false;
    }
    return true;
  }
  const auto* inner = reach.template operator()<SimBpTree::Inner>(offset);
  if (inner == nullptr) return false;
  for (std::uint64_t i = 0; i <= inner->count && i <= SimBpTree::max_keys; ++i) {
    if (!bp_node(reach, inner->children[i], height - 1)) return false;
  }
  return true;
}

template <class Reach>
bool bp_tree(Reach& reach, std::uint64_t offset) {
  const auto* header = reach.template operator()<SimBpTree::Header>(offset);
  return header != nullptr && bp_node(reach, header->root, header->height);
}

template <class Reach>
bool array_chunk(Reach& reach, std::uint64_t offset, std::uint64_t level) {
  if (offset == 0) return true;
  const auto* chunk = reach.template operator()<SimArray::Chunk>(offset);
  if (chunk == nullptr) return false;
  for (const std::uint64_t below : chunk->offsets) {
    if (below == 0) continue;
    const bool sound = level > 0 ? array_chunk(reach, below, level - 1)
                                 : reach.template operator()<Value>(below) != nullptr;
    if (!sound) return false;
  }
  return true;
}

template <class Reach>
bool array(Reach& reach, std::uint64_t offset) {
  const auto* header = reach.template operator()<SimArray::Header>(offset);
  return header != nullptr && array_chunk(reach, header->root.offset(), header->levels - 1);
}

template <class Reach>
bool ranged_part(Reach& reach, std::uint64_t offset, std::uint32_t level) {
  if (offset == 0) return true;
  if (level == 0) {
    return reach.template operator()<detail::RangedChunk<kRangedChunk>>(offset) != nullptr;
  }
  const auto* node = reach.template operator()<detail::RangedNode>(offset);
  if (node == nullptr) return false;
  for (const std::uint64_t below : node->cells) {
    if (!ranged_part(reach, below, level - 1)) return false;
  }
  return true;
}

template <class Reach>
bool ranged(Reach& reach, std::uint64_t offset) {
  const auto* header = reach.template operator()<SimRanged::Header>(offset);
  return header != nullptr && ranged_part(reach, header->top, header->levels);
}

template <class Reach>
void structure(Reach& reach, StructureKind kind, std::uint64_t offset) {
  switch (kind) {
    case StructureKind::none:
      return;
    case StructureKind::queue:
      return static_cast<void>(queue(reach, offset));
    case StructureKind::hash_table:
      return static_cast<void>(hash_table<SimHashTable>(reach, offset));
    case StructureKind::deep_hash_table:
      return static_cast<void>(hash_table<SimDeepHashTable>(reach, offset));
    case StructureKind::rb_tree:
      return static_cast<void>(rb_tree(reach, offset));
    case StructureKind::bp_tree:
      return static_cast<void>(bp_tree(reach, offset));
    case StructureKind::array:
      return static_cast<void>(array(reach, offset));
    case StructureKind::ranged:
    case StructureKind::deep_ranged:
      return static_cast<void>(ranged(reach, offset));
  }
}

}  // namespace sp3::sim::walk

// The chunk table of ranged objects: a radix tree of nodes with 128 cells, as
// sp3/detail/ranged.h shows it. Cells are filled when their chunk is first written.
#include <algorithm>
#include <string>
#include <unordered_set>

#include <sp3/error.h>

#include "runtime/pool_core.h"
#include "runtime/ranged.h"
#include "runtime/session_core.h"

namespace sp3::runtime {

using detail::RangedHeader;
using detail::RangedNode;

namespace {

constexpr unsigned kBits = detail::kRangedNodeBits;
constexpr std::uint64_t kCells = std::uint64_t{1} << kBits;

const detail::TypeInfo& node_type() { return detail::type_info<RangedNode>; }

// Chunks below a node of that level; a chunk itself is of level 0.
std::uint64_t span_of(std::uint32_t level) { return std::uint64_t{1} << (level * kBits); }

std::uint64_t chunks_of(std::uint64_t length, std::uint32_t chunk_bytes) {
  return (length + chunk_bytes - 1) / chunk_bytes;
}

std::uint64_t cell_of(std::uint64_t number, std::uint32_t level) {
  return (number >> ((level - 1) * kBits)) % kCells;
}

}  // namespace

std::uint32_t ranged_levels(std::uint64_t length, std::uint32_t chunk_bytes) noexcept {
  std::uint32_t levels = 0;
  while (span_of(levels) < chunks_of(length, chunk_bytes)) ++levels;
  return levels;
}

// The offset of chunk `number`; 0 if it is a hole. REQUIRES: the cursor is at the object.
std::uint64_t RangedAccess::find_chunk(std::uint64_t object, std::uint64_t number) {
  const RangedHeader& shape = header(object);
  if (shape.levels == 0) return shape.top;
  if (cursor_.leaf == nullptr || cursor_.leaf_number != number >> kBits ||
      (!cursor_.is_validated && cursor_.leaf->cells[number % kCells] == 0)) {
    std::uint64_t offset = shape.top;
    for (std::uint32_t level = shape.levels; level > 1 && offset != 0; --level) {
      offset = static_cast<const RangedNode*>(core_.read(offset, node_type()))
                   ->cells[cell_of(number, level)];
    }
    if (offset == 0) return 0;
    cursor_.leaf = static_cast<const RangedNode*>(core_.read(offset, node_type()));
    cursor_.leaf_number = number >> kBits;
    cursor_.is_validated = true;
  }
  return cursor_.leaf->cells[number % kCells];
}

// The leaf for chunk `number`, from the header down; 0 if there is none, or if it may be this
// transaction's own. REQUIRES: the cursor's header was read under a range.
std::uint64_t RangedAccess::find_leaf(std::uint64_t number) {
  const RangedHeader& shape = *cursor_.header;
  const std::uint64_t key = WayCache::leaf_key(number >> kBits);
  WayCache::Place& known = ways_.at(cursor_.object, key);
  if (known.is_of(cursor_, key)) return known.offset;
  std::uint64_t offset = shape.top;
  for (std::uint32_t level = shape.levels; level > 1 && offset != 0; --level) {
    if (core_.writes_.find(offset) != nullptr) return 0;
    index::Seen seen;
    offset = reinterpret_cast<const RangedNode*>(core_.read_held(offset, node_type(), seen))
                 ->cells[cell_of(number, level)];
  }
  if (offset != 0) known = {cursor_.object, cursor_.version, key, offset};
  return offset;
}

// The same as find_chunk, for one who holds a range of the object and so needs no validation of the
// way to a chunk that is there; nor a dependency, for whoever made the way came before whoever made
// the chunk. 0 also if it is not as simple as that.
std::uint64_t RangedAccess::find_held_chunk(std::uint64_t object, std::uint64_t number) {
  if (cursor_.object != object || cursor_.version == kNoVersion) return 0;
  if (cursor_.header->levels == 0) return cursor_.header->top;
  const std::uint64_t key = WayCache::chunk_key(number);
  WayCache::Place& known = ways_.at(object, key);
  if (known.is_of(cursor_, key)) return known.offset;
  if (cursor_.leaf == nullptr || cursor_.leaf_number != number >> kBits) {
    const std::uint64_t leaf = find_leaf(number);
    if (leaf == 0 || core_.writes_.find(leaf) != nullptr) return 0;
    index::Seen seen;
    cursor_.leaf = reinterpret_cast<const RangedNode*>(core_.read_held(leaf, node_type(), seen));
    cursor_.leaf_number = number >> kBits;
    cursor_.is_validated = false;
  }
  const std::uint64_t offset = cursor_.leaf->cells[number % kCells];
  if (offset != 0 && !cursor_.is_validated) known = {object, cursor_.version, key, offset};
  return offset;
}

std::uint64_t RangedAccess::find_or_make_chunk(std::uint64_t object, std::uint64_t number) {
  if (const std::uint64_t found = find_held_chunk(object, number)) return found;
  if (const std::uint64_t found = find_chunk(object, number)) return found;
  const RangedHeader& shape = header(object);
  const detail::TypeInfo& chunk_type = *ranged_chunk_type(shape.chunk_bytes);
  const std::uint32_t levels = shape.levels;
  std::uint64_t offset = shape.top;
  void* storage = nullptr;
  if (offset == 0) {
    offset = core_.make(levels == 0 ? chunk_type : node_type(), &storage);
    static_cast<RangedHeader*>(core_.write(object, ranged_header_type()))->top = offset;
    cursor_ = {};  // the header has a private copy now
  }
  for (std::uint32_t level = levels; level > 0; --level) {
    std::uint64_t below = static_cast<const RangedNode*>(core_.read(offset, node_type()))
                              ->cells[cell_of(number, level)];
    if (below == 0) {
      below = core_.make(level == 1 ? chunk_type : node_type(), &storage);
      static_cast<RangedNode*>(core_.write(offset, node_type()))->cells[cell_of(number, level)] =
          below;
    }
    offset = below;
  }
  cursor_.leaf = nullptr;  // so may the leaf
  return offset;
}

void RangedAccess::grow(std::uint64_t object, std::uint64_t length) {
  auto& shape = *static_cast<RangedHeader*>(core_.write(object, ranged_header_type()));
  cursor_ = {};
  shape.length = length;
  const std::uint32_t levels = ranged_levels(length, shape.chunk_bytes);
  for (; shape.levels < levels; ++shape.levels) {
    if (shape.top == 0) continue;
    void* storage = nullptr;
    const std::uint64_t node = core_.make(node_type(), &storage);
    static_cast<RangedNode*>(storage)->cells[0] = shape.top;
    shape.top = node;
  }
}

void RangedAccess::shrink(std::uint64_t object, std::uint64_t length) {
  const RangedHeader before = header(object);
  const std::uint32_t tail = static_cast<std::uint32_t>(length % before.chunk_bytes);
  const std::uint64_t end = std::min(before.length, length - tail + before.chunk_bytes);
  // What is cut off must be zero if the object ever grows again.
  if (tail != 0 && find_chunk(object, length / before.chunk_bytes) != 0) {
    const std::vector<std::byte> zeros(end - length);
    write_piece(object, *ranged_chunk_type(before.chunk_bytes),
                {length / before.chunk_bytes, tail, static_cast<std::uint32_t>(end - length), 0},
                zeros.data());
  }
  auto& shape = *static_cast<RangedHeader*>(core_.write(object, ranged_header_type()));
  cursor_ = {};
  const std::uint64_t keep = chunks_of(length, before.chunk_bytes);
  if (drop(shape.top, shape.levels, 0, keep, *ranged_chunk_type(before.chunk_bytes))) shape.top = 0;
  shape.length = length;
  const std::uint32_t levels = ranged_levels(length, shape.chunk_bytes);
  for (; shape.levels > levels; --shape.levels) {
    if (shape.top == 0) continue;
    const std::uint64_t node = shape.top;
    shape.top = static_cast<const RangedNode*>(core_.read(node, node_type()))->cells[0];
    core_.destroy(node, node_type());
  }
}

// Frees the chunks from `keep` on below a node of `level` whose first chunk is `first`, and nodes
// that are left empty. Whether nothing is left of it.
bool RangedAccess::drop(std::uint64_t offset, std::uint32_t level, std::uint64_t first,
                        std::uint64_t keep, const detail::TypeInfo& chunk_type) {
  if (offset == 0) return true;
  if (level == 0) {
    if (first < keep) return false;
    core_.destroy(offset, chunk_type);
    return true;
  }
  RangedNode left = *static_cast<const RangedNode*>(core_.read(offset, node_type()));
  bool is_empty = true;
  bool has_changed = false;
  for (std::uint64_t i = 0; i < kCells; ++i) {
    if (left.cells[i] == 0) continue;
    const std::uint64_t begin = first + i * span_of(level - 1);
    if (begin + span_of(level - 1) > keep &&
        drop(left.cells[i], level - 1, begin, keep, chunk_type)) {
      left.cells[i] = 0;
      has_changed = true;
    } else {
      is_empty = false;
    }
  }
  if (is_empty) {
    core_.destroy(offset, node_type());
  } else if (has_changed) {
    *static_cast<RangedNode*>(core_.write(offset, node_type())) = left;
  }
  return is_empty;
}

struct RangedAccess::Check {
  RangedAccess& ranged;
  const RangedSpace space;
  const std::uint64_t chunks;
  const RangedHeader header;
  std::unordered_set<std::uint64_t> seen;

  // What is wrong below an object of `level`; empty if nothing.
  std::string below(std::uint64_t offset, std::uint32_t level, std::uint64_t first) {
    if (offset == 0) return {};
    if (!seen.insert(offset).second) {
      return "The object at " + std::to_string(offset) + " occurs twice in the chunk table.";
    }
    if (first >= chunks) {
      return "There is a chunk " + std::to_string(first) + " in an object of " +
             std::to_string(chunks) + " chunks.";
    }
    if (level == 0) return chunk(offset, first);
    const RangedNode node = *static_cast<const RangedNode*>(ranged.core_.read(offset, node_type()));
    for (std::uint64_t i = 0; i < kCells; ++i) {
      std::string fault = below(node.cells[i], level - 1, first + i * span_of(level - 1));
      if (!fault.empty()) return fault;
    }
    return {};
  }

  // Its bytes behind the object's end are zero.
  std::string chunk(std::uint64_t offset, std::uint64_t number) {
    std::vector<std::byte> bytes(header.chunk_bytes);
    const std::uint64_t begin = number * header.chunk_bytes;
    ranged.copy_piece(header, space, offset, {number, 0, header.chunk_bytes, 0}, begin,
                      bytes.data());
    for (std::uint64_t i = header.length - begin; i < header.chunk_bytes; ++i) {
      if (bytes[i] == std::byte{0}) continue;
      return "The byte " + std::to_string(begin + i) + " behind the object's end is not zero.";
    }
    return {};
  }
};

std::string RangedAccess::check(std::uint64_t object) {
  const RangedHeader shape = header(object);
  Check check{*this,
              core_.pool_->ranged_locks().space_of(object),
              chunks_of(shape.length, shape.chunk_bytes),
              shape,
              {}};
  return check.below(shape.top, shape.levels, 0);
}

}  // namespace sp3::runtime

// LastWriters: who wrote each object last, while records are gone through in stamp order.
//
// Objects are known by 32 bits of a hash, which also say where a cell belongs: 8 bytes for each.
// Two objects that share them count as one. Their writers are then put in one row, in stamp order,
// which is more order than needed and never less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/hash.h"
#include "base/scaled.h"
#include "base/zeroed_array.h"

namespace sp3::recovery {

// A record, numbered through all prefixes.
using Node = std::uint32_t;
inline constexpr Node kNoNode = ~Node{0};

// Thread safety: none. Errors: std::bad_alloc.
class LastWriters {
 public:
  using Object = std::uint32_t;
  static Object object_at(std::uint64_t slot) {
    return static_cast<Object>(base::spread(slot) >> 32);
  }

  // Asks for the memory that exchange() will want.
  void ask_for(Object object) const { __builtin_prefetch(&cells_[object & mask_]); }

  // The last writer is now `node`; returns the one before it or kNoNode. REQUIRES: node != kNoNode.
  Node exchange(Object object, Node node) {
    if (2 * used_ > mask_) grow();
    Cell& cell = find(object);
    if (cell.node == 0) {
      cell.object = object;
      ++used_;
    }
    return std::exchange(cell.node, node + 1) - 1;
  }

 private:
  struct Cell {
    Object object;
    Node node;  // one more than it is, 0: empty
  };
  static_assert(kNoNode + 1 == 0);

  Cell& find(Object object) {
    std::size_t at = object & mask_;
    while (cells_[at].node != 0 && cells_[at].object != object) at = (at + 1) & mask_;
    return cells_[at];
  }

  void grow() {
    const std::size_t old_mask = mask_;
    mask_ = 2 * mask_ + 1;
    base::ZeroedArray<Cell> old(mask_ + 1);
    std::swap(old, cells_);
    for (std::size_t i = 0; i <= old_mask; ++i) {
      if (old[i].node != 0) find(old[i].object) = old[i];
    }
  }

  // Open addressing, at most half full.
  std::size_t mask_ = base::scaled<std::size_t>(1023, 1023, 1);
  base::ZeroedArray<Cell> cells_{mask_ + 1};
  std::size_t used_ = 0;
};

}  // namespace sp3::recovery

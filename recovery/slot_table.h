// SlotTable: a number for each slot that is asked for, out of a table as large as there can be
// numbers.
//
// A part of it for each shard, whose slots nobody else asks for. Open addressing: the number is the
// place where the slot lies.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "base/zeroed_array.h"

namespace sp3::recovery {

// Thread safety: number() in different shards by different threads; the rest by any.
class SlotTable {
 public:
  // `most`: how many slots there can be, by shard. Errors: std::bad_alloc.
  explicit SlotTable(const std::vector<std::uint64_t>& most)
      : parts_(make_parts(most)), slots_(parts_.back().first) {}

  // The same for the same slot. REQUIRES: slot is not 0; the shard is the slot's, and has no more
  // than it was said to have.
  [[nodiscard]] std::size_t number(std::uint32_t shard, std::uint64_t slot) {
    const Part& part = parts_[shard];
    const std::size_t mask = part.cells - 1;
    for (std::size_t i = base::spread(slot) >> part.shift;; ++i) {
      const std::size_t cell = part.first + (i & mask);
      if (slots_[cell] == 0) slots_[cell] = slot;
      if (slots_[cell] == slot) return cell;
    }
  }
  // Above all numbers.
  [[nodiscard]] std::size_t size() const { return parts_.back().first; }

 private:
  struct Part {
    std::size_t first = 0;  // cell
    std::size_t cells = 1;  // a power of two, at least one of them empty
    unsigned shift = 63;    // of a hash
  };

  // At most three quarters full. At the end, one without cells.
  static std::vector<Part> make_parts(const std::vector<std::uint64_t>& most) {
    std::vector<Part> parts;
    std::size_t first = 0;
    for (const std::uint64_t slots : most) {
      const std::size_t cells = std::bit_ceil(slots + slots / 3 + 2);
      parts.push_back({first, cells, 64U - static_cast<unsigned>(std::countr_zero(cells))});
      first += cells;
    }
    parts.push_back({first, 1, 63});
    return parts;
  }

  const std::vector<Part> parts_;
  base::ZeroedArray<std::uint64_t> slots_;
};

}  // namespace sp3::recovery

// DirtyLines: which cache lines of the homes replay has stored to, so that each is flushed once,
// however often it was stored to.
//
// A bit for each line of those slabs that are written to: 1/512 of their size.
//
// Thread safety: add() by any thread; the rest by any, once all add() have returned.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/align.h"
#include "base/assert.h"
#include "base/zeroed_array.h"
#include "pool/layout.h"

namespace sp3::recovery {

class DirtyLines {
 public:
  // `written`: the slabs in which lines may become dirty. Errors: std::bad_alloc.
  DirtyLines(const pool::Layout& layout, std::vector<std::uint32_t> written);

  // The bytes from `offset` on, at least one, were stored to; they lie in one slab.
  void add(std::uint64_t offset, std::uint64_t bytes) noexcept {
    const std::uint64_t in_slabs = offset - layout_.slabs_offset;
    const std::uint32_t part = part_of_slab_[in_slabs >> slab_shift_];
    SP3_CHECK(part != kNone);
    const std::uint64_t in_slab = in_slabs & (layout_.slab_size - 1);
    std::uint64_t line = in_slab / base::kCacheLine;
    const std::uint64_t end = (in_slab + bytes - 1) / base::kCacheLine + 1;
    while (line < end) {
      const std::uint64_t in_word = line % 64;
      const std::uint64_t count = std::min(end - line, 64 - in_word);
      const std::uint64_t mask = (~std::uint64_t{0} >> (64 - count)) << in_word;
      std::atomic_ref word(bits_[part * words_per_slab_ + line / 64]);
      // relaxed: read after all threads have joined. Most lines are dirty already.
      if ((word.load(std::memory_order_relaxed) & mask) != mask) {
        word.fetch_or(mask, std::memory_order_relaxed);
      }
      line += count;
    }
  }

  // A part for each slab that was `written`.
  [[nodiscard]] std::size_t parts() const noexcept { return slabs_.size(); }

  // Calls visit(offset, bytes) for stretches of whole lines that together are the dirty ones of a
  // part.
  template <class Visitor>
  void for_each_stretch(std::size_t part, Visitor&& visit) const {
    const std::uint64_t slab = layout_.slab_offset(slabs_[part]);
    for (std::uint64_t i = 0; i < words_per_slab_; ++i) {
      std::uint64_t left = bits_[part * words_per_slab_ + i];
      while (left != 0) {
        const auto first = static_cast<unsigned>(std::countr_zero(left));
        const auto count = static_cast<unsigned>(std::countr_one(left >> first));
        visit(slab + (i * 64 + first) * base::kCacheLine, count * base::kCacheLine);
        left &= ~((~std::uint64_t{0} >> (64 - count)) << first);
      }
    }
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  const pool::Layout& layout_;
  const unsigned slab_shift_;
  const std::uint64_t words_per_slab_;
  const std::vector<std::uint32_t> slabs_;
  std::vector<std::uint32_t> part_of_slab_;  // where a slab is among those, or kNone
  base::ZeroedArray<std::uint64_t> bits_;
};

}  // namespace sp3::recovery

// BitSet: some of the numbers below an end, a bit for each, that all threads add to.
//
// Thread safety: add() by any thread; what one thread has added, another is sure to see after a
//   join.
// Errors: std::bad_alloc at construction.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/zeroed_array.h"

namespace sp3::recovery {

class BitSet {
 public:
  // Empty.
  explicit BitSet(std::size_t end) : words_(end / kBits + 1) {}

  void add(std::size_t number) noexcept {
    // relaxed: as told.
    std::atomic_ref(words_[number / kBits]).fetch_or(bit(number), std::memory_order_relaxed);
  }
  // REQUIRES: nobody adds meanwhile.
  [[nodiscard]] bool has(std::size_t number) const noexcept {
    return (words_[number / kBits] & bit(number)) != 0;
  }

 private:
  static constexpr std::size_t kBits = 64;
  static std::uint64_t bit(std::size_t number) noexcept {
    return std::uint64_t{1} << (number % kBits);
  }

  base::ZeroedArray<std::uint64_t> words_;
};

}  // namespace sp3::recovery

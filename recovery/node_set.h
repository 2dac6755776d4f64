// NodeSet: some of the records that are replayed, a bit for each.
//
// Thread safety: add() by any thread; what one thread has added, another is sure to see after a join.
// Errors: std::bad_alloc at construction.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/zeroed_array.h"

namespace sp3::recovery {

// A record, numbered through all prefixes.
using Node = std::uint32_t;
inline constexpr Node kNoNode = ~Node{0};

class NodeSet {
 public:
  // Empty, for the nodes below `end`.
  explicit NodeSet(Node end) : words_(std::size_t{end} / kBits + 1) {}

  void add(Node node) noexcept {
    // relaxed: as told.
    std::atomic_ref(words_[node / kBits]).fetch_or(bit(node), std::memory_order_relaxed);
  }
  // REQUIRES: nobody adds meanwhile.
  [[nodiscard]] bool has(Node node) const noexcept {
    return (words_[node / kBits] & bit(node)) != 0;
  }

 private:
  static constexpr Node kBits = 64;
  static std::uint64_t bit(Node node) noexcept { return std::uint64_t{1} << (node % kBits); }

  base::ZeroedArray<std::uint64_t> words_;
};

}  // namespace sp3::recovery

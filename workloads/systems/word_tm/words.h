// The memory that a word-based transactional memory offers to a data structure.
//
// A store is an array of 64-bit words. A Word is an index into it; word 0 is never handed out, so 0
// is the null reference. Structures written against the concept WordTransaction run on every system
// that models it, which is how one set of structures serves all peers of this kind.
//
// Thread safety: a transaction belongs to the thread that runs it.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "workloads/entry.h"

namespace sp3::workloads::word_tm {

using Word = std::uint64_t;

// The one word by which a structure is found again: the reference to its header.
inline constexpr Word kRoot = 1;

// kGrain: the words that are made durable together; what allocate returns begins such a unit.
// load/store: one word, or `count` words from `at` on; a load sees the transaction's own stores.
// allocate: `count` words of undefined content (zero where they were never used). Throws
// Error{pool_full}. release: what allocate returned, with the same count; the words may be handed
// out again by this transaction already.
template <class T>
concept WordTransaction = requires(T& tx, Word at, std::uint64_t value, std::uint64_t* to,
                                   const std::uint64_t* from, std::size_t count) {
  { T::kGrain } -> std::convertible_to<Word>;
  { tx.load(at) } -> std::same_as<std::uint64_t>;
  tx.load(at, to, count);
  tx.store(at, value);
  tx.store(at, from, count);
  { tx.allocate(count) } -> std::same_as<Word>;
  tx.release(at, count);
};

// An entry of a size that is known at run time only.
class EntryWords {
 public:
  // Only the tag is cleared: clearing the largest entry would cost more than most operations.
  EntryWords() noexcept { words_[0] = 0; }

  void make(std::uint64_t tag, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) words_[i] = entry_word(tag, i);
  }
  [[nodiscard]] bool intact(std::size_t count) const noexcept {
    for (std::size_t i = 1; i < count; ++i) {
      if (words_[i] != entry_word(words_[0], i)) return false;
    }
    return true;
  }
  [[nodiscard]] std::uint64_t tag() const noexcept { return words_[0]; }
  [[nodiscard]] std::uint64_t* data() noexcept { return words_.data(); }

 private:
  std::array<std::uint64_t, 4096 / 8> words_;  // the largest of kEntrySizes
};

}  // namespace sp3::workloads::word_tm

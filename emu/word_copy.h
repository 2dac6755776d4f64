// Copies whose 8-byte words are never torn.
//
// A power loss (and the crash simulator) keeps or loses aligned 8-byte words, so a store to a home
// must change each such word at once: memcpy may copy the same word byte by byte, or twice. Relaxed
// atomic stores are exactly one instruction per word, and cost what plain ones do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sp3::emu {

inline constexpr std::size_t kWord = 8;

// relaxed: who may read the word, and when, is settled by the callers' own synchronisation.
inline void store_aligned_word(std::byte* to, std::uint64_t value) noexcept {
  __atomic_store_n(
      static_cast<std::uint64_t*>(__builtin_assume_aligned(static_cast<void*>(to), kWord)), value,
      __ATOMIC_RELAXED);
}
inline void store_byte(std::byte* to, std::byte value) noexcept {
  __atomic_store_n(reinterpret_cast<unsigned char*>(to), static_cast<unsigned char>(value),
                   __ATOMIC_RELAXED);
}

// The bytes before the first aligned word at or after `to`, at most `bytes`.
inline std::size_t bytes_to_word(const std::byte* to, std::size_t bytes) noexcept {
  const std::size_t head = (kWord - reinterpret_cast<std::uintptr_t>(to) % kWord) % kWord;
  return head < bytes ? head : bytes;
}

// Every aligned word of the destination that is covered whole is stored at once; the bytes of those
// covered in part, one by one.
inline void copy_words(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  std::size_t at = 0;
  for (const std::size_t head = bytes_to_word(to, bytes); at < head; ++at)
    store_byte(to + at, from[at]);
  for (; at + kWord <= bytes; at += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + at, kWord);
    store_aligned_word(to + at, word);
  }
  for (; at < bytes; ++at) store_byte(to + at, from[at]);
}

}  // namespace sp3::emu

// Entry<Size>: the value that benchmarks store, `Size` bytes made from one tag.
//
// Every word depends on the tag, so storing a new tag changes the whole entry (a delta record
// cannot make the benchmark look cheaper than it is) and a mixture of two entries is recognised.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace sp3::workloads {

// Word i of the entry made from `tag`; word 0 is the tag.
constexpr std::uint64_t entry_word(std::uint64_t tag, std::size_t i) {
  return tag + i * 0x9e3779b97f4a7c15ULL;
}

template <std::size_t Size>
struct Entry {
  static_assert(Size >= 8 && Size % 8 == 0);
  static constexpr std::size_t kWords = Size / 8;

  std::array<std::uint64_t, kWords> words;

  static Entry of(std::uint64_t tag) {
    Entry entry;
    for (std::size_t i = 0; i < kWords; ++i) entry.words[i] = entry_word(tag, i);
    return entry;
  }

  [[nodiscard]] std::uint64_t tag() const { return words[0]; }

  [[nodiscard]] bool intact() const {
    for (std::size_t i = 1; i < kWords; ++i) {
      if (words[i] != entry_word(words[0], i)) return false;
    }
    return true;
  }
};

// Calls f<Size>() for the entry size. REQUIRES: it is one of kEntrySizes.
template <class F>
auto with_entry_size(std::uint32_t size, F&& f) {
  switch (size) {
    case 16:
      return f.template operator()<16>();
    case 64:
      return f.template operator()<64>();
    case 256:
      return f.template operator()<256>();
    case 1024:
      return f.template operator()<1024>();
    case 4096:
      return f.template operator()<4096>();
    default:
      assert(size == 128);
      return f.template operator()<128>();
  }
}

}  // namespace sp3::workloads

// DefaultHash<K>: the hash function of persistent hash tables.
//
// Thread safety: stateless.
// Invariants:
//   1. The result depends on the key's bytes alone: not on the process, the library or the
//      machine's standard library (std::hash promises none of that), so tables outlive all three.
//   2. Keys that are equal must have equal bytes; that is why types with padding are refused.
//   3. All 64 bits are usable; a table takes bucket numbers from the top and tags from the bottom.
// Definition, part of the format of every table that uses it: integers, enumerations and Ptrs are
//   widened to 64 bits and mixed; other keys are hashed with FNV-1a (offset basis
//   14695981039346656037, prime 1099511628211) over their bytes in memory order, and the result is
//   mixed.
// Source: the mixing function is the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include <sp3/ptr.h>
#include <sp3/type.h>

namespace sp3 {

// A bijection on 64-bit words in which every input bit reaches every output bit.
constexpr std::uint64_t mix_hash(std::uint64_t word) noexcept {
  word ^= word >> 30;
  word *= 0xbf58476d1ce4e5b9ULL;
  word ^= word >> 27;
  word *= 0x94d049bb133111ebULL;
  word ^= word >> 31;
  return word;
}

template <Storable K>
struct DefaultHash {
  static_assert(
      std::has_unique_object_representations_v<K>,
      "equal keys may differ in padding or representation: give the table a hash of its own");

  std::uint64_t operator()(const K& key) const noexcept {
    // Not 128-bit integers: whether they are integral depends on the compiler's mode.
    if constexpr (sizeof(K) <= 8 && (std::is_integral_v<K> || std::is_enum_v<K>)) {
      return mix_hash(static_cast<std::uint64_t>(key));
    } else {
      const auto bytes = std::bit_cast<std::array<unsigned char, sizeof(K)>>(key);
      std::uint64_t hash = 14695981039346656037ULL;
      for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211ULL;
      return mix_hash(hash);
    }
  }
};

template <class T>
struct DefaultHash<Ptr<T>> {
  std::uint64_t operator()(Ptr<T> key) const noexcept { return mix_hash(key.offset()); }
};

}  // namespace sp3

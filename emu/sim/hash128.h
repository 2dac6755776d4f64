// Hash128: tells memory images apart: the sum of a strong hash of every unit with its place, so
// that changing a unit costs the hash of that unit alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emu/sim/random.h"

namespace sp3::emu::sim {

struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend Hash128 operator^(Hash128 a, Hash128 b) noexcept {
    return {a.low ^ b.low, a.high ^ b.high};
  }
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

// REQUIRES: bytes is a multiple of 8.
inline Hash128 hash_bytes(std::uint64_t place, const std::byte* from, std::size_t bytes) noexcept {
  std::uint64_t a = mix(place + 0x9E3779B97F4A7C15ULL);
  std::uint64_t b = mix(place ^ 0xD6E8FEB86659FD93ULL);
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i, sizeof word);
    a = (a ^ word) * 0x9FB21C651E98DF25ULL;
    a ^= a >> 32;
    b = (b + word) * 0xC2B2AE3D27D4EB4FULL;
    b ^= b >> 29;
  }
  return {mix(a + b), mix(b ^ (a << 1))};
}

}  // namespace sp3::emu::sim

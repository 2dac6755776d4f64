// Numbers that look random enough, for a multiplication each.
#pragma once

#include <cstdint>

namespace sp3::base {

// Fibonacci hashing: 2^64 divided by the golden ratio. Neighbours are spread evenly over the upper
// bits, each of which depends on all bits below its own: tables take their index from there.
constexpr std::uint64_t spread(std::uint64_t x) noexcept { return x * 0x9E3779B97F4A7C15ULL; }

// What follows `state` in Knuth's MMIX generator. Its upper bits are good enough for the heights of
// towers and for waiting times; its lowest ones are not random at all.
constexpr std::uint64_t next_random(std::uint64_t state) noexcept {
  return state * 6364136223846793005ULL + 1442695040888963407ULL;
}

}  // namespace sp3::base

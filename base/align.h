// Arithmetic on sizes and offsets.
#pragma once

#include <cstdint>

namespace sp3::base {

inline constexpr std::uint64_t kCacheLine = 64;
inline constexpr std::uint64_t kPage = 4096;  // of memory

// REQUIRES: unit is a power of two; value + unit does not overflow.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}
constexpr std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) {
  return value & ~(unit - 1);
}
constexpr bool is_power_of_two(std::uint64_t value) {
  return value != 0 && (value & (value - 1)) == 0;
}

}  // namespace sp3::base

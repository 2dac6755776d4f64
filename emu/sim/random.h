// Random: a small generator (xorshift64*) whose sequence is the same everywhere.
#pragma once

#include <cstdint>

namespace sp3::emu::sim {

// Spreads the bits of a number over all of it (the finaliser of MurmurHash3).
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ x >> 33;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(mix(seed + 0x9E3779B97F4A7C15ULL) | 1) {}

  std::uint64_t operator()() noexcept {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  // REQUIRES: limit > 0.
  std::uint64_t below(std::uint64_t limit) noexcept { return ((*this)() >> 16) % limit; }
  bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace sp3::emu::sim

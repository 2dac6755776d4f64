// Rng: xoshiro256++ (Blackman, Vigna), a small generator whose whole state is its seed.
//
// Equal seeds give equal streams on every machine, so a run can be repeated from the seed it
// prints. Not for secrets.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace sp3::workloads {

// One step of SplitMix64: turns consecutive or similar numbers into unrelated ones.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Rng {
 public:
  using result_type = std::uint64_t;

  // Streams of one seed (one per thread, say) are unrelated.
  explicit constexpr Rng(std::uint64_t seed, std::uint64_t stream = 0) {
    std::uint64_t x = mix64(seed) ^ mix64(~stream);
    for (std::uint64_t& word : state_) word = x = mix64(x);
  }

  constexpr std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound). REQUIRES: bound > 0. The bias is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }

  // Uniform in [0, 1).
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  // Exponentially distributed with the given mean.
  double exponential(double mean) { return -mean * std::log(1.0 - uniform()); }

  // What <random> and std::shuffle want.
  constexpr std::uint64_t operator()() { return next(); }
  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return ~std::uint64_t{0}; }

 private:
  __extension__ using Wide = unsigned __int128;

  std::array<std::uint64_t, 4> state_{};
};

}  // namespace sp3::workloads

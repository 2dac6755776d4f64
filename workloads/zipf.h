// Zipf: skewed choices among n items, O(1) per draw.
//
// Rank r (from 0) is drawn with probability about proportional to 1 / (r + 1)^theta: exactly for
// the first two, by a curve through the sums for the others, of which the next few come up to 19 %
// too often at theta = 0.99 and the hottest hundredth 1 %. theta = 0 is uniform; 0.99 is the usual
// skew of key-value benchmarks. Method and constants: Gray et al., "Quickly generating
// billion-record synthetic databases", SIGMOD 1994; only theta < 1 is defined.
//
// item() scrambles ranks so that hot items are spread over the range instead of being neighbours in
// one node, as YCSB does, but by a bijection: no two ranks share an item, so the distribution over
// items is exactly the distribution over ranks.
//
// Thread safety: immutable after construction; every thread draws with its own Rng. Construction
// sums min(n, 2^22) terms.
#pragma once

#include <cmath>
#include <cstdint>

#include "workloads/rng.h"

namespace sp3::workloads {

// The sum of 1 / i^theta for i in 1..n. REQUIRES: theta < 1.
double zeta(std::uint64_t n, double theta);

class Zipf {
 public:
  // Throws std::invalid_argument unless 1 <= items < 2^32 and 0 <= theta < 1.
  Zipf(std::uint64_t items, double theta);

  [[nodiscard]] std::uint64_t items() const { return items_; }
  [[nodiscard]] double theta() const { return theta_; }

  // A rank: 0 is the hottest.
  std::uint64_t rank(Rng& rng) const {
    if (theta_ == 0.0) return rng.below(items_);
    const double u = rng.uniform();
    const double uz = u * zeta_n_;
    if (uz < 1.0) return 0;
    if (uz < second_) return items_ > 1 ? 1 : 0;
    const double scaled = static_cast<double>(items_) * std::pow(eta_ * u - eta_ + 1.0, alpha_);
    const auto r = static_cast<std::uint64_t>(scaled);
    return r < items_ ? r : items_ - 1;
  }

  // The item that has this rank.
  [[nodiscard]] std::uint64_t scramble(std::uint64_t rank) const {
    // Both factors are below 2^32, so the product cannot overflow.
    return (rank * multiplier_ + offset_) % items_;
  }

  std::uint64_t item(Rng& rng) const { return scramble(rank(rng)); }

 private:
  std::uint64_t items_;
  double theta_;
  double zeta_n_ = 0;  // sum of 1 / i^theta for i in 1..n
  double alpha_ = 0;
  double eta_ = 0;
  double second_ = 0;  // below this (times 1 / zeta_n) lie ranks 0 and 1
  std::uint64_t multiplier_ = 1;
  std::uint64_t offset_ = 0;
};

}  // namespace sp3::workloads

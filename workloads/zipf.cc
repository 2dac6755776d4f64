#include "workloads/zipf.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace sp3::workloads {

namespace {

// A multiplier near n / golden ratio puts consecutive ranks far apart; coprime to n it is a
// bijection.
std::uint64_t spreading_multiplier(std::uint64_t n) {
  auto m = static_cast<std::uint64_t>(static_cast<double>(n) * 0.6180339887498949);
  if (m == 0) m = 1;
  while (std::gcd(m, n) != 1) ++m;
  return m;
}

}  // namespace

// Term by term up to so many, from there by the first terms of Euler and Maclaurin's formula: the
// next one would be below a double's precision.
double zeta(std::uint64_t n, double theta) {
  constexpr std::uint64_t kSummed = 1 << 22;
  const std::uint64_t summed = std::min(n, kSummed);
  double sum = 0;
  for (std::uint64_t i = 1; i <= summed; ++i) sum += std::pow(static_cast<double>(i), -theta);
  if (n == summed) return sum;
  const auto from = static_cast<double>(summed);
  const auto to = static_cast<double>(n);
  const double integral = (std::pow(to, 1 - theta) - std::pow(from, 1 - theta)) / (1 - theta);
  const double ends = (std::pow(to, -theta) - std::pow(from, -theta)) / 2;
  return sum + integral + ends;
}

Zipf::Zipf(std::uint64_t items, double theta) : items_(items), theta_(theta) {
  if (items == 0 || items >= (std::uint64_t{1} << 32)) {
    throw std::invalid_argument("zipf: wanted 1 to 2^32 - 1 items, found " + std::to_string(items));
  }
  if (!(theta >= 0.0 && theta < 1.0)) {
    throw std::invalid_argument("zipf: wanted 0 <= theta < 1, found " + std::to_string(theta));
  }
  multiplier_ = spreading_multiplier(items);
  offset_ = mix64(items) % items;
  if (theta == 0.0) return;

  zeta_n_ = zeta(items, theta);
  const double zeta_2 = 1.0 + std::pow(0.5, theta);
  alpha_ = 1.0 / (1.0 - theta);
  second_ = zeta_2;
  // With one or two items rank() never gets past the first two cases.
  if (items > 2) {
    eta_ =
        (1.0 - std::pow(2.0 / static_cast<double>(items), 1.0 - theta)) / (1.0 - zeta_2 / zeta_n_);
  }
}

}  // namespace sp3::workloads

#include "workloads/zipf.h"

#include <cmath>
#include <stdexcept>
#include <vector>

#include <catch2/catch.hpp>

#include "workloads/rng.h"

using sp3::workloads::Rng;
using sp3::workloads::zeta;
using sp3::workloads::Zipf;

namespace {

std::vector<std::uint64_t> draw(const Zipf& zipf, std::uint64_t draws) {
  Rng rng(42);
  std::vector<std::uint64_t> counts(zipf.items(), 0);
  for (std::uint64_t i = 0; i < draws; ++i) ++counts.at(zipf.rank(rng));
  return counts;
}

}  // namespace

TEST_CASE("Equal seeds give equal streams and different threads different ones") {
  Rng a(1, 0);
  Rng b(1, 0);
  Rng c(1, 1);
  unsigned equal = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t x = a.next();
    REQUIRE(x == b.next());
    equal += x == c.next() ? 1 : 0;
  }
  CHECK(equal == 0);
}

TEST_CASE("Uniform draws are uniform: chi-square within five standard deviations") {
  const Zipf zipf(1000, 0.0);
  constexpr std::uint64_t kDraws = 1'000'000;
  double chi = 0;
  for (const std::uint64_t n : draw(zipf, kDraws)) {
    const double expected = static_cast<double>(kDraws) / 1000;
    chi += (static_cast<double>(n) - expected) * (static_cast<double>(n) - expected) / expected;
  }
  CHECK(std::abs(chi - 999) < 5 * std::sqrt(2.0 * 999));
}

TEST_CASE("Skewed draws follow the Zipfian distribution") {
  const double theta = GENERATE(0.5, 0.9, 0.99);
  const Zipf zipf(1000, theta);
  constexpr std::uint64_t kDraws = 1'000'000;
  const auto counts = draw(zipf, kDraws);
  double zeta = 0;
  for (int i = 1; i <= 1000; ++i) zeta += std::pow(i, -theta);
  const auto expected_of = [&](std::uint64_t rank) {
    return std::pow(static_cast<double>(rank + 1), -theta) / zeta * kDraws;
  };
  // The first two ranks are exact; Gray's method approximates the rest by a continuous curve, whose
  // largest error is at the first ranks it covers.
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    const double expected = expected_of(rank);
    CHECK(std::abs(static_cast<double>(counts[rank]) - expected) < 6 * std::sqrt(expected));
  }
  double expected_sum = 0;
  double found_sum = 0;
  for (std::uint64_t rank = 0; rank < 1000; ++rank) {
    expected_sum += expected_of(rank);
    found_sum += static_cast<double>(counts[rank]);
    if (rank == 9 || rank == 99 || rank == 499) {
      CAPTURE(theta, rank);
      CHECK(found_sum == Approx(expected_sum).epsilon(0.05));
    }
  }
}

TEST_CASE("Scrambling is a bijection that separates the hottest items") {
  const std::uint64_t items = GENERATE(1ULL, 2ULL, 10ULL, 1000ULL, 100'000ULL);
  const Zipf zipf(items, 0.0);
  std::vector<bool> seen(items, false);
  for (std::uint64_t rank = 0; rank < items; ++rank) {
    const std::uint64_t item = zipf.scramble(rank);
    REQUIRE(item < items);
    REQUIRE_FALSE(seen[item]);
    seen[item] = true;
  }
  if (items < 1000) return;
  for (std::uint64_t rank = 1; rank < 20; ++rank) {
    const auto distance = std::abs(static_cast<double>(zipf.scramble(rank)) -
                                   static_cast<double>(zipf.scramble(rank - 1)));
    CHECK(distance > static_cast<double>(items) / 10);
  }
}

TEST_CASE("The sum over billions of items is what adding them all up gives") {
  const double theta = GENERATE(0.0, 0.5, 0.99);
  // Beyond the part that is added up, by little and by much.
  const std::uint64_t items = GENERATE((1ULL << 22) + 1, 12'345'678ULL);
  double sum = 0;
  double lost = 0;  // by rounding, as Kahan keeps it
  for (std::uint64_t i = 1; i <= items; ++i) {
    const double term = std::pow(static_cast<double>(i), -theta) - lost;
    const double next = sum + term;
    lost = (next - sum) - term;
    sum = next;
  }
  CHECK(zeta(items, theta) == Approx(sum).epsilon(1e-11));
}

TEST_CASE("Impossible distributions are refused") {
  CHECK_THROWS_AS(Zipf(0, 0.5), std::invalid_argument);
  CHECK_THROWS_AS(Zipf(std::uint64_t{1} << 32, 0.5), std::invalid_argument);
  CHECK_THROWS_AS(Zipf(10, 1.0), std::invalid_argument);
  CHECK_THROWS_AS(Zipf(10, -0.1), std::invalid_argument);
  CHECK_THROWS_AS(Zipf(10, std::nan("")), std::invalid_argument);
}

TEST_CASE("Tiny sets are drawn from completely") {
  for (const std::uint64_t items : {1ULL, 2ULL, 3ULL}) {
    for (const std::uint64_t n : draw(Zipf(items, 0.99), 10'000)) CHECK(n > 0);
  }
}

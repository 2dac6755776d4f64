#include "workloads/histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "workloads/rng.h"

using sp3::workloads::Histogram;
using sp3::workloads::Rng;

TEST_CASE("Percentiles are within a 64th of the exact ones") {
  Rng rng(3);
  Histogram histogram;
  std::vector<std::uint64_t> values;
  for (int i = 0; i < 200'000; ++i) {
    // Log-uniform over nine decades, so that every size of bucket is used.
    values.push_back(static_cast<std::uint64_t>(std::exp(rng.uniform() * std::log(1e9))));
    histogram.record(values.back());
  }
  std::ranges::sort(values);
  CHECK(histogram.count() == values.size());
  CHECK(histogram.max() == values.back());
  std::vector<double> fractions = {0.0, 0.999, 1.0};
  for (int percent = 1; percent < 100; ++percent) fractions.push_back(percent / 100.0);
  for (const double fraction : fractions) {
    const auto rank = static_cast<std::size_t>(
        std::max(1.0, std::ceil(fraction * static_cast<double>(values.size()))));
    const auto exact = static_cast<double>(values[rank - 1]);
    const auto found = static_cast<double>(histogram.percentile(fraction));
    CAPTURE(fraction, exact, found);
    CHECK(found >= exact);
    CHECK(found <= exact * (1.0 + 1.0 / 64) + 1);
  }
}

TEST_CASE("Small values are exact, huge ones keep their maximum, an empty histogram is zero") {
  Histogram histogram;
  CHECK(histogram.percentile(0.5) == 0);
  for (std::uint64_t v = 0; v < 64; ++v) histogram.record(v);
  CHECK(histogram.percentile(0.5) == 31);
  CHECK(histogram.percentile(1.0) == 63);
  histogram.record(~std::uint64_t{0});
  CHECK(histogram.max() == ~std::uint64_t{0});
  CHECK(histogram.percentile(1.0) == ~std::uint64_t{0});
}

TEST_CASE("Merged histograms equal one that recorded everything") {
  Rng rng(5);
  Histogram both, left, right;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t value = rng.below(1'000'000);
    both.record(value);
    (i % 3 == 0 ? left : right).record(value);
  }
  Histogram other_way = right;
  other_way.merge(left);
  left.merge(right);
  for (const Histogram& merged : {left, other_way}) {
    CHECK(merged.count() == both.count());
    CHECK(merged.max() == both.max());
    for (const double fraction : {0.1, 0.5, 0.9, 0.99}) {
      CHECK(merged.percentile(fraction) == both.percentile(fraction));
    }
    // In its bucket there are larger numbers than any that was recorded.
    CHECK(merged.percentile(1.0) == both.max());
  }
  left.reset();
  CHECK(left.count() == 0);
  CHECK(left.max() == 0);
}

TEST_CASE("Of a share that is no whole number of values, there are rather more than fewer") {
  Histogram histogram;
  for (const std::uint64_t value : {10U, 20U, 30U}) histogram.record(value);
  CHECK(histogram.percentile(0.5) == 20);
  CHECK(histogram.percentile(0.67) == 30);
  CHECK(histogram.mean_of_smallest(0.5) == Approx(15));
}

TEST_CASE("the mean of the smallest values leaves the largest out") {
  Histogram histogram;
  CHECK(histogram.mean_of_smallest(0.99) == 0);
  for (int i = 0; i < 99; ++i) histogram.record(i < 33 ? 10 : 40);
  histogram.record(1'000'000);
  CHECK(histogram.mean_of_smallest(0.99) == Approx(30));
  CHECK(histogram.mean_of_smallest(0.33) == Approx(10));
  CHECK(histogram.mean_of_smallest(1.0) > 10'000);
  // Of 66 equal ones a part.
  CHECK(histogram.mean_of_smallest(0.66) == Approx(25));
  // No value counts for more than the largest was.
  Histogram one;
  one.record(1000);
  CHECK(one.mean_of_smallest(1.0) == Approx(1000));
}

TEST_CASE("what lies above a value is counted") {
  Histogram histogram;
  CHECK(histogram.count_above(0) == 0);
  for (const std::uint64_t value : {3U, 5U, 5U, 70'000U, 90'000U}) histogram.record(value);
  CHECK(histogram.count_above(2) == 5);
  CHECK(histogram.count_above(3) == 4);
  CHECK(histogram.count_above(5) == 2);
  CHECK(histogram.count_above(69'000) == 2);
  CHECK(histogram.count_above(80'000) == 1);
  CHECK(histogram.count_above(~std::uint64_t{0}) == 0);
}

#include "workloads/histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sp3::workloads {

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
  max_ = std::max(max_, other.max_);
}

std::uint64_t Histogram::percentile(double fraction) const {
  if (total_ == 0) return 0;
  const auto wanted = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(total_))));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    // The exact maximum is known, so no percentile is reported above it; the last bucket has no
    // upper bound of its own.
    if (seen >= wanted) return i + 1 == kBuckets ? max_ : std::min(upper_bound(i), max_);
  }
  return max_;
}

double Histogram::mean_of_smallest(double fraction) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(total_)));
  std::uint64_t seen = 0;
  double sum = 0;
  for (std::size_t i = 0; i < kBuckets && seen < wanted; ++i) {
    const std::uint64_t count = std::min(counts_[i], wanted - seen);
    sum += static_cast<double>(count) * static_cast<double>(std::min(upper_bound(i), max_));
    seen += count;
  }
  return seen == 0 ? 0 : sum / static_cast<double>(seen);
}

std::uint64_t Histogram::count_above(std::uint64_t value) const {
  const auto first = counts_.begin() + static_cast<std::ptrdiff_t>(bucket_of(value)) + 1;
  return std::accumulate(first, counts_.end(), std::uint64_t{0});
}

}  // namespace sp3::workloads

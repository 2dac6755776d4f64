// Histogram: a log-linear histogram of durations, in the manner of HdrHistogram.
//
// Values below 64 are counted exactly; above, every power of two is cut into 64 buckets, so that a
// percentile is off by at most 1/64 of its value. record() is a few instructions and never
// allocates: the buckets are part of the object (18 KiB).
//
// Thread safety: none; every thread has its own, merged when all have stopped.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sp3::workloads {

class Histogram {
 public:
  void record(std::uint64_t value) {
    ++counts_[bucket_of(value)];
    ++total_;
    if (value > max_) max_ = value;
  }

  void merge(const Histogram& other);
  void reset() { *this = Histogram(); }

  [[nodiscard]] std::uint64_t count() const { return total_; }
  [[nodiscard]] std::uint64_t max() const { return max_; }
  // The smallest recorded value (rounded up within its bucket) such that at least `fraction` of all
  // values are not above it; 0 if nothing was recorded. REQUIRES: 0 <= fraction <= 1.
  [[nodiscard]] std::uint64_t percentile(double fraction) const;
  // The mean of that smallest `fraction` of all values, each taken as its bucket's upper end: free
  // of the few that say when others had the core. 0 if nothing was recorded.
  [[nodiscard]] double mean_of_smallest(double fraction) const;
  // How many are larger, those in the bucket of `value` left out.
  [[nodiscard]] std::uint64_t count_above(std::uint64_t value) const;

 private:
  static constexpr unsigned kSubBits = 6;
  static constexpr std::uint64_t kSub = std::uint64_t{1} << kSubBits;
  static constexpr unsigned kMaxBits = 40;  // larger values (minutes) share the last bucket
  static constexpr std::size_t kBuckets = (kMaxBits - kSubBits + 1) * kSub;

  static constexpr std::size_t bucket_of(std::uint64_t value) {
    if (value < kSub) return static_cast<std::size_t>(value);
    const auto exponent = static_cast<unsigned>(std::bit_width(value)) - 1 - kSubBits;
    const std::size_t bucket = exponent * kSub + static_cast<std::size_t>(value >> exponent);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  // The largest value that falls into the bucket.
  static constexpr std::uint64_t upper_bound(std::size_t bucket) {
    if (bucket < kSub) return bucket;
    const std::size_t exponent = bucket / kSub - 1;
    const std::uint64_t mantissa = bucket - exponent * kSub;
    return ((mantissa + 1) << exponent) - 1;
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace sp3::workloads

// Runs of many cases, with what they covered printed: a campaign that checks nothing must be seen.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/crasher.h"

namespace sp3::test {

// Sanitized builds are slow: they run a share of each campaign, and expect a smaller one of its
// yield.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t kShare = 16;
#else
inline constexpr std::uint64_t kShare = 1;
#endif

// A share of a few seeds yields what the first of them happen to.
inline constexpr std::uint64_t kLess = kShare * kShare;

struct Seeds {
  std::uint64_t first;
  std::uint64_t last;
};

// Few images of each event, and a program on many of them.
inline sim::CrashOptions double_crashes() {
  sim::CrashOptions options;
  options.most_enumerated = 8;
  options.samples = 4;
  options.continued_one_in = 10;
  options.continued_clean_one_in = 5;
  return options;
}

// Runs case_of(seed), changed by `adapt`, with crashes, and fails at the first violation. Returns
// what was covered.
sim::CrashCounts crash_all(const std::string& name, Seeds seeds, const sim::CrashOptions& options,
                           const std::function<void(sim::Case&)>& adapt = {});

}  // namespace sp3::test

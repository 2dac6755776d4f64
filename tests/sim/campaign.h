// Runs of many cases, with what they covered printed: a campaign that checks nothing must be seen.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/crasher.h"

namespace sp3::test {

struct Seeds {
  std::uint64_t first;
  std::uint64_t last;
};

// Runs case_of(seed), changed by `adapt`, with crashes, and fails at the first violation. Returns
// what was covered.
sim::CrashCounts crash_all(const std::string& name, Seeds seeds, const sim::CrashOptions& options,
                           const std::function<void(sim::Case&)>& adapt = {});

}  // namespace sp3::test

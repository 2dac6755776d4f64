#include "tests/sim/campaign.h"

#include <cstdio>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "sim/describe.h"

namespace sp3::test {

sim::CrashCounts crash_all(const std::string& name, Seeds seeds, const sim::CrashOptions& options,
                           const std::function<void(sim::Case&)>& adapt) {
  sim::CrashLab lab(options);
  const std::uint64_t last = seeds.first + (seeds.last - seeds.first) / kShare;
  for (std::uint64_t seed = seeds.first; seed <= last; ++seed) {
    INFO("seed " << seed);  // also when an assertion of the library ends it all
    sim::Case c = sim::case_of(seed);
    if (adapt) adapt(c);
    if (lab.run(c)) continue;
    FAIL("seed " << seed << ": " << lab.violation()->what << "\n" << lab.violation()->where);
  }
  const sim::CrashCounts& n = lab.counts();
  fmt::print("{}: {}, {} points\n", name, sim::describe(n), n.points);
  std::fflush(stdout);
  return n;
}

}  // namespace sp3::test

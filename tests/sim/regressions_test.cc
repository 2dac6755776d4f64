// Seeds that found bugs. docs/TESTING.md lists the bugs.
#include <catch2/catch.hpp>

#include "tests/sim/campaign.h"

namespace sp3::test {

TEST_CASE("regression: a superblock that a killed process left in caches") {
  sim::CrashOptions options;
  options.most_enumerated = 4;
  options.samples = 4;
  options.killed_one_in = 1;
  const sim::CrashCounts n = crash_all("killed everywhere", {1, 3}, options);
  CHECK(n.killed > 1000 / kShare);
}

TEST_CASE("regression: a core whose counter is behind that of the core that opened the pool") {
  sim::Bench bench({});
  for (const std::uint64_t seed : {7, 8, 33, 34, 39}) {
    sim::Case c = sim::case_of(seed);
    c.clocks_agree = false;
    if (!bench.explore(c)) FAIL(bench.violation()->what << "\n" << bench.violation()->where);
  }
}

TEST_CASE("regression: a page that a failed fdatasync left in the cache, marked as written") {
  sim::CrashOptions options;
  options.most_enumerated = 8;
  options.samples = 6;
  options.nested_one_in = 400;
  options.killed_one_in = 64;
  sim::Bench bench(options);
  sim::Case c = sim::case_of(10);
  c.options.memory = MemoryKind::file;
  c.options.flush = FlushInstruction::automatic;
  c.failing_io = 11;
  if (!bench.run(c)) FAIL(bench.violation()->what << "\n" << bench.violation()->where);
  CHECK(bench.counts().failed > 0);
}

}  // namespace sp3::test

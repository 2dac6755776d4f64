// Interleavings: longer programs without crashes, whose histories must have a strict serial order.
#include <catch2/catch.hpp>

#include "tests/sim/campaign.h"

namespace sp3::test {
namespace {

void explore(Seeds seeds) {
  sim::Bench bench({});
  const std::uint64_t last = seeds.first + (seeds.last - seeds.first) / kShare;
  for (std::uint64_t seed = seeds.first; seed <= last; ++seed) {
    INFO("seed " << seed);
    sim::Case c = sim::case_of(seed);
    c.cores = static_cast<int>(2 + seed % 2);
    c.transactions = 25;
    if (bench.explore(c)) continue;
    FAIL("seed " << seed << ": " << bench.violation()->what << "\n" << bench.violation()->where);
  }
}

}  // namespace

TEST_CASE("in every explored interleaving there is a strict serial order") { explore({1, 1500}); }

TEST_CASE("in every explored interleaving there is a strict serial order, at length", "[.full]") {
  explore({100'000, 160'000});
}

}  // namespace sp3::test

// The media loses something of one copy of the metadata, before a recovery or in the midst of one,
// and power fails again at the events of what mends it.
#include <catch2/catch.hpp>

#include "tests/sim/campaign.h"

namespace sp3::test {
namespace {

sim::CrashCounts rot_all(const std::string& name, Seeds seeds) {
  const sim::CrashCounts n = crash_all(name, seeds, sim::rotting());
  CHECK(n.rotten > (seeds.last - seeds.first) * 20 / kLess);
  CHECK(n.refused > 0);
  CHECK(n.salvaged > 0);
  CHECK(n.refused < n.rotten / 4);
  return n;
}

}  // namespace

TEST_CASE("salvage: what one copy of the metadata has lost and the other has is mended") {
  rot_all("rotten", {7000, 7019});
}

TEST_CASE("salvage at length: what one copy of the metadata has lost is mended", "[.full]") {
  rot_all("rotten at length", {100'000, 101'000});
  rot_all("rotten at length, rich", {sim::kFirstRichSeed + 1000, sim::kFirstRichSeed + 1060});
  rot_all("rotten at length, varied", {sim::kFirstVariedSeed + 1000, sim::kFirstVariedSeed + 1060});
}

}  // namespace sp3::test

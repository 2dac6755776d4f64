// Pools whose containers were made up: they open, and whatever is done to such a container returns
// or ends in a typed error.
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "tests/fuzz/forged_containers.h"
#include "tests/support/pools.h"

namespace sp3::test {
namespace {

void forge_all(std::uint64_t forgeries, std::uint64_t seed) {
  const ForgedContainers containers;
  Random random(seed);
  std::uint64_t sound = 0;
  std::uint64_t returned = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < forgeries; ++i) {
    std::vector<std::uint8_t> bytes(5 + random.below(random.below(4) == 0 ? 200 : 60));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const ForgedContainers::Result result = containers.try_out(bytes);
    sound += result.is_sound ? 1 : 0;
    returned += result.returned;
    refused += result.refused;
    if (!result.fault.empty()) {
      FAIL_CHECK(fmt::format("{:02x}: {}", fmt::join(bytes, ""), result.fault));
    }
  }
  INFO(forgeries << " forgeries, of which " << sound << " were looked at and sound: " << returned
                 << " transactions returned, " << refused << " were refused");
  CHECK(sound > forgeries / 20);
  CHECK(returned > forgeries / 2);
  CHECK(refused > forgeries / 4);
}

}  // namespace

TEST_CASE("made-up containers only return or throw an error") { forge_all(3'000, 1); }

TEST_CASE("made-up containers only return or throw an error, at length", "[.full]") {
  forge_all(200'000, 2);
}

}  // namespace sp3::test

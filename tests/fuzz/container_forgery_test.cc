// Pools whose containers were made up: they open, and whatever is done to such a container returns
// or ends in a typed error.
#include <cstdint>

#include <catch2/catch.hpp>

#include "tests/fuzz/forged_containers.h"
#include "tests/fuzz/forgeries.h"

namespace sp3::test {
namespace {

void forge_all(std::uint64_t forgeries, std::uint64_t seed) {
  const ForgedContainers containers;
  std::uint64_t sound = 0;
  std::uint64_t returned = 0;
  std::uint64_t refused = 0;
  forge_at_random(forgeries, seed, {60, 200}, [&](const auto& bytes) {
    ForgedContainers::Result result = containers.try_out(bytes);
    sound += result.is_sound ? 1 : 0;
    returned += result.returned;
    refused += result.refused;
    return result;
  });
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

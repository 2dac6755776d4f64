#include "recovery/last_writers.h"

#include <map>
#include <random>
#include <utility>

#include <catch2/catch.hpp>

using namespace sp3::recovery;

TEST_CASE("The last writer of each slot is known, in whatever slab it is") {
  // The second slab is not written to; the last has one slot.
  const std::vector<std::uint32_t> slots{7, 0, 1000, 3, 1};
  LastWriters last(slots);
  std::map<std::pair<std::uint32_t, std::uint32_t>, Node> model;
  std::mt19937_64 random(1);
  for (Node node = 0; node < 100'000; ++node) {
    const auto slab = static_cast<std::uint32_t>(random() % slots.size());
    if (slots[slab] == 0) continue;
    const auto index = static_cast<std::uint32_t>(random() % slots[slab]);
    const auto [at, first] = model.try_emplace({slab, index}, kNoNode);
    CHECK(last.exchange(last.object_at({slab, index}), node) == at->second);
    at->second = node;
  }
  REQUIRE(model.size() == 1011);
  for (const auto& [place, node] : model) {
    CHECK(last.exchange(last.object_at({place.first, place.second}), 0) == node);
  }
}

TEST_CASE("Nothing written has no last writers") {
  CHECK_NOTHROW(LastWriters({}));
  CHECK_NOTHROW(LastWriters({0, 0, 0}));
}

#include "recovery/last_writers.h"

#include <map>
#include <random>

#include <catch2/catch.hpp>

using namespace sp3::recovery;

TEST_CASE("The last writer of each object is known, however many there are") {
  std::mt19937_64 random(1);
  LastWriters last;
  std::map<LastWriters::Object, Node> model;
  for (Node node = 0; node < 100'000; ++node) {
    // Some often, some rarely, and 0 among them.
    const std::uint64_t slot = (random() % 2 == 0 ? random() % 100 : random() % 50'000) * 64;
    const LastWriters::Object object = LastWriters::object_at(slot);
    const auto [at, first] = model.try_emplace(object, kNoNode);
    CHECK(last.exchange(object, node) == at->second);
    at->second = node;
  }
  for (const auto& [object, node] : model) CHECK(last.exchange(object, 0) == node);
}

TEST_CASE("Objects that share a hash have one row of writers") {
  // Any two of some hundred thousand slots of a large pool.
  std::mt19937_64 random(1);
  std::map<LastWriters::Object, std::uint64_t> seen;
  std::uint64_t slot = 64;
  while (seen.try_emplace(LastWriters::object_at(slot), slot).second) slot = random() >> 20 << 3;
  const std::uint64_t other = seen.at(LastWriters::object_at(slot));
  REQUIRE(other != slot);
  LastWriters last;
  CHECK(last.exchange(LastWriters::object_at(slot), 1) == kNoNode);
  CHECK(last.exchange(LastWriters::object_at(other), 2) == 1);
  CHECK(last.exchange(LastWriters::object_at(slot), 3) == 2);
}

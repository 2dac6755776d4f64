// Maps in pools that are full: in the midst of a split, a rebalancing or a new directory.
#include <array>
#include <cstdint>
#include <map>

#include <sp3/containers/bp_tree.h>
#include <sp3/containers/hash_table.h>
#include <sp3/containers/rb_tree.h>

#include "tests/containers/map_model.h"

using namespace sp3;
using namespace sp3::test;

namespace {

// As small as pools are.
Shape smallest_shape() {
  Shape shape = tiny_shape();
  shape.size = std::uint64_t{640} << 10;
  return shape;
}

// Fills the pool by transactions of several keys, some of which catch that it is full and go on,
// and makes room again, but for some keys; then all over.
template <class Map>
void fill_again_and_again() {
  const std::uint64_t used_seed = seed();
  INFO("SP3_TEST_SEED=" << used_seed);
  World world(smallest_shape());
  Random random(used_seed);
  const Map map = world.run([](Transaction& tx) { return Map::create(tx); });
  std::map<std::uint64_t, std::uint64_t> model;
  const auto agree = [&] {
    REQUIRE(world.run([&](Transaction& tx) { return map.check_invariants(tx); }) == "");
    std::map<std::uint64_t, std::uint64_t> found;
    world.run([&](Transaction& tx) {
      found.clear();
      map.for_each(tx, [&](std::uint64_t k, const Payload& v) { found[k] = v.number; });
    });
    REQUIRE(found == model);
  };
  for (unsigned round = 0; round < 4; ++round) {
    INFO("round " << round);
    for (unsigned full = 0; full < 10;) {
      std::map<std::uint64_t, std::uint64_t> batch;
      const std::uint64_t count = 1 + random.below(12);
      while (batch.size() < count) batch[random.below(1 << 20)] = random() >> 8;
      const bool catches = random.chance(50);
      try {
        world.run([&](Transaction& tx) {
          for (const auto& [k, number] : batch) {
            try {
              map.insert_or_assign(tx, k, Payload(number));
            } catch (const Error&) {
              if (!catches) throw;
            }
          }
        });
        for (const auto& [k, number] : batch) model[k] = number;
      } catch (const Error& error) {
        REQUIRE(error.code() == ErrorCode::pool_full);
        ++full;
        agree();
      }
    }
    REQUIRE(model.size() > 500);
    for (auto it = model.begin(); it != model.end();) {
      const std::uint64_t k = it->first;
      if (random.chance(3)) {
        world.run([&](Transaction& tx) { map.insert_or_assign(tx, k, Payload(++it->second)); });
        ++it;
      } else {
        REQUIRE(world.run([&](Transaction& tx) { return map.erase(tx, k); }));
        it = model.erase(it);
      }
    }
    agree();
  }
  world.run([&](Transaction& tx) { map.destroy(tx); });
  REQUIRE(objects_left(world) == 0);
}

// Few hashes, each of many keys: chains.
struct Crowd {
  std::uint64_t operator()(std::uint64_t key) const { return mix_hash(key % 20); }
};

}  // namespace

TEST_CASE("A hash table in a full pool keeps what it has and gives back what it had") {
  fill_again_and_again<HashTable<std::uint64_t, Payload>>();
  fill_again_and_again<HashTable<std::uint64_t, Payload, Crowd>>();
}

TEST_CASE("A red-black tree in a full pool keeps what it has and gives back what it had") {
  fill_again_and_again<RbTree<std::uint64_t, Payload>>();
}

TEST_CASE("A B+ tree in a full pool keeps what it has and gives back what it had") {
  fill_again_and_again<BpTree<std::uint64_t, Payload, 4>>();
  fill_again_and_again<BpTree<std::uint64_t, Payload>>();
}

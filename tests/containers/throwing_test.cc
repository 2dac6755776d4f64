// Exceptions out of the functions of a key: its order, its equality and its hash.
#include <cstdint>
#include <map>
#include <stdexcept>

#include <sp3/containers/bp_tree.h>
#include <sp3/containers/hash_table.h>
#include <sp3/containers/rb_tree.h>

#include "tests/containers/model.h"

using namespace sp3;
using namespace sp3::test;

namespace {

struct Thrown : std::runtime_error {
  Thrown() : std::runtime_error("a key's own function") {}
};

// How many calls of a key's functions return before one throws; negative: all.
int calls_left = -1;
void call() {
  if (calls_left >= 0 && calls_left-- == 0) throw Thrown();
}

struct Key {
  std::uint64_t number = 0;
  friend bool operator<(const Key& a, const Key& b) {
    call();
    return a.number < b.number;
  }
  friend bool operator==(const Key& a, const Key& b) {
    call();
    return a.number == b.number;
  }
};

// Few hashes, so that chains are made and split.
struct Hash {
  std::uint64_t operator()(const Key& key) const {
    call();
    return mix_hash(key.number % 40);
  }
};

// Half of the bodies catch what is thrown and commit: nothing was changed then.
template <class Map>
void go_on_after_exceptions() {
  const std::uint64_t used_seed = seed();
  INFO("SP3_TEST_SEED=" << used_seed);
  World world(default_shape());
  const Map map = world.run([](Transaction& tx) { return Map::create(tx); });
  Random random(used_seed);
  std::map<std::uint64_t, std::uint64_t> model;
  unsigned thrown = 0;
  for (unsigned step = 0; step < 4000; ++step) {
    const std::uint64_t k = random.below(400);
    const bool inserts = random.chance(step < 2000 ? 70 : 30);
    const bool goes_on = random.chance(50);
    const int calls = random.chance(40) ? static_cast<int>(random.below(60)) : -1;
    const auto change = [&](Transaction& tx) {
      calls_left = calls;
      if (inserts) {
        map.insert_or_assign(tx, Key{k}, step);
      } else {
        map.erase(tx, Key{k});
      }
    };
    bool done = true;
    try {
      world.run([&](Transaction& tx) {
        try {
          change(tx);
        } catch (const Thrown&) {
          done = false;
          if (!goes_on) throw;
        }
      });
    } catch (const Thrown&) {
    }
    calls_left = -1;
    thrown += done ? 0 : 1;
    if (done && inserts) model.insert_or_assign(k, step);
    if (done && !inserts) model.erase(k);
    if (step % 50 != 0) continue;
    REQUIRE(world.run([&](Transaction& tx) { return map.check_invariants(tx); }) == "");
    std::map<std::uint64_t, std::uint64_t> found;
    world.run([&](Transaction& tx) {
      found.clear();
      map.for_each(tx, [&](const Key& key, std::uint64_t value) { found[key.number] = value; });
    });
    REQUIRE(found == model);
  }
  REQUIRE(thrown > 100);
  world.run([&](Transaction& tx) { map.destroy(tx); });
  REQUIRE(objects_left(world) == 0);
}

}  // namespace

TEST_CASE("A hash table is as before when a key's hash or equality throws") {
  go_on_after_exceptions<HashTable<Key, std::uint64_t, Hash>>();
}

TEST_CASE("A red-black tree is as before when the order of its keys throws") {
  go_on_after_exceptions<RbTree<Key, std::uint64_t>>();
}

TEST_CASE("A B+ tree is as before when the order of its keys throws") {
  go_on_after_exceptions<BpTree<Key, std::uint64_t, 4>>();
}

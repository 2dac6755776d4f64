#include <sp3/containers/rb_tree.h>

#include "tests/containers/map_model.h"

using namespace sp3;
using namespace sp3::test;

namespace {
using Map = RbTree<std::uint64_t, Payload>;
}

TEST_CASE("A red-black tree agrees with its model over random operations") {
  run_random(tiny_shape(), MapSubject<Map>(Order::random, 1200), 6000);
  run_random(default_shape(), MapSubject<Map>(Order::random, 5000), 15000);
}

TEST_CASE("A red-black tree agrees with its model for every order of keys") {
  for (const Order order : all_orders) {
    run_random(tiny_shape(), MapSubject<Map>(order, 1200), 3000);
  }
}

TEST_CASE("A red-black tree can be emptied and filled again") {
  fill_then_erase_all<Map>(tiny_shape(), 1000);
}

TEST_CASE("Every small red-black tree stays valid when any of its keys is erased") {
  // All trees that ascending insertion makes, small enough to erase each key of each of them.
  World world(tiny_shape());
  for (std::uint64_t size = 1; size <= 24; ++size) {
    for (std::uint64_t victim = 0; victim < size; ++victim) {
      INFO("key " << victim << " of " << size);
      world.run([&](Transaction& tx) {
        const Map map = Map::create(tx);
        for (std::uint64_t k = 0; k < size; ++k) map.insert_or_assign(tx, k, Payload(k));
        REQUIRE(map.erase(tx, victim));
        REQUIRE_FALSE(map.erase(tx, victim));
        REQUIRE(map.check_invariants(tx) == "");
        REQUIRE(map.size(tx) == size - 1);
        map.destroy(tx);
      });
    }
  }
}

TEST_CASE("A destroyed red-black tree leaves no memory behind") {
  destroy_repeatedly<Map>(1500, 25);
}

TEST_CASE("Of a red-black tree whose keys were erased no object is left") {
  count_what_is_left<Map>();
}

TEST_CASE("Giving a key a new value changes no other node of a red-black tree") {
  World world(tiny_shape());
  const Map map = world.run([](Transaction& tx) { return Map::create(tx); });
  for (std::uint64_t k = 0; k < 100; ++k) {
    world.run([&](Transaction& tx) { map.insert_or_assign(tx, k, Payload(k)); });
  }
  world.run([&](Transaction& tx) {
    const Payload* other = map.lookup(tx, 50);
    map.insert_or_assign(tx, 51, Payload(1));
    REQUIRE(map.lookup(tx, 50) == other);
    REQUIRE(map.lookup(tx, 51)->number == 1);
    REQUIRE(map.lookup(tx, 100) == nullptr);
  });
}

// Values are objects of their own, so that this is no conflict.
TEST_CASE("A new value does not disturb who passes through its key in a red-black tree") {
  World world(tiny_shape());
  const Map map = filled_map<Map>(world, 3);
  Session other = world.new_session();
  int attempts = 0;
  const std::uint64_t seen = world.run([&](Transaction& tx) {
    ++attempts;
    map.insert_or_assign(tx, 0, Payload(10));  // through the root, which is 1
    if (attempts == 1) {
      other.run([&](Transaction& inner) { map.insert_or_assign(inner, 1, Payload(11)); });
    }
    return map.lookup(tx, 2)->number;
  });
  REQUIRE(attempts == 1);
  REQUIRE(seen == 2);
}

TEST_CASE("A visitor of a red-black tree can end the walk") { end_a_walk_early<Map>(); }

TEST_CASE("A red-black tree has nothing beyond its ends") { look_beyond_the_ends<Map>(); }

TEST_CASE("A walk through a red-black tree comes to the greatest key there can be") {
  walk_to_the_greatest_key<Map>();
}

TEST_CASE("Damage to a red-black tree is reported") {
  World world(tiny_shape());
  const Map map = filled_map<Map>(world, 20);
  const auto root = [&](Transaction& tx) { return tx.read(map.header()).root; };
  // The last node on the way down along one side.
  const auto outermost = [&](Transaction& tx, unsigned side) {
    Ptr<Map::Node> at = root(tx);
    while (tx.read(at).child[side]) at = tx.read(at).child[side];
    return at;
  };
  REQUIRE_THAT(reported_after(world, map, [&](Transaction& tx) { tx.write(root(tx)).red = 1; }),
               Catch::Contains("is the root and red"));
  REQUIRE_THAT(
      reported_after(world, map, [&](Transaction& tx) { tx.write(outermost(tx, 0)).red ^= 1; }),
      Catch::Contains("black nodes below"));
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                auto& child = tx.write(root(tx)).child;
                                std::swap(child[0], child[1]);
                              }),
               Catch::Contains("that is not"));
  REQUIRE_THAT(
      reported_after(world, map, [&](Transaction& tx) { tx.write(outermost(tx, 1)).key = 3; }),
      Catch::Contains("is right of a key"));
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                const auto last = outermost(tx, 1);
                                REQUIRE(tx.read(last).red == 1);
                                tx.write(last).child[1] = tx.make<Map::Node>(
                                    std::uint64_t{99}, std::array<Ptr<Map::Node>, 2>{},
                                    std::uint64_t{1}, tx.make<Payload>(Payload(0)));
                              }),
               Catch::Contains("is red and so is its parent"));
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                const auto value = tx.read(outermost(tx, 0)).value;
                                tx.write(outermost(tx, 1)).value = value;
                              }),
               Catch::Contains("as another has"));
  REQUIRE_THAT(
      reported_after(world, map, [&](Transaction& tx) { tx.write(outermost(tx, 0)).red = 2; }),
      Catch::Contains("has colour 2"));
  // In order, and black all the way down.
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                auto last = outermost(tx, 1);
                                tx.write(last).red = 0;
                                for (std::uint64_t key = 100; key < 230; ++key) {
                                  const auto next = tx.make<Map::Node>(
                                      key, std::array<Ptr<Map::Node>, 2>{}, std::uint64_t{0},
                                      tx.make<Payload>(Payload(key)));
                                  tx.write(last).child[1] = next;
                                  last = next;
                                }
                              }),
               Catch::Contains("is 129 levels deep"));
  REQUIRE_THAT(
      reported_after(world, map, [&](Transaction& tx) { tx.destroy(tx.read(root(tx)).value); }),
      Catch::Contains("A pointer is wrong: ") && Catch::Contains("was destroyed"));
}

TEST_CASE("A red-black tree takes the word of an order that says so in numbers") {
  struct Key {
    long value;
    int operator<(const Key& other) const { return value < other.value ? -7 : 0; }
  };
  using Odd = RbTree<Key, long>;
  World world(tiny_shape());
  world.run([&](Transaction& tx) {
    const Odd map = Odd::create(tx);
    for (long k = 0; k < 200; ++k) map.insert_or_assign(tx, {k * 37 % 200}, k);
    REQUIRE(map.check_invariants(tx) == "");
    REQUIRE(map.size(tx) == 200);
    for (long k = 0; k < 200; ++k) REQUIRE(map.contains(tx, {k}));
    map.destroy(tx);
  });
}

TEST_CASE("Two threads change different keys of a red-black tree") {
  run_two_writers<Map>(tiny_shape(), 500, false, 3000);
  run_two_writers<Map>(default_shape(), 3000, false, 8000);
}

TEST_CASE("Two threads change the same keys of a red-black tree") {
  run_two_writers<Map>(tiny_shape(), 60, true, 3000);
  run_two_writers<Map>(default_shape(), 600, true, 8000);
}

TEST_CASE("A red-black tree survives the death of its process at any time", "[crash]") {
  run_crashes(tiny_shape(), MapSubject<Map>(Order::random, 800), 8);
  run_crashes(default_shape(), MapSubject<Map>(Order::random, 800), 4);
}

TEST_CASE("A red-black tree survives many deaths of its process", "[.full][crash]") {
  run_crashes(tiny_shape(), MapSubject<Map>(Order::random, 800), 150);
}

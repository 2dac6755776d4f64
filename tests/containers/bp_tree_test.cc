#include <sp3/containers/bp_tree.h>

#include "tests/containers/map_model.h"

using namespace sp3;
using namespace sp3::test;

namespace {

using Map = BpTree<std::uint64_t, Payload>;
// The least fan-outs, even and odd: every rule about minimal fill bites at once.
using Narrow4 = BpTree<std::uint64_t, Payload, 4>;
using Narrow5 = BpTree<std::uint64_t, Payload, 5>;

template <class M>
void erase_each_key_of_small_trees(std::uint64_t largest) {
  World world(tiny_shape());
  for (std::uint64_t size = 1; size <= largest; ++size) {
    for (std::uint64_t victim = 0; victim < size; ++victim) {
      INFO("key " << victim << " of " << size);
      world.run([&](Transaction& tx) {
        const M map = M::create(tx);
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

// Most significant first, in as many bytes.
template <std::size_t Bytes>
struct ByteKey {
  std::array<unsigned char, Bytes> bytes{};

  explicit ByteKey(std::uint64_t number = 0) {
    for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte, number >>= 8) {
      *byte = static_cast<unsigned char>(number);
    }
  }
  // NOLINTNEXTLINE(modernize-use-nullptr): where the compiler's own comparison compares with 0
  friend auto operator<=>(const ByteKey&, const ByteKey&) = default;
};

// A transaction for each key: nodes are copied to their homes' form between any two.
template <std::size_t Bytes>
void fill_with_byte_keys() {
  using Key = ByteKey<Bytes>;
  World world(tiny_shape());
  const auto map = world.run([](Transaction& tx) { return BpTree<Key, Key>::create(tx); });
  constexpr std::uint64_t kKeys = 600;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const Key key(i * 7919 % kKeys + 0x0101);
    world.run([&](Transaction& tx) { map.insert_or_assign(tx, key, key); });
  }
  world.run([&](Transaction& tx) {
    CHECK(map.check_invariants(tx) == "");
    std::uint64_t next = 0x0101;
    map.for_each(tx, [&](const Key& key, const Key& value) {
      REQUIRE(key == Key(next++));
      REQUIRE(value == key);
    });
    CHECK(next == 0x0101 + kKeys);
  });
}

}  // namespace

TEST_CASE("A B+ tree's keys may be structures of any size") {
  fill_with_byte_keys<2>();
  fill_with_byte_keys<3>();
  fill_with_byte_keys<5>();
  fill_with_byte_keys<12>();
}

TEST_CASE("A B+ tree agrees with its model over random operations") {
  run_random(tiny_shape(), MapSubject<Map>(Order::random, 1200), 6000);
  run_random(default_shape(), MapSubject<Map>(Order::random, 5000), 15000);
}

TEST_CASE("A B+ tree agrees with its model for every order of keys") {
  for (const Order order : all_orders) {
    run_random(tiny_shape(), MapSubject<Map>(order, 1200), 3000);
  }
}

TEST_CASE("B+ trees of the least fan-outs agree with their model") {
  for (const Order order : all_orders) {
    run_random(tiny_shape(), MapSubject<Narrow4>(order, 1000), 3000);
    run_random(tiny_shape(), MapSubject<Narrow5>(order, 1000), 3000);
  }
}

TEST_CASE("A B+ tree can be emptied and filled again") {
  fill_then_erase_all<Map>(tiny_shape(), 1000);
  fill_then_erase_all<Narrow4>(tiny_shape(), 400);
  fill_then_erase_all<Narrow5>(tiny_shape(), 400);
}

TEST_CASE("Every small B+ tree stays valid when any of its keys is erased") {
  erase_each_key_of_small_trees<Narrow4>(24);
  erase_each_key_of_small_trees<Narrow5>(24);
}

TEST_CASE("A destroyed B+ tree leaves no memory behind") {
  destroy_repeatedly<Map>(1500, 25);
  destroy_repeatedly<Narrow5>(500, 25);
}

TEST_CASE("Of a B+ tree whose keys were erased no object is left") {
  count_what_is_left<Map>();
  count_what_is_left<Narrow4>();
  count_what_is_left<Narrow5>();
}

TEST_CASE("A new value for a present key leaves the B+ tree's leaf alone") {
  World world(tiny_shape());
  const Map map = world.run([](Transaction& tx) { return Map::create(tx); });
  world.run([&](Transaction& tx) {
    for (std::uint64_t k = 0; k < 20; ++k) map.insert_or_assign(tx, k, Payload(k));
  });
  world.run([&](Transaction& tx) {
    const Payload* before = map.lookup(tx, 7);
    map.insert_or_assign(tx, 7, Payload(99));
    REQUIRE(before->number == 7);  // the version that was read
    REQUIRE(map.lookup(tx, 7)->number == 99);
    REQUIRE(map.find(tx, 8)->number == 8);
  });
}

TEST_CASE("A visitor of a B+ tree can end the walk") { end_a_walk_early<Narrow4>(); }

TEST_CASE("A B+ tree has nothing beyond its ends") { look_beyond_the_ends<Narrow4>(); }

TEST_CASE("A walk through a B+ tree comes to the greatest key there can be") {
  walk_to_the_greatest_key<Narrow4>();
}

TEST_CASE("Damage to a B+ tree is reported") {
  World world(tiny_shape());
  const Narrow4 map = world.run([](Transaction& tx) {
    const Narrow4 created = Narrow4::create(tx);
    for (std::uint64_t k = 0; k < 40; ++k) created.insert_or_assign(tx, k * 2, Payload(k));
    return created;
  });
  const auto root = [&](Transaction& tx) {
    return Ptr<Narrow4::Inner>::from_offset(tx.read(map.header()).root);
  };
  const auto first_leaf = [&](Transaction& tx) {
    std::uint64_t at = tx.read(map.header()).root;
    for (std::uint64_t i = tx.read(map.header()).height; i > 0; --i) {
      at = tx.read(Ptr<Narrow4::Inner>::from_offset(at)).children[0];
    }
    return Ptr<Narrow4::Leaf>::from_offset(at);
  };
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                auto& keys = tx.write(first_leaf(tx)).keys;
                                std::swap(keys[0], keys[1]);
                              }),
               Catch::Contains("out of order"));
  REQUIRE_THAT(
      reported_after(world, map, [&](Transaction& tx) { tx.write(first_leaf(tx)).count = 1; }),
      Catch::Contains("has 1 keys, not 2 to 3"));
  REQUIRE_THAT(
      reported_after(world, map, [&](Transaction& tx) { tx.write(first_leaf(tx)).next = nullptr; }),
      Catch::Contains("is linked to 0"));
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                auto& values = tx.write(first_leaf(tx)).values;
                                values[1] = values[0];
                              }),
               Catch::Contains("belongs to two keys"));
  REQUIRE_THAT(
      reported_after(world, map, [&](Transaction& tx) { tx.write(root(tx)).keys[0] += 3; }),
      Catch::Contains("on the wrong side of a separator"));
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                auto& children = tx.write(root(tx)).children;
                                children[1] = children[0];
                              }),
               Catch::Contains("occurs twice") || Catch::Contains("wrong side"));
  REQUIRE_THAT(
      reported_after(world, map, [&](Transaction& tx) { --tx.write(map.header()).height; }),
      Catch::Contains("A pointer is wrong: ") && Catch::Contains("has another type"));
}

TEST_CASE("Two threads change different keys of a B+ tree") {
  run_two_writers<Map>(tiny_shape(), 500, false, 3000);
  run_two_writers<Map>(default_shape(), 3000, false, 8000);
}

TEST_CASE("Two threads change the same keys of a B+ tree") {
  run_two_writers<Narrow4>(tiny_shape(), 60, true, 3000);
  run_two_writers<Map>(default_shape(), 600, true, 8000);
}

TEST_CASE("A B+ tree survives the death of its process at any time", "[crash]") {
  run_crashes(tiny_shape(), MapSubject<Narrow4>(Order::random, 800), 8);
  run_crashes(default_shape(), MapSubject<Map>(Order::random, 800), 4);
}

TEST_CASE("A B+ tree survives many deaths of its process", "[.full][crash]") {
  run_crashes(tiny_shape(), MapSubject<Narrow4>(Order::random, 800), 150);
}

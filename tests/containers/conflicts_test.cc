// Who conflicts with whom, as the table in containers/README.md and the headers say: a transaction
// commits between the end of another's body and its commit, and the other has to start over or not.
#include <cstdint>
#include <utility>

#include <sp3/containers/array.h>
#include <sp3/containers/bp_tree.h>
#include <sp3/containers/hash_table.h>
#include <sp3/containers/queue.h>
#include <sp3/containers/rb_tree.h>

#include "tests/containers/model.h"

using namespace sp3;
using namespace sp3::test;

namespace {

// A world with a second session.
class Two : public World {
 public:
  Two() : World(default_shape()), other_(new_session()) {
    bodies_ = run([](Transaction& tx) { return tx.make<std::uint64_t>(); });
  }

  // Whether `body` starts over if `between` commits behind its first attempt. It writes something
  // else, too: what only reads can be before the other one, and need not start over.
  template <class Body, class Between>
  bool conflict(Body&& body, Between&& between) {
    unsigned attempts = 0;
    run([&](Transaction& tx) {
      ++attempts;
      body(tx);
      ++tx.write(bodies_);
      if (attempts == 1) {
        other_.run([&](Transaction& inner) { between(inner); });
      }
    });
    return attempts != 1;
  }

 private:
  Session other_;
  Ptr<std::uint64_t> bodies_;
};

// The bucket is the key's highest byte, as soon as there are enough keys.
struct ByHighestByte {
  std::uint64_t operator()(std::uint64_t key) const { return key; }
};
using ByBucket = HashTable<std::uint64_t, std::uint64_t, ByHighestByte>;
constexpr std::uint64_t in_bucket(std::uint64_t bucket, std::uint64_t number) {
  return bucket << 56 | number;
}

constexpr std::uint64_t keys = 1000;

// With every even key below 2 * keys.
template <class Map>
Map even_keys(World& world) {
  return world.run([](Transaction& tx) {
    Map map = Map::create(tx);
    for (std::uint64_t k = 0; k < keys; ++k) map.insert_or_assign(tx, 2 * k, k);
    return map;
  });
}

// What holds for all maps.
template <class Map>
void use_keys(Two& two, const Map& map) {
  const auto find = [&](std::uint64_t k) {
    return [&map, k](Transaction& tx) { return map.find(tx, k); };
  };
  const auto assign = [&](std::uint64_t k) {
    return [&map, k](Transaction& tx) { return map.insert_or_assign(tx, k, k + 1); };
  };
  const auto erase = [&](std::uint64_t k) {
    return [&map, k](Transaction& tx) { return map.erase(tx, k); };
  };
  for (std::uint64_t k = 0; k < 2 * keys - 2; k += 14) {
    REQUIRE_FALSE(two.conflict(find(k), assign(k + 2)));
    REQUIRE_FALSE(two.conflict(assign(k), assign(k + 2)));
    REQUIRE_FALSE(two.conflict(assign(k), find(k)));
    REQUIRE(two.conflict(find(k), assign(k)));
    REQUIRE(two.conflict(assign(k), assign(k)));
  }
  // What is not there is looked at, too.
  REQUIRE(two.conflict(find(501), assign(501)));
  REQUIRE(two.conflict(erase(503), assign(503)));
  REQUIRE(two.conflict(find(600), erase(600)));
  REQUIRE(two.conflict([&](Transaction& tx) { return map.size(tx); }, assign(601)));
  REQUIRE(two.conflict([&](Transaction& tx) { return map.size(tx); }, erase(602)));
}

// A range is all keys that there are or might be in it.
template <class Map>
void use_ranges(Two& two, const Map& map) {
  const auto up = [&](std::uint64_t from, std::uint64_t to) {
    return [&map, from, to](Transaction& tx) {
      map.range(tx, from, to, [](std::uint64_t, std::uint64_t) {});
    };
  };
  const auto down = [&](std::uint64_t from, std::uint64_t to) {
    return [&map, from, to](Transaction& tx) {
      map.range_down(tx, from, to, [](std::uint64_t, std::uint64_t) {});
    };
  };
  const auto insert = [&](std::uint64_t k) {
    return [&map, k](Transaction& tx) { REQUIRE(map.insert_or_assign(tx, k, k)); };
  };
  const auto erase = [&](std::uint64_t k) {
    return [&map, k](Transaction& tx) { REQUIRE(map.erase(tx, k)); };
  };
  REQUIRE(two.conflict(up(100, 300), insert(201)));
  REQUIRE(two.conflict(up(100, 300), erase(204)));
  REQUIRE(two.conflict(down(300, 100), insert(207)));
  REQUIRE(two.conflict(down(300, 100), erase(210)));
  REQUIRE_FALSE(two.conflict(up(100, 300), insert(1501)));
  REQUIRE_FALSE(two.conflict(down(300, 100), erase(1600)));
  REQUIRE(two.conflict([&](Transaction& tx) { return map.lower_bound(tx, 401); }, insert(401)));
  REQUIRE(two.conflict([&](Transaction& tx) { return map.upper_bound(tx, 404); }, insert(405)));
  REQUIRE(two.conflict([&](Transaction& tx) { return map.floor(tx, 413); }, insert(413)));
  REQUIRE(two.conflict([&](Transaction& tx) { return map.first(tx); }, erase(0)));
  REQUIRE(two.conflict([&](Transaction& tx) { return map.last(tx); }, insert(2 * keys)));
}

}  // namespace

TEST_CASE("Uses of an array conflict at the same entry only") {
  Two two;
  using Numbers = Array<std::uint64_t>;
  const Numbers array = two.run([](Transaction& tx) { return Numbers::create(tx, 300); });
  const auto get = [&](std::uint64_t i) {
    return [&array, i](Transaction& tx) { return array.get(tx, i); };
  };
  const auto set = [&](std::uint64_t i) {
    return [&array, i](Transaction& tx) { array.set(tx, i, 7); };
  };
  REQUIRE_FALSE(two.conflict(get(3), set(4)));
  REQUIRE_FALSE(two.conflict(set(3), set(4)));
  REQUIRE(two.conflict(get(3), set(3)));
  REQUIRE_FALSE(two.conflict([&](Transaction& tx) { array.swap(tx, 3, 299); }, set(4)));
  REQUIRE(two.conflict([&](Transaction& tx) { array.swap(tx, 3, 299); }, set(299)));
}

TEST_CASE("A push and a pop of a queue conflict only while it holds at most one value") {
  Two two;
  using Numbers = Queue<std::uint64_t>;
  const Numbers queue = two.run([](Transaction& tx) { return Numbers::create(tx); });
  const auto push = [&](Transaction& tx) { queue.push(tx, 7); };
  const auto pop = [&](Transaction& tx) { return queue.pop(tx); };
  const auto fill = [&](unsigned values) {
    two.run([&](Transaction& tx) {
      while (queue.pop(tx)) {
      }
      for (unsigned i = 0; i < values; ++i) queue.push(tx, i);
    });
  };
  for (const unsigned values : {0U, 1U}) {
    fill(values);
    REQUIRE(two.conflict(pop, push));
    fill(values);
    REQUIRE((two.conflict(push, pop) || values == 0));  // a pop that finds nothing changes nothing
  }
  for (const unsigned values : {2U, 3U}) {
    fill(values);
    REQUIRE_FALSE(two.conflict(pop, push));
    fill(values);
    REQUIRE_FALSE(two.conflict(push, pop));
  }
  fill(5);
  REQUIRE(two.conflict(push, push));
  REQUIRE(two.conflict(pop, pop));
  REQUIRE(two.run([&](Transaction& tx) { return queue.check_invariants(tx); }) == "");
}

TEST_CASE(
    "Uses of a hash table conflict at the same key, or at a new or erased one of the bucket") {
  Two two;
  use_keys(two, even_keys<HashTable<std::uint64_t, std::uint64_t>>(two));

  const ByBucket map = two.run([](Transaction& tx) {
    ByBucket made = ByBucket::create(tx);
    for (std::uint64_t b = 0; b < 256; ++b) {
      for (std::uint64_t k = 0; k < 10; ++k) made.insert_or_assign(tx, in_bucket(b, k), k);
    }
    return made;
  });
  const auto find = [&](std::uint64_t k) {
    return [&map, k](Transaction& tx) { return map.find(tx, k); };
  };
  const auto insert = [&](std::uint64_t k) {
    return [&map, k](Transaction& tx) { REQUIRE(map.insert_or_assign(tx, k, k)); };
  };
  const auto erase = [&](std::uint64_t k) {
    return [&map, k](Transaction& tx) { REQUIRE(map.erase(tx, k)); };
  };
  REQUIRE_FALSE(two.conflict(find(in_bucket(7, 1)), insert(in_bucket(8, 10))));
  REQUIRE_FALSE(two.conflict(insert(in_bucket(9, 10)), insert(in_bucket(10, 10))));
  REQUIRE_FALSE(two.conflict(erase(in_bucket(9, 0)), erase(in_bucket(10, 0))));
  REQUIRE(two.conflict(find(in_bucket(11, 1)), insert(in_bucket(11, 10))));
  REQUIRE(two.conflict(insert(in_bucket(12, 10)), insert(in_bucket(12, 11))));
}

TEST_CASE("Uses of a red-black tree conflict at the same key, or where nodes change") {
  Two two;
  const auto tree = even_keys<RbTree<std::uint64_t, std::uint64_t>>(two);
  use_ranges(two, tree);
  use_keys(two, even_keys<RbTree<std::uint64_t, std::uint64_t>>(two));
}

TEST_CASE("Uses of a B+ tree conflict at the same key, or at a new or erased one of the leaf") {
  Two two;
  const auto tree = even_keys<BpTree<std::uint64_t, std::uint64_t>>(two);
  use_ranges(two, tree);
  use_keys(two, even_keys<BpTree<std::uint64_t, std::uint64_t>>(two));
}

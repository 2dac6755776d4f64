// Keys and values that are more than numbers.
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include <sp3/containers/array.h>
#include <sp3/containers/bp_tree.h>
#include <sp3/containers/hash_table.h>
#include <sp3/containers/queue.h>
#include <sp3/containers/rb_tree.h>

#include "tests/containers/model.h"

using namespace sp3;
using namespace sp3::test;

namespace {

// A value as of JSON: a list of such values is one too, and so Variant{variant} is a list of one.
struct Variant {
  std::int64_t number = 0;
  std::uint64_t listed = 0;

  Variant() = default;
  explicit Variant(std::int64_t n) : number(n) {}
  Variant(std::initializer_list<Variant> list) : listed(list.size()) {}
};

template <class Map>
void keep_copies(Transaction& tx, const Variant& value) {
  const Map map = Map::create(tx);
  REQUIRE(map.insert_or_assign(tx, 1, value));
  REQUIRE(map.find(tx, 1)->listed == 0);
  REQUIRE(map.find(tx, 1)->number == 7);
  REQUIRE_FALSE(map.insert_or_assign(tx, 1, Variant(8)));
  REQUIRE(map.find(tx, 1)->listed == 0);
  REQUIRE(map.find(tx, 1)->number == 8);
}

}  // namespace

TEST_CASE("Containers hold copies of values, also of those that a list of their type can make") {
  World world(tiny_shape());
  world.run([](Transaction& tx) {
    const Variant value(7);
    REQUIRE(tx.read(tx.make<Variant>(value)).number == 7);
    REQUIRE(tx.read(tx.make<Variant>(value, value)).listed == 2);
    keep_copies<HashTable<std::uint64_t, Variant>>(tx, value);
    keep_copies<RbTree<std::uint64_t, Variant>>(tx, value);
    keep_copies<BpTree<std::uint64_t, Variant>>(tx, value);
    const auto array = Array<Variant>::create(tx, 3, value);
    REQUIRE(array.get(tx, 2).number == 7);
    const auto queue = Queue<Variant>::create(tx);
    queue.push(tx, value);
    REQUIRE(queue.pop(tx)->number == 7);
  });
}

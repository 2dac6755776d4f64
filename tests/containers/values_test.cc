// Keys and values that are more than numbers, and the numbers at both ends.
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

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

struct Page {
  std::array<std::uint64_t, 64> words{};
};

// A key that has a value keeps it when it is only inserted, which then writes nothing; and of a
// value that changes in place the log has the words that do.
template <class Map>
void insert_and_change() {
  World world(tiny_shape());
  Session session = world.new_session();
  const auto logged = [&](auto&& body) {
    const std::uint64_t before = session.statistics().log_bytes;
    session.run(body);
    return session.statistics().log_bytes - before;
  };
  const Map map = session.run([](Transaction& tx) { return Map::create(tx); });
  Page first;
  first.words.fill(1);
  Page second;
  second.words.fill(2);
  session.run([&](Transaction& tx) {
    REQUIRE(map.write(tx, 7) == nullptr);
    REQUIRE(map.insert(tx, 7, first));
    REQUIRE_FALSE(map.insert(tx, 7, second));
    REQUIRE(map.find(tx, 7)->words == first.words);
  });
  REQUIRE(logged([&](Transaction& tx) {
            REQUIRE_FALSE(map.insert(tx, 7, second));
            REQUIRE(map.write(tx, 8) == nullptr);
          }) == 0);
  REQUIRE(logged([&](Transaction& tx) { map.write(tx, 7)->words[5] = 3; }) < sizeof(Page) / 2);
  first.words[5] = 3;
  session.run([&](Transaction& tx) { REQUIRE(map.find(tx, 7)->words == first.words); });
  REQUIRE(logged([&](Transaction& tx) { REQUIRE_FALSE(map.insert_or_assign(tx, 7, second)); }) >=
          sizeof(Page));
  session.run([&](Transaction& tx) { REQUIRE(map.find(tx, 7)->words == second.words); });
  session.close();
}

// Each walk adds one to every value, and shows every key once.
template <class Map>
void change_values_in_walks() {
  World world(tiny_shape());
  const Map map = world.run([](Transaction& tx) {
    Map made = Map::create(tx);
    for (std::uint64_t k = 0; k < 500; ++k) made.insert_or_assign(tx, k, 0);
    return made;
  });
  for (std::uint64_t walk = 1; walk < 4; ++walk) {
    world.run([&](Transaction& tx) {
      std::uint64_t shown = 0;
      map.for_each(tx, [&](std::uint64_t key, std::uint64_t value) {
        map.insert_or_assign(tx, key, value + 1);
        ++shown;
      });
      REQUIRE(shown == 500);
      REQUIRE(map.check_invariants(tx) == "");
    });
    world.run([&](Transaction& tx) {
      map.for_each(tx, [&](std::uint64_t, std::uint64_t value) { REQUIRE(value == walk); });
    });
  }
}

// An empty range shows nothing, wherever it is; nor does one that ends before it begins.
template <class K, class Map>
void use_ends_of_range() {
  using Limits = std::numeric_limits<K>;
  constexpr K least = Limits::lowest();
  constexpr K greatest = Limits::max();
  World world(tiny_shape());
  world.run([&](Transaction& tx) {
    const Map map = Map::create(tx);
    for (const K key : {least, greatest, K{1}}) map.insert_or_assign(tx, key, 7);
    unsigned shown = 0;
    const auto count = [&](const K&, int) { ++shown; };
    const auto in = [&](K from, K to) {
      shown = 0;
      map.range(tx, from, to, count);
      return shown;
    };
    const auto in_down = [&](K from, K to) {
      shown = 0;
      map.range_down(tx, from, to, count);
      return shown;
    };
    for (const K key : {least, K{1}, greatest}) {
      REQUIRE(in(key, key) == 0);
      REQUIRE(in_down(key, key) == 0);
      REQUIRE(map.lower_bound(tx, key)->first == key);
      REQUIRE(map.floor(tx, key)->first == key);
    }
    REQUIRE(map.upper_bound(tx, least)->first == K{1});
    REQUIRE(map.upper_bound(tx, K{1})->first == greatest);
    REQUIRE_FALSE(map.upper_bound(tx, greatest));
    REQUIRE(in(greatest, least) == 0);
    REQUIRE(in(K{1}, least) == 0);
    REQUIRE(in_down(least, greatest) == 0);
    REQUIRE(in_down(K{1}, greatest) == 0);
    REQUIRE(in(least, greatest) == 2);
    REQUIRE(in_down(greatest, least) == 2);
    REQUIRE(map.erase(tx, least));
    REQUIRE(map.erase(tx, greatest));
    REQUIRE(map.first(tx)->first == K{1});
    REQUIRE(map.last(tx)->first == K{1});
  });
}

struct alignas(64) Aligned {
  std::uint64_t number = 0;
  friend bool operator==(const Aligned&, const Aligned&) = default;
  friend bool operator<(const Aligned& a, const Aligned& b) { return a.number < b.number; }
};
struct AlignedHash {
  std::uint64_t operator()(const Aligned& key) const { return mix_hash(key.number); }
};

template <class Map>
void keep_alignment(World& world) {
  const Map map = world.run([](Transaction& tx) {
    Map made = Map::create(tx);
    for (std::uint64_t k = 0; k < 50; ++k) {
      Aligned entry;
      entry.number = k;
      made.insert_or_assign(tx, entry, entry);
    }
    return made;
  });
  const auto look = [&](Transaction& tx) {
    map.for_each(tx, [](const Aligned& key, const Aligned& value) {
      REQUIRE(reinterpret_cast<std::uintptr_t>(&key) % alignof(Aligned) == 0);
      REQUIRE(reinterpret_cast<std::uintptr_t>(&value) % alignof(Aligned) == 0);
      REQUIRE(key == value);
    });
  };
  world.run(look);
  world.checkpoint();
  world.run(look);
}

// What opening the container at the root "subject" as one of another type throws.
template <class Container>
std::string opened_as(World& world) {
  try {
    world.run(
        [](Transaction& tx) { static_cast<void>(tx.root<typename Container::Header>("subject")); });
  } catch (const Error& error) {
    return to_string(error.code());
  }
  return "no error";
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

TEST_CASE("Ordered maps take the least and the greatest keys, and ranges that are none") {
  use_ends_of_range<std::int8_t, RbTree<std::int8_t, int>>();
  use_ends_of_range<std::int8_t, BpTree<std::int8_t, int>>();
  use_ends_of_range<std::int64_t, RbTree<std::int64_t, int>>();
  use_ends_of_range<std::int64_t, BpTree<std::int64_t, int>>();
  use_ends_of_range<double, RbTree<double, int>>();
  use_ends_of_range<double, BpTree<double, int>>();
}

TEST_CASE("What is inserted leaves a present value alone, and values change in place") {
  insert_and_change<HashTable<std::uint64_t, Page>>();
  insert_and_change<RbTree<std::uint64_t, Page>>();
  insert_and_change<BpTree<std::uint64_t, Page>>();
}

TEST_CASE("A visitor may give new values to the keys that it is shown") {
  change_values_in_walks<HashTable<std::uint64_t, std::uint64_t>>();
  change_values_in_walks<RbTree<std::uint64_t, std::uint64_t>>();
  change_values_in_walks<BpTree<std::uint64_t, std::uint64_t>>();
}

TEST_CASE("Keys and values of containers are aligned as their types ask") {
  World world(default_shape());
  keep_alignment<HashTable<Aligned, Aligned, AlignedHash>>(world);
  keep_alignment<RbTree<Aligned, Aligned>>(world);
  keep_alignment<BpTree<Aligned, Aligned>>(world);
}

TEST_CASE("A container is not opened as one of other template arguments, nor of another kind") {
  World world(default_shape());
  using Number = std::uint64_t;
  using Table = HashTable<Number, Number>;
  world.run([](Transaction& tx) { tx.set_root("subject", Table::create(tx).header()); });
  REQUIRE(opened_as<Table>(world) == "no error");
  REQUIRE(opened_as<HashTable<Number, std::int64_t>>(world) == "wrong_type");
  REQUIRE(opened_as<HashTable<std::int64_t, Number>>(world) == "wrong_type");
  REQUIRE(opened_as<RbTree<Number, Number>>(world) == "wrong_type");
  REQUIRE(opened_as<Queue<Number>>(world) == "wrong_type");
  REQUIRE(opened_as<Array<Number>>(world) == "wrong_type");
  using Tree = BpTree<Number, Number, 8>;
  world.run([](Transaction& tx) { tx.set_root("subject", Tree::create(tx).header()); });
  REQUIRE(opened_as<Tree>(world) == "no error");
  REQUIRE(opened_as<BpTree<Number, Number, 9>>(world) == "wrong_type");
  REQUIRE(opened_as<Table>(world) == "wrong_type");
}

TEST_CASE("Containers may hold containers, by handles without a cache or by headers") {
  World world(default_shape());
  using Inner = Queue<std::uint64_t>;
  using ByHandle = HashTable<std::uint64_t, Inner>;
  using ByHeader = RbTree<std::uint64_t, Ptr<Inner::Header>>;
  world.run([](Transaction& tx) {
    const auto by_handle = ByHandle::create(tx);
    const auto by_header = ByHeader::create(tx);
    for (std::uint64_t k = 0; k < 100; ++k) {
      const Inner queue = Inner::create(tx);
      queue.push(tx, k);
      by_handle.insert_or_assign(tx, k, queue);
      by_header.insert_or_assign(tx, k, queue.header());
    }
    tx.set_root("by handle", by_handle.header());
    tx.set_root("by header", by_header.header());
  });
  world.reopen();
  world.run([](Transaction& tx) {
    const auto by_handle = ByHandle::open(tx, tx.root<ByHandle::Header>("by handle"));
    const auto by_header = ByHeader::open(tx, tx.root<ByHeader::Header>("by header"));
    for (std::uint64_t k = 0; k < 100; ++k) {
      const Inner queue = by_handle.find(tx, k).value();
      REQUIRE(Inner::open(tx, by_header.find(tx, k).value()).front(tx) == k);
      queue.push(tx, k + 1);
      REQUIRE(queue.pop(tx) == k);
      REQUIRE(queue.pop(tx) == k + 1);
      queue.destroy(tx);
    }
    by_handle.destroy(tx);
    by_header.destroy(tx);
    tx.set_root("by handle", Ptr<ByHandle::Header>());
    tx.set_root("by header", Ptr<ByHeader::Header>());
  });
  REQUIRE(objects_left(world) == 0);
}

#include <sp3/containers/hash_table.h>

#include "tests/containers/map_model.h"

using namespace sp3;
using namespace sp3::test;

namespace {

// A hash as bad as a careless user's: few values, equal in most bits.
struct PoorHash {
  std::uint64_t operator()(std::uint64_t key) const { return key % 5; }
};

// One that tells a hundred keys from the next hundred, late, and those of a hundred not at all.
struct CoarseHash {
  std::uint64_t operator()(std::uint64_t key) const { return key / 100 << 50; }
};

// One that tells keys apart only behind the bits of the first two levels, or of three.
template <unsigned zeros>
struct LateHash {
  std::uint64_t operator()(std::uint64_t key) const { return mix_hash(key) >> zeros; }
};

// One that tells the key 0 from all others, by the last bit that can be told, above or below them.
template <bool above>
struct LoneHash {
  std::uint64_t operator()(std::uint64_t key) const {
    const std::uint64_t others = above ? 0 : ~std::uint64_t{0};
    return key == 0 ? others ^ 2 : others;
  }
};

template <bool above>
void split_a_long_chain_at_the_last_bit() {
  using LoneMap = HashTable<std::uint64_t, std::uint64_t, LoneHash<above>>;
  Shape shape = tiny_shape();
  shape.options.geometry.log_size = 1 << 20;  // the chain's buckets are written in one transaction
  World world(shape);
  const LoneMap map = world.run([](Transaction& tx) { return LoneMap::create(tx); });
  constexpr std::uint64_t kChain = std::uint64_t{600} * LoneMap::slots_per_bucket;
  for (std::uint64_t key = 1; key <= kChain; ++key) {
    world.run([&](Transaction& tx) { map.insert_or_assign(tx, key, key); });
  }
  REQUIRE(world.run([&](Transaction& tx) { return map.insert_or_assign(tx, 0, 0); }));
  world.run([&](Transaction& tx) {
    CHECK(map.check_invariants(tx) == "");
    CHECK(map.size(tx) == kChain + 1);
    CHECK(map.find(tx, 0) == 0);
    CHECK(map.find(tx, kChain) == kChain);
  });
}

struct Name {
  std::array<char, 16> text{};
  bool operator==(const Name&) const = default;
};

using Map = HashTable<std::uint64_t, Payload>;
using PoorMap = HashTable<std::uint64_t, Payload, PoorHash>;
template <unsigned zeros>
using LateMap = HashTable<std::uint64_t, Payload, LateHash<zeros>>;

// Called like what has no name.
struct lambda_tag {};  // NOLINT(readability-identifier-naming)
template <class T>
struct OfTag {};
template <class T, int number>
struct OfNumber {};
template <std::array<int, 40> numbers>
struct OfArray {};
// To GCC without a name as well.
using Alias = struct { int number; };

}  // namespace

TEST_CASE("A hash table agrees with its model over random operations") {
  run_random(tiny_shape(), MapSubject<Map>(Order::random, 1200), 6000);
  run_random(default_shape(), MapSubject<Map>(Order::random, 5000), 15000);
}

TEST_CASE("A cached handle of a hash table agrees with the model while the table grows below it") {
  run_random(tiny_shape(), MapSubject<Map>(Order::random, 1200, true), 6000);
  run_random(default_shape(), MapSubject<Map>(Order::random, 5000, true), 15000);
}

TEST_CASE("Handles of a hash table, cached early, late and not at all, find the same") {
  World world(default_shape());
  const Map map = world.run([](Transaction& tx) { return Map::create(tx); });
  const auto cached = [&] { return world.run([&](Transaction& tx) { return map.cached(tx); }); };
  const auto fill = [&](const Map& handle, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t k = first; k < last; k += 20) {
      world.run([&](Transaction& tx) {
        for (std::uint64_t i = k; i < k + 20; ++i) handle.insert_or_assign(tx, i, Payload(i));
      });
    }
  };
  const Map early = cached();  // of one bucket
  fill(early, 0, 1500);        // some cells of the first directory name another by now
  const Map halfway = cached();
  fill(halfway, 1500, 6000);
  const Map late = cached();
  fill(late, 6000, 8000);
  for (const Map& handle : {map, early, halfway, late}) {
    world.run([&](Transaction& tx) {
      for (std::uint64_t k = 0; k < 8000; k += 7) {
        const Payload* found = handle.lookup(tx, k);
        REQUIRE(found != nullptr);
        REQUIRE(found->number == k);
      }
      REQUIRE_FALSE(handle.contains(tx, 8000));
    });
    REQUIRE(world.run([&](Transaction& tx) { return handle.check_invariants(tx); }) == "");
  }
}

TEST_CASE("A hash table agrees with its model for every order of keys") {
  for (const Order order : all_orders) {
    run_random(tiny_shape(), MapSubject<Map>(order, 1200), 3000);
  }
}

TEST_CASE("A hash table with a poor hash function is slow but right") {
  run_random(tiny_shape(), MapSubject<PoorMap>(Order::random, 300), 3000);
  fill_then_erase_all<PoorMap>(tiny_shape(), 200);
}

TEST_CASE("A chain of equal hashes is split whole when another hash comes, drained and destroyed") {
  using CoarseMap = HashTable<std::uint64_t, Payload, CoarseHash>;
  const std::uint64_t chain = GENERATE(0U, 1U);  // which of the two is there first
  World world(tiny_shape());
  const CoarseMap map = world.run([](Transaction& tx) { return CoarseMap::create(tx); });
  const auto insert = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      REQUIRE(world.run(
          [&](Transaction& tx) { return map.insert_or_assign(tx, first + i, Payload(i)); }));
    }
  };
  const auto check = [&](std::uint64_t size) {
    world.run([&](Transaction& tx) {
      REQUIRE(map.check_invariants(tx) == "");
      REQUIRE(map.size(tx) == size);
    });
  };
  insert(chain * 100);
  check(40);
  insert((1 - chain) * 100);  // the first of them splits what is there, again and again
  check(80);
  SECTION("drained") {
    while (!world.run([&](Transaction& tx) { return map.drain(tx, 10); })) {
    }
    check(0);
  }
  SECTION("as it is") {}
  world.run([&](Transaction& tx) { map.destroy(tx); });
  CHECK(objects_left(world) == 0);
}

// Of two hashes that share a chain each half needs fewer buckets than both did.
TEST_CASE("A long chain that is split keeps no bucket that it does not need") {
  using CoarseMap = HashTable<std::uint64_t, Payload, CoarseHash>;
  constexpr std::uint64_t kBucket = CoarseMap::slots_per_bucket;
  World world(tiny_shape());
  const CoarseMap map = world.run([](Transaction& tx) { return CoarseMap::create(tx); });
  const auto change = [&](std::uint64_t first, std::uint64_t count, bool insert) {
    for (std::uint64_t key = first; key < first + count; ++key) {
      world.run([&](Transaction& tx) {
        REQUIRE((insert ? map.insert(tx, key, Payload(key)) : map.erase(tx, key)));
      });
    }
  };
  change(0, 4 * kBucket, true);
  change(0, kBucket - 1, false);  // nearly all of each of two buckets
  change(kBucket, kBucket - 1, false);
  constexpr std::uint64_t kOthers = 2 * (kBucket - 1);
  change(100, kOthers, true);  // of the other hash, in their places
  change(100 + kOthers, 1, true);
  world.run([&](Transaction& tx) {
    REQUIRE(map.check_invariants(tx) == "");
    REQUIRE(map.size(tx) == 4 * kBucket + 1);
    map.destroy(tx);
  });
  CHECK(objects_left(world) == 0);
}

TEST_CASE("Draining a small hash table takes no more than it was asked for, and all in the end") {
  const std::uint64_t keys = 100;
  constexpr std::uint64_t kLimit = 5;
  World world(tiny_shape());
  const auto drain = [&](const auto& map) {
    const auto size = [&] { return world.run([&](Transaction& tx) { return map.size(tx); }); };
    for (std::uint64_t left = keys; left > 0;) {
      const bool all = world.run([&](Transaction& tx) { return map.drain(tx, kLimit); });
      const std::uint64_t before = std::exchange(left, size());
      REQUIRE(before - left < kLimit + Map::slots_per_bucket);
      REQUIRE((!all || left == 0));
    }
  };
  drain(filled_map<Map>(world, keys));
  drain(filled_map<PoorMap>(world, keys));  // one chain
}

// At each of 62 bits all keys are on one side. If the chain were made anew there, once for each bit
// in one transaction, it would not find room.
TEST_CASE("A long chain of equal hashes is split at the last bit in a pool of its size") {
  split_a_long_chain_at_the_last_bit<true>();
  split_a_long_chain_at_the_last_bit<false>();
}

TEST_CASE("A deep hash table agrees with its model") {
  run_random(tiny_shape(), MapSubject<LateMap<14>>(Order::random, 1200), 6000);
  run_random(tiny_shape(), MapSubject<LateMap<20>>(Order::random, 1200, true), 6000);
  run_random(default_shape(), MapSubject<LateMap<14>>(Order::random, 5000, true), 15000);
  fill_then_erase_all<LateMap<20>>(tiny_shape(), 1000);
  destroy_repeatedly<LateMap<14>>(1500, 25);
}

TEST_CASE("Below the second level of a hash table directories begin small and become large") {
  using Deep = LateMap<14>;
  World world(tiny_shape());
  const Deep map = world.run([](Transaction& tx) { return Deep::create(tx); });
  const Deep early = world.run([&](Transaction& tx) { return map.cached(tx); });
  // What the cell says besides an offset that leads to all keys: of each level, from the root.
  const auto flags = [&](Transaction& tx) {
    std::vector<std::uint64_t> result;
    auto directory = tx.read(map.header()).root;
    for (;;) {
      const std::uint64_t word = tx.read(directory).cells[0];
      result.push_back(word & 3);
      if ((word & 3) != 1 || result.size() == 3) return result;
      directory = Ptr<Deep::Directory>::from_offset(word & ~std::uint64_t{3});
    }
  };
  std::vector<std::vector<std::uint64_t>> seen;
  for (std::uint64_t k = 0; k < 200; ++k) {
    world.run([&](Transaction& tx) { REQUIRE(early.insert_or_assign(tx, k, Payload(k))); });
    world.run([&](Transaction& tx) {
      REQUIRE(map.check_invariants(tx) == "");
      if (seen.empty() || seen.back() != flags(tx)) seen.push_back(flags(tx));
      for (std::uint64_t i = 0; i <= k; ++i) REQUIRE(early.lookup(tx, i)->number == i);
    });
  }
  REQUIRE(seen.size() == 3);
  CHECK(seen[0] == std::vector<std::uint64_t>{0});     // a bucket
  CHECK(seen[1] == std::vector<std::uint64_t>{1, 3});  // one step: below the first two a small one
  CHECK(seen[2][1] == 1);                              // which is large now
  while (!world.run([&](Transaction& tx) { return map.drain(tx, 10); })) {
    REQUIRE(world.run([&](Transaction& tx) { return map.check_invariants(tx); }) == "");
  }
  world.run([&](Transaction& tx) { map.destroy(tx); });
  CHECK(objects_left(world) == 0);
}

TEST_CASE("A hash table can be emptied and filled again") {
  fill_then_erase_all<Map>(tiny_shape(), 1000);
}

TEST_CASE("A destroyed hash table leaves no memory behind") { destroy_repeatedly<Map>(1500, 25); }

TEST_CASE("Of a hash table whose keys were erased no object is left") {
  count_what_is_left<Map>();
  count_what_is_left<LateMap<14>>();
  count_what_is_left<PoorMap>();  // with overflow buckets
}

TEST_CASE("Draining a hash table takes its directory apart, also after its keys are gone") {
  World world(default_shape());
  const Map map = world.run([](Transaction& tx) { return Map::create(tx); });
  for (const bool erase_first : {false, true}) {
    constexpr std::uint64_t keys = 20000;
    for (std::uint64_t k = 0; k < keys; k += 10) {
      world.run([&](Transaction& tx) {
        for (std::uint64_t i = k; i < k + 10; ++i) map.insert_or_assign(tx, i, Payload(i));
      });
    }
    for (std::uint64_t k = 0; erase_first && k < keys; k += 10) {
      world.run([&](Transaction& tx) {
        for (std::uint64_t i = k; i < k + 10; ++i) REQUIRE(map.erase(tx, i));
      });
    }
    std::uint64_t calls = 0;
    while (!world.run([&](Transaction& tx) { return map.drain(tx, 100); })) {
      if (++calls % 16 != 0) continue;
      REQUIRE(world.run([&](Transaction& tx) { return map.check_invariants(tx); }) == "");
    }
    REQUIRE(calls > (erase_first ? 10 : 150));
    REQUIRE(world.run([&](Transaction& tx) { return map.check_invariants(tx); }) == "");
    REQUIRE(world.run([&](Transaction& tx) { return map.size(tx); }) == 0);
  }
  world.run([&](Transaction& tx) { map.destroy(tx); });
}

TEST_CASE("A hash table that has filled its pool can be drained") {
  World world(tiny_shape());
  const Map map = world.run([](Transaction& tx) { return Map::create(tx); });
  const auto until_full = [&](const auto& change) {
    std::uint64_t times = 0;
    try {
      for (;; ++times) world.run([&](Transaction& tx) { change(tx, times); });
    } catch (const Error& error) {
      REQUIRE(error.code() == ErrorCode::pool_full);
    }
    return times;
  };
  const std::uint64_t keys = until_full(
      [&](Transaction& tx, std::uint64_t key) { map.insert_or_assign(tx, key, Payload()); });
  REQUIRE(keys > 2000);  // there are directories below the first
  REQUIRE_FALSE(world.run([&](Transaction& tx) { return map.empty(tx); }));
  // Not for one bucket more is there room.
  until_full([](Transaction& tx, std::uint64_t) { static_cast<void>(tx.make<Map::Bucket>()); });
  while (!world.run([&](Transaction& tx) { return map.drain(tx, 20); })) {
  }
  REQUIRE(world.run([&](Transaction& tx) { return map.check_invariants(tx); }) == "");
  REQUIRE(world.run([&](Transaction& tx) { return map.empty(tx); }));
}

TEST_CASE("A hash table gives present keys new values that are too large to be put whole") {
  struct Large {
    std::array<std::uint64_t, 200> words{};
  };
  static_assert(!sp3::detail::put_whole<Large>);
  using Wide = HashTable<std::uint64_t, Large>;
  World world(default_shape());
  const Wide map = world.run([](Transaction& tx) {
    Wide created = Wide::create(tx);
    created.insert_or_assign(tx, 1, Large{{1, 2}});
    return created;
  });
  CHECK_FALSE(world.run([&](Transaction& tx) {
    return map.insert_or_assign(tx, 1, Large{{3, 2}});
  }));
  CHECK(world.run([&](Transaction& tx) { return map.find(tx, 1)->words; }) == Large{{3, 2}}.words);
}

TEST_CASE("A handle that a hash table's header has left behind is reported") {
  World world(default_shape());
  const Map map = filled_map<Map>(world, 20);
  world.run([&](Transaction& tx) {
    REQUIRE(map.check_invariants(tx) == "");
    tx.write(map.header()).root = nullptr;
    CHECK_THAT(map.check_invariants(tx), Catch::Contains("The header names the root 0"));
  });
}

TEST_CASE("A visitor of a hash table can end the walk") {
  World world(default_shape());
  const std::uint64_t keys = GENERATE(200U, 3000U);  // with directories below the first
  const Map map = world.run([](Transaction& tx) { return Map::create(tx); });
  for (std::uint64_t k = 0; k < keys; ++k) {
    world.run([&](Transaction& tx) { map.insert_or_assign(tx, k, Payload(k)); });
  }
  world.run([&](Transaction& tx) {
    for (const std::uint64_t most : {std::uint64_t{1}, std::uint64_t{3}, keys / 2, keys - 1}) {
      std::uint64_t seen = 0;
      map.for_each(tx, [&](std::uint64_t, const Payload&) { return ++seen < most; });
      CHECK(seen == most);
    }
  });
}

TEST_CASE("Damage to a hash table is reported") {
  World world(default_shape());
  const Map map = filled_map<Map>(world, 200);
  const auto root = [&](Transaction& tx) { return tx.read(map.header()).root; };
  const auto bucket = [&](Transaction& tx, unsigned cell) {
    return Ptr<Map::Bucket>::from_offset(tx.read(root(tx)).cells[cell]);
  };
  const auto used_slot = [&](Transaction& tx, unsigned cell) -> std::uint64_t& {
    for (std::uint64_t& slot : tx.write(bucket(tx, cell)).slots) {
      if (slot != 0) return slot;
    }
    throw std::logic_error("an empty bucket");
  };
  REQUIRE_THAT(reported_after(world, map, [&](Transaction& tx) { used_slot(tx, 0) ^= 1ULL << 50; }),
               Catch::Contains("has tag"));
  REQUIRE_THAT(
      reported_after(world, map,
                     [&](Transaction& tx) { std::swap(used_slot(tx, 0), used_slot(tx, 127)); }),
      Catch::Contains("is in the bucket of the hashes that begin like"));
  REQUIRE_THAT(
      reported_after(world, map, [&](Transaction& tx) { ++tx.write(bucket(tx, 9)).depth; }),
      Catch::Contains("is named by cells"));
  REQUIRE_THAT(
      reported_after(world, map, [&](Transaction& tx) { tx.write(bucket(tx, 9)).depth = 8; }),
      Catch::Contains("has depth 8 in a directory for bits 0 to 7"));
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                auto at = root(tx);
                                for (unsigned level = 1; level <= 9; ++level) {
                                  const auto below = tx.make<Map::Directory>();
                                  tx.write(at).cells[0] = below.offset() | 1;
                                  at = below;
                                }
                              }),
               Catch::Contains("The trie is deeper than the hash"));
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                const auto small = tx.make<Map::SmallDirectory>();
                                tx.write(small).cells.fill(bucket(tx, 0).offset());
                                tx.write(root(tx)).cells[0] = small.offset() | 3;
                              }),
               Catch::Contains("is small, and named by the first"));
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                auto& cells = tx.write(root(tx)).cells;
                                cells[127] = cells[0];
                              }),
               Catch::Contains("is named by cells"));
  REQUIRE_THAT(
      reported_after(world, map, [&](Transaction& tx) { tx.write(root(tx)).cells[0] = 0; }),
      Catch::Contains("Cell 0"));
  REQUIRE_THAT(reported_after(
                   world, map,
                   [&](Transaction& tx) { tx.write(bucket(tx, 0)).next = tx.make<Map::Bucket>(); }),
               Catch::Contains("overflow bucket"));
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                auto& slots = tx.write(bucket(tx, 0)).slots;
                                const auto node =
                                    Ptr<Map::Node>::from_offset(used_slot(tx, 0) << 16 >> 16);
                                const auto copy = tx.make<Map::Node>(tx.read(node));
                                const std::uint64_t tag = used_slot(tx, 0) >> 48 << 48;
                                *std::find(slots.begin(), slots.end(), 0U) = tag | copy.offset();
                              }),
               Catch::Contains("repeats a key"));
  REQUIRE_THAT(
      reported_after(world, map, [&](Transaction& tx) { tx.write(root(tx)).cells[0] += 8; }),
      Catch::Contains("A pointer is wrong: ") && Catch::Contains("where none starts"));
  REQUIRE_THAT(
      reported_after(world, map,
                     [&](Transaction& tx) { tx.write(bucket(tx, 0)).next = bucket(tx, 0); }),
      Catch::Contains("The bucket") && Catch::Contains("occurs twice"));
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                auto& slots = tx.write(bucket(tx, 0)).slots;
                                const std::uint64_t used =
                                    *std::ranges::find_if(slots, [](auto s) { return s != 0; });
                                *std::ranges::find(slots, std::uint64_t{0}) = used;
                              }),
               Catch::Contains("The node") && Catch::Contains("occurs twice"));
  REQUIRE_THAT(
      reported_after(world, map,
                     [&](Transaction& tx) { tx.write(root(tx)).cells[0] = root(tx).offset() | 1; }),
      Catch::Contains("The directory") && Catch::Contains("occurs twice"));
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                const auto first = bucket(tx, 0);
                                const auto overflow = tx.make<Map::Bucket>();
                                tx.write(overflow).depth = tx.read(first).depth;
                                tx.write(first).next = overflow;
                              }),
               Catch::Contains("The overflow bucket") && Catch::Contains("is empty"));
  // A name of the first directory as it would stand in a cell, which is none.
  REQUIRE_THAT(reported_after(world, map,
                              [&](Transaction& tx) {
                                tx.write(map.header()).root =
                                    Ptr<Map::Directory>::from_offset(root(tx).offset() | 1);
                              }),
               Catch::Contains("A pointer is wrong: ") && Catch::Contains("where none starts"));
}

TEST_CASE("Two threads change different keys of a hash table") {
  run_two_writers<Map>(tiny_shape(), 500, false, 3000);
  run_two_writers<Map>(default_shape(), 3000, false, 8000);
  run_two_writers<LateMap<14>>(default_shape(), 3000, false, 8000);
}

TEST_CASE("Two threads change the same keys of a hash table") {
  run_two_writers<Map>(tiny_shape(), 60, true, 3000);
  run_two_writers<Map>(default_shape(), 600, true, 8000);
}

TEST_CASE("A hash table survives the death of its process at any time", "[crash]") {
  run_crashes(tiny_shape(), MapSubject<Map>(Order::random, 800), 8);
  run_crashes(default_shape(), MapSubject<Map>(Order::random, 800), 4);
  run_crashes(tiny_shape(), MapSubject<LateMap<14>>(Order::random, 800, true), 4);
}

TEST_CASE("A hash table survives many deaths of its process", "[.full][crash]") {
  run_crashes(tiny_shape(), MapSubject<Map>(Order::random, 800), 150);
  run_crashes(tiny_shape(), MapSubject<LateMap<14>>(Order::random, 800, true), 150);
}

TEST_CASE("A hash table takes keys that are not numbers") {
  World world(tiny_shape());
  using Names = HashTable<Name, std::uint32_t>;
  const Names names = world.run([](Transaction& tx) { return Names::create(tx); });
  const auto name = [](std::uint32_t i) {
    Name result;
    const std::string text = "name " + std::to_string(i);
    std::copy(text.begin(), text.end(), result.text.begin());
    return result;
  };
  for (std::uint32_t i = 0; i < 500; ++i) {
    REQUIRE(world.run([&](Transaction& tx) { return names.insert_or_assign(tx, name(i), i); }));
  }
  world.run([&](Transaction& tx) {
    REQUIRE(names.check_invariants(tx) == "");
    REQUIRE(names.find(tx, name(321)) == 321);
    REQUIRE_FALSE(names.contains(tx, name(500)));
  });
}

TEST_CASE("A hash table of another hash function is another type") {
  World world(tiny_shape());
  world.run([](Transaction& tx) { tx.set_root("table", Map::create(tx).header()); });
  try {
    world.run([](Transaction& tx) {
      static_cast<void>(PoorMap::open(tx, tx.root<PoorMap::Header>("table")));
    });
    FAIL("the table was opened with another hash function");
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::wrong_type);
  }
}

TEST_CASE("Names that types share are known for such, and no others") {
  const auto lambda = [] {};
  REQUIRE(detail::is_nameless(detail::spelled_name<decltype(lambda)>()));
#ifndef __clang__  // which leaves out where a local type is declared
  const auto make_local = [](int) {
    struct Local {};
    return Local();
  };
  REQUIRE(detail::is_nameless(detail::spelled_name<decltype(make_local(1))>()));
#endif
  REQUIRE_FALSE(detail::is_nameless(detail::spelled_name<OfTag<lambda_tag>>()));
#ifndef __clang__  // which tells where the structure is in the source
  struct {
    int number;
  } unnamed;
  REQUIRE(detail::is_unnamed(detail::spelled_name<decltype(unnamed)>()));
  REQUIRE(detail::is_unnamed(detail::spelled_name<Ptr<decltype(unnamed)>>()));
  REQUIRE(detail::is_unnamed(detail::spelled_name<Alias>()));
#endif
  REQUIRE_FALSE(detail::is_unnamed(detail::spelled_name<OfTag<lambda_tag>>()));
}

TEST_CASE("A lambda in a type's name is told from the place where the type is declared") {
  const auto make_local = [calls = 0](int, void (*)(int)) mutable {
    struct Local {};
    ++calls;
    return Local();
  };
  using Lambda = std::remove_const_t<decltype(make_local)>;
  using Local = std::invoke_result_t<Lambda, int, void (*)(int)>;
  REQUIRE(detail::is_of_lambda(detail::spelled_name<Lambda>()));
  REQUIRE(detail::is_of_lambda(detail::spelled_name<OfTag<Lambda>>()));
  REQUIRE(detail::is_of_lambda(detail::spelled_name<OfNumber<OfTag<Lambda>, 7>>()));
  REQUIRE_FALSE(detail::is_of_lambda(detail::spelled_name<Local>()));
  REQUIRE_FALSE(detail::is_of_lambda(detail::spelled_name<OfTag<Local>>()));
  REQUIRE_FALSE(detail::is_of_lambda(detail::spelled_name<OfTag<lambda_tag>>()));
  REQUIRE(detail::is_of_lambda("main()::<lambda()>::<lambda(void (*)(int))>"));
  REQUIRE_FALSE(detail::is_of_lambda("main()::<lambda()>::<lambda(void (*)(int))> mutable::Local"));
  REQUIRE(detail::is_of_lambda("Of<<lambda closure object><lambda()>()>"));
}

#ifndef __clang__  // which leaves out where a local type is declared
TEST_CASE("A type declared in a generic lambda has no name of its own") {
  const auto make_local = [](auto value) {
    struct Local {
      decltype(value) number;
    };
    return Local{value};
  };
  using Whole = decltype(make_local(1));
  REQUIRE(detail::is_of_lambda(detail::spelled_name<Whole>()));
  REQUIRE(detail::is_of_lambda(detail::spelled_name<OfTag<Whole>>()));
}
#endif

TEST_CASE("What a compiler leaves out of a type's name is noticed") {
  constexpr std::array<int, 40> kFirst = {1, 2, 3};
  constexpr std::array<int, 40> kSecond = [] {
    std::array<int, 40> numbers = {1, 2, 3};
    numbers.back() = 1;
    return numbers;
  }();
  const auto first = detail::spelled_name<OfArray<kFirst>>();
  REQUIRE((first != detail::spelled_name<OfArray<kSecond>>() || detail::is_cut_short(first)));
  REQUIRE_FALSE(detail::is_cut_short(detail::spelled_name<OfTag<int (*)(const char*, ...)>>()));
}

TEST_CASE("The default hash of a key never changes") {
  // Part of the format: existing tables depend on these numbers.
  REQUIRE(DefaultHash<std::uint64_t>{}(1) == 0x5692161d100b05e5ULL);
  REQUIRE(DefaultHash<std::int32_t>{}(-1) == mix_hash(~std::uint64_t{0}));
  REQUIRE(DefaultHash<Ptr<Name>>{}(Ptr<Name>::from_offset(1)) == 0x5692161d100b05e5ULL);
  REQUIRE(DefaultHash<Name>{}(Name{{'s', 'p', '3'}}) == 0xb724e418b1eee4a6ULL);
}

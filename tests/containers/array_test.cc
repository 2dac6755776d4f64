#include <sp3/containers/array.h>

#include <numeric>

#include "tests/containers/model.h"

using namespace sp3;
using namespace sp3::test;

namespace {

struct Entry {
  std::uint64_t number = 0;
  std::array<std::uint64_t, 15> rest{};

  Entry() = default;
  explicit Entry(std::uint64_t n) : number(n) { rest.fill(~n); }
  [[nodiscard]] bool is_whole() const { return rest == Entry(number).rest; }
};
static_assert(sizeof(Entry) == 128);

class ArraySubject {
 public:
  using Model = std::vector<std::uint64_t>;
  enum Kind : unsigned { set, get, swap };
  static constexpr std::uint64_t length = 300;  // three chunks below a root

  explicit ArraySubject(bool cached) : cached_(cached) {}

  static void create(Transaction& tx) {
    tx.set_root("subject", Array<Entry>::create(tx, length, Entry(0)).header());
  }
  void open(Transaction& tx) {
    array_ = Array<Entry>::open(tx, tx.root<Array<Entry>::Header>("subject"));
    if (cached_) array_ = array_.cached(tx);
  }
  void reset(Model& model) { model.assign(length, 0); }

  Operation draw(Random& random, unsigned /*step*/, unsigned /*steps*/) {
    const std::uint64_t dice = random.below(100);
    Operation operation{dice < 40 ? set : dice < 60 ? get : swap, random.below(length), 0};
    operation.value = operation.kind == swap ? random.below(length) : random() >> 8;
    return operation;
  }

  Observation apply(Transaction& tx, const Operation& operation) {
    if (operation.kind == get) return array_.get(tx, operation.key).number;
    if (operation.kind == set) {
      array_.set(tx, operation.key, Entry(operation.value));
    } else {
      array_.swap(tx, operation.key, operation.value);
    }
    return std::nullopt;
  }

  Observation apply(Model& model, const Operation& operation) {
    if (operation.kind == get) return model[operation.key];
    if (operation.kind == set) {
      model[operation.key] = operation.value;
    } else {
      std::swap(model[operation.key], model[operation.value]);
    }
    return std::nullopt;
  }

  std::string difference(Transaction& tx, const Model& model) {
    std::string violation = array_.check_invariants(tx);
    if (!violation.empty()) return violation;
    Model found;
    std::string wrong;
    array_.for_each(tx, [&](const Entry& entry) {
      if (!entry.is_whole()) wrong = "entry " + std::to_string(found.size()) + " is torn";
      found.push_back(entry.number);
    });
    if (!wrong.empty()) return wrong;
    return found == model ? "" : "the contents differ";
  }

 private:
  Array<Entry> array_;
  bool cached_;
};

}  // namespace

TEST_CASE("An array agrees with its model over random operations") {
  const bool cached = GENERATE(false, true);
  run_random(tiny_shape(), ArraySubject(cached), 4000);
  run_random(default_shape(), ArraySubject(cached), 10000);
}

TEST_CASE("An array can have any length") {
  World world(tiny_shape());
  for (const std::uint64_t length : {0U, 1U, 127U, 128U, 129U, 256U, 300U}) {
    INFO("length " << length);
    const auto array = world.run(
        [&](Transaction& tx) { return Array<std::uint64_t>::create(tx, length, length); });
    world.run([&](Transaction& tx) {
      REQUIRE(array.size(tx) == length);
      REQUIRE(array.check_invariants(tx) == "");
      for (std::uint64_t i = 0; i < length; ++i) REQUIRE(array.get(tx, i) == length);
    });
    REQUIRE_THROWS_AS(world.run([&](Transaction& tx) { static_cast<void>(array.at(tx, length)); }),
                      std::out_of_range);
    world.run([&](Transaction& tx) { array.destroy(tx); });
  }
}

TEST_CASE("An array too large for one transaction is filled and drained in several") {
  World world(tiny_shape());
  constexpr std::uint64_t length = 128 * 128 + 5;  // the directory has three levels
  const auto reserved =
      world.run([&](Transaction& tx) { return Array<std::uint64_t>::reserve(tx, length); });
  REQUIRE_THROWS_AS(world.run([&](Transaction& tx) { static_cast<void>(reserved.at(tx, 0)); }),
                    std::out_of_range);
  REQUIRE_THROWS_AS(world.run([&](Transaction& tx) { static_cast<void>(reserved.cached(tx)); }),
                    std::logic_error);
  while (!world.run([&](Transaction& tx) { return reserved.fill(tx, 200, 7); })) {
  }
  const auto array = world.run([&](Transaction& tx) { return reserved.cached(tx); });
  for (std::uint64_t i = 0; i < length; i += 100) {
    world.run([&](Transaction& tx) { array.set(tx, i, i); });
  }
  world.run([&](Transaction& tx) {
    REQUIRE(array.check_invariants(tx) == "");
    for (std::uint64_t i = 0; i < length; ++i) {
      if (reserved.at(tx, i) != array.at(tx, i)) FAIL("the cache differs at " << i);
      if (array.get(tx, i) != (i % 100 == 0 ? i : 7)) FAIL("wrong entry " << i);
    }
  });
  for (bool done = false; !done;) {
    done = world.run([&](Transaction& tx) { return reserved.drain(tx, 200); });
    REQUIRE(world.run([&](Transaction& tx) { return reserved.check_invariants(tx); }) == "");
  }
  world.run([&](Transaction& tx) { reserved.destroy(tx); });
}

TEST_CASE("A handle of an array that was moved from is as good as before") {
  World world(tiny_shape());
  using Numbers = Array<std::uint64_t>;
  Numbers first = world.run([](Transaction& tx) { return Numbers::create(tx, 300, 7); });
  first = world.run([&](Transaction& tx) { return first.cached(tx); });
  Numbers second = std::move(first);  // NOLINT(performance-move-const-arg): a copy
  second = Numbers();
  // NOLINTNEXTLINE(bugprone-use-after-move): what is tested
  CHECK(world.run([&](Transaction& tx) { return first.get(tx, 299); }) == 7);
}

TEST_CASE("A destroyed array leaves no memory behind") {
  World world(tiny_shape());
  for (unsigned i = 0; i < 200; ++i) {
    const auto array =
        world.run([](Transaction& tx) { return Array<Entry>::create(tx, 200, Entry(1)); });
    world.run([&](Transaction& tx) { array.destroy(tx); });
  }
  for (const std::uint64_t length : {0U, 1U, 128U, 129U}) {
    world.run([&](Transaction& tx) { Array<Entry>::create(tx, length).destroy(tx); });
  }
  const auto drained = world.run([](Transaction& tx) { return Array<Entry>::create(tx, 300); });
  while (!world.run([&](Transaction& tx) { return drained.drain(tx, 7); })) {
  }
  world.run([&](Transaction& tx) { drained.destroy(tx); });
  CHECK(objects_left(world) == 0);
}

TEST_CASE("A destroyed array takes its directory with it") {
  World world(tiny_shape());
  using Numbers = Array<std::uint64_t>;
  const auto array = world.run([](Transaction& tx) { return Numbers::create(tx, 200, 7); });
  const auto root = world.run([&](Transaction& tx) { return tx.read(array.header()).root; });
  world.run([&](Transaction& tx) { array.destroy(tx); });
  CHECK_THROWS_AS(world.run([&](Transaction& tx) { static_cast<void>(tx.read(root)); }), Error);
}

TEST_CASE("An array's entries may be too large to be put whole") {
  struct Large {
    std::array<std::uint64_t, 200> words{};
  };
  static_assert(!sp3::detail::put_whole<Large>);
  World world(default_shape());
  const auto array = world.run([](Transaction& tx) { return Array<Large>::create(tx, 2); });
  world.run([&](Transaction& tx) { array.set(tx, 1, Large{{3, 2}}); });
  CHECK(world.run([&](Transaction& tx) { return array.get(tx, 1).words; }) == Large{{3, 2}}.words);
}

TEST_CASE("A visitor of an array can end the walk") {
  World world(tiny_shape());
  const auto array =
      world.run([](Transaction& tx) { return Array<std::uint64_t>::create(tx, 10, 7); });
  world.run([&](Transaction& tx) {
    unsigned seen = 0;
    array.for_each(tx, [&](std::uint64_t) { return ++seen < 3; });
    CHECK(seen == 3);
  });
}

TEST_CASE("Damage to an array is reported") {
  World world(tiny_shape());
  using Numbers = Array<std::uint64_t>;
  const auto array = world.run([](Transaction& tx) { return Numbers::create(tx, 200); });
  const auto chunk = [&](Transaction& tx, unsigned i) {
    const auto root = tx.read(array.header()).root;
    return Ptr<Numbers::Chunk>::from_offset(tx.read(root).offsets[i]);
  };
  REQUIRE_THAT(reported_after(world, array,
                              [&](Transaction& tx) {
                                auto& offsets = tx.write(chunk(tx, 0)).offsets;
                                offsets[5] = offsets[4];
                              }),
               Catch::Contains("Entry 5 shares the object"));
  REQUIRE_THAT(reported_after(world, array,
                              [&](Transaction& tx) {
                                auto& chunks = tx.write(tx.read(array.header()).root).offsets;
                                chunks[1] = chunks[0];
                              }),
               Catch::Contains("Chunk") && Catch::Contains("occurs twice in the directory"));
  REQUIRE_THAT(reported_after(world, array,
                              [&](Transaction& tx) { tx.write(chunk(tx, 1)).offsets[71] = 0; }),
               Catch::Contains("The cell of entry 199 at level 0 holds 0"));
  REQUIRE_THAT(
      reported_after(world, array, [&](Transaction& tx) { tx.write(array.header()).filled = 201; }),
      Catch::Contains("201 entries but length 200"));
  REQUIRE_THAT(
      reported_after(world, array, [&](Transaction& tx) { tx.write(array.header()).filled = 199; }),
      Catch::Contains("while 199 entries are filled"));
  REQUIRE_THAT(
      reported_after(world, array, [&](Transaction& tx) { tx.write(array.header()).length = 128; }),
      Catch::Contains("2 for the levels, not 1 as length 128 needs"));
  for (const std::uint64_t levels : {0U, 1U, 12U}) {
    REQUIRE_THAT(
        reported_after(world, array,
                       [&](Transaction& tx) { tx.write(array.header()).levels = levels; }),
        Catch::Contains("The header says " + std::to_string(levels) + " for the levels, not 2"));
  }
  REQUIRE_THAT(reported_after(world, array,
                              [&](Transaction& tx) {
                                auto& offsets = tx.write(chunk(tx, 1)).offsets;
                                offsets[3] = array.header().offset();
                              }),
               Catch::Contains("A pointer is wrong: ") && Catch::Contains("has another type"));
}

TEST_CASE("A handle that an array's header has left behind is reported") {
  World world(tiny_shape());
  const auto array =
      world.run([](Transaction& tx) { return Array<std::uint64_t>::create(tx, 200); });
  world.run([&](Transaction& tx) {
    tx.write(array.header()).length = 199;
    CHECK_THAT(array.check_invariants(tx), Catch::Contains("199 entries, the handle 200"));
    tx.write(array.header()).length = 200;
    tx.write(array.header()).root = nullptr;
    CHECK_THAT(array.check_invariants(tx), Catch::Contains("root is 0 in an array of length 200"));
  });
}

TEST_CASE("A damaged header leads no operation of an array beyond its directory") {
  World world(tiny_shape());
  using Numbers = Array<std::uint64_t>;
  const std::uint64_t length = GENERATE(0U, 200U);
  const auto array =
      world.run([&](Transaction& tx) { return Numbers::create(tx, length, length); });
  world.run([&](Transaction& tx) {
    auto& header = tx.write(array.header());
    header.levels = 99;
    header.filled = ~std::uint64_t{0};
  });
  world.run([&](Transaction& tx) {
    const Numbers opened = Numbers::open(tx, array.header());
    if (length != 0) REQUIRE(opened.get(tx, length - 1) == length);
    REQUIRE(opened.fill(tx, 7));
    REQUIRE(opened.drain(tx, length));
    opened.destroy(tx);
  });
}

TEST_CASE("An aborted swap leaves both entries as they were") {
  World world(tiny_shape());
  const auto array = world.run([](Transaction& tx) { return Array<std::uint64_t>::create(tx, 2); });
  world.run([&](Transaction& tx) { array.set(tx, 1, 5); });
  REQUIRE_THROWS_AS(world.run([&](Transaction& tx) {
    array.swap(tx, 0, 1);
    REQUIRE(array.get(tx, 0) == 5);
    throw Abort();
  }),
                    Abort);
  world.run([&](Transaction& tx) {
    REQUIRE(array.get(tx, 0) == 0);
    REQUIRE(array.get(tx, 1) == 5);
  });
}

TEST_CASE("Swaps by two threads only ever permute an array") {
  const Shape shape = GENERATE(tiny_shape(), default_shape());
  const bool overlapping = GENERATE(false, true);
  const std::uint64_t used_seed = seed();
  INFO("SP3_TEST_SEED=" << used_seed << ", " << shape.name << " pool");
  World world(shape);
  constexpr std::uint64_t length = 40;
  const auto created =
      world.run([](Transaction& tx) { return Array<Entry>::create(tx, length, Entry(0)); });
  const auto array = world.run([&](Transaction& tx) { return created.cached(tx); });
  world.run([&](Transaction& tx) {
    for (std::uint64_t i = 0; i < length; ++i) array.set(tx, i, Entry(i));
  });
  const auto worker = [&](unsigned self) {
    return [&, self](Session& session) {
      Random random(used_seed + self);
      const auto index = [&] {
        return overlapping ? random.below(length) : random.below(length / 2) * 2 + self;
      };
      for (unsigned step = 0; step < 5000; ++step) {
        const std::uint64_t i = index();
        const std::uint64_t j = index();
        session.run([&](Transaction& tx) { array.swap(tx, i, j); });
      }
    };
  };
  run_two_threads(world, worker(0), worker(1));
  std::vector<std::uint64_t> found;
  world.run([&](Transaction& tx) {
    found.clear();
    array.for_each(
        tx, [&](const Entry& entry) { found.push_back(entry.is_whole() ? entry.number : length); });
  });
  if (!overlapping) {
    for (std::uint64_t i = 0; i < length; ++i) REQUIRE(found[i] % 2 == i % 2);
  }
  std::vector<std::uint64_t> wanted(length);
  std::iota(wanted.begin(), wanted.end(), 0);
  std::sort(found.begin(), found.end());
  REQUIRE(found == wanted);
}

TEST_CASE("An array survives the death of its process at any time", "[crash]") {
  run_crashes(tiny_shape(), ArraySubject(true), 8);
  run_crashes(default_shape(), ArraySubject(false), 4);
}

TEST_CASE("An array survives many deaths of its process", "[.full][crash]") {
  run_crashes(tiny_shape(), ArraySubject(false), 150);
}

#include <sp3/containers/queue.h>

#include <deque>
#include <set>

#include "tests/containers/model.h"

namespace sp3::test {

struct Before {
  std::uint64_t value;
};
struct After {
  std::uint64_t value;
};
// After, of another meaning.
struct Changed {
  std::uint64_t value;
};

}  // namespace sp3::test

// Renamed, as sp3/type.h and the containers' README tell how.
#define SP3_TEST_TAG(type, text, number)               \
  template <>                                          \
  struct sp3::TypeTag<type> {                          \
    static constexpr std::string_view name = (text);   \
    static constexpr std::uint32_t version = (number); \
  }
SP3_TEST_TAG(sp3::test::Changed, "renamed.Value", 2);
#define SP3_TEST_TAG_QUEUE(value)                             \
  SP3_TEST_TAG(sp3::Queue<value>::Node, "renamed.Node", 1);   \
  SP3_TEST_TAG(sp3::Queue<value>::First, "renamed.First", 1); \
  SP3_TEST_TAG(sp3::Queue<value>::Last, "renamed.Last", 1);   \
  SP3_TEST_TAG(sp3::Queue<value>::Header, "renamed.Header", 1)
SP3_TEST_TAG_QUEUE(sp3::test::Before);
SP3_TEST_TAG_QUEUE(sp3::test::After);
SP3_TEST_TAG_QUEUE(sp3::test::Changed);

using namespace sp3;
using namespace sp3::test;

namespace {

class QueueSubject {
 public:
  using Model = std::deque<std::uint64_t>;
  enum Kind : unsigned { push, pop, front, size };

  static void create(Transaction& tx) {
    tx.set_root("subject", Queue<std::uint64_t>::create(tx).header());
  }
  void open(Transaction& tx) {
    queue_ = Queue<std::uint64_t>::open(tx, tx.root<Queue<std::uint64_t>::Header>("subject"));
  }
  void reset(Model& model) { model.clear(); }

  // Swings between growing and shrinking, so that it is often empty and sometimes long.
  Operation draw(Random& random, unsigned step, unsigned steps) {
    const unsigned pushes = step * 8 / steps % 2 == 0 ? 60 : 35;
    const std::uint64_t dice = random.below(100);
    return {dice < pushes ? push : dice < 92 ? pop : dice < 97 ? front : size, 0, random() >> 8};
  }

  Observation apply(Transaction& tx, const Operation& operation) {
    switch (operation.kind) {
      case push:
        queue_.push(tx, operation.value);
        return std::nullopt;
      case pop:
        return queue_.pop(tx);
      case front:
        return queue_.front(tx);
      default:
        return queue_.empty(tx) ? 0 : queue_.size(tx);
    }
  }

  Observation apply(Model& model, const Operation& operation) {
    if (operation.kind == push) model.push_back(operation.value);
    if (operation.kind == push) return std::nullopt;
    if (operation.kind == size) return model.size();
    if (model.empty()) return std::nullopt;
    const std::uint64_t value = model.front();
    if (operation.kind == pop) model.pop_front();
    return value;
  }

  std::string difference(Transaction& tx, const Model& model) {
    std::string violation = queue_.check_invariants(tx);
    if (!violation.empty()) return violation;
    Model found;
    queue_.for_each(tx, [&](const std::uint64_t& value) { found.push_back(value); });
    return found == model ? "" : "the contents differ";
  }

 private:
  Queue<std::uint64_t> queue_;
};

}  // namespace

TEST_CASE("A queue agrees with its model over random operations") {
  run_random(tiny_shape(), QueueSubject(), 5000);
  run_random(default_shape(), QueueSubject(), 10000);
}

TEST_CASE("A queue that is filled and emptied leaves no memory behind") {
  World world(tiny_shape());
  using Big = Queue<std::array<std::uint64_t, 15>>;
  for (std::uint64_t round = 0; round < 20; ++round) {
    const Big queue = world.run([](Transaction& tx) { return Big::create(tx); });
    for (std::uint64_t i = 0; i < 2000; ++i) {
      world.run([&](Transaction& tx) { queue.push(tx, {i, round}); });
    }
    if (round % 2 == 0) {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        const auto value = world.run([&](Transaction& tx) { return queue.pop(tx); });
        REQUIRE(value);
        REQUIRE((*value)[0] == i);
        REQUIRE((*value)[1] == round);
      }
      REQUIRE_FALSE(world.run([&](Transaction& tx) { return queue.pop(tx); }));
    } else {
      while (!world.run([&](Transaction& tx) { return queue.drain(tx, 100); })) {
      }
    }
    REQUIRE(world.run([&](Transaction& tx) { return queue.check_invariants(tx); }) == "");
    world.run([&](Transaction& tx) {
      for (std::uint64_t i = 0; i < 10; ++i) queue.push(tx, {i});
      queue.destroy(tx);
    });
  }
  CHECK(objects_left(world) == 0);
}

TEST_CASE("Pushes and pops of one transaction see each other") {
  World world(tiny_shape());
  world.run([](Transaction& tx) {
    const auto queue = Queue<std::uint64_t>::create(tx);
    for (std::uint64_t i = 0; i < 3; ++i) {
      REQUIRE_FALSE(queue.pop(tx));
      queue.push(tx, i);
      queue.push(tx, i + 10);
      REQUIRE(queue.front(tx) == i);
      REQUIRE(queue.pop(tx) == i);
      REQUIRE(queue.pop(tx) == i + 10);
      REQUIRE(queue.empty(tx));
      REQUIRE(queue.check_invariants(tx) == "");
    }
    queue.destroy(tx);
  });
}

TEST_CASE("A queue is drained by no more than is asked for, and destroyed with its ends") {
  World world(tiny_shape());
  using Numbers = Queue<std::uint64_t>;
  const auto queue = world.run([](Transaction& tx) {
    const auto created = Numbers::create(tx);
    for (std::uint64_t i = 0; i < 5; ++i) created.push(tx, i);
    return created;
  });
  const auto header = world.run([&](Transaction& tx) { return tx.read(queue.header()); });
  world.run([&](Transaction& tx) {
    unsigned seen = 0;
    queue.for_each(tx, [&](std::uint64_t) { return ++seen < 3; });
    CHECK(seen == 3);
    CHECK_FALSE(queue.drain(tx, 2));
    CHECK(queue.size(tx) == 3);
    CHECK(queue.front(tx) == 2U);
  });
  world.run([&](Transaction& tx) { queue.destroy(tx); });
  CHECK_THROWS_AS(world.run([&](Transaction& tx) { static_cast<void>(tx.read(header.first)); }),
                  Error);
  CHECK_THROWS_AS(world.run([&](Transaction& tx) { static_cast<void>(tx.read(header.last)); }),
                  Error);
}

TEST_CASE("Pushes to a queue that is gone leave no nodes behind, whatever is caught") {
  World world(tiny_shape());
  const auto queue = world.run([](Transaction& tx) { return Queue<std::uint64_t>::create(tx); });
  world.run([&](Transaction& tx) { queue.destroy(tx); });
  for (std::uint64_t i = 0; i < 10; ++i) {
    world.run([&](Transaction& tx) { REQUIRE_THROWS_AS(queue.push(tx, i), Error); });
  }
  REQUIRE(objects_left(world) == 0);
}

TEST_CASE("A handle that a queue's header has left behind is reported") {
  World world(tiny_shape());
  using Numbers = Queue<std::uint64_t>;
  const auto queue = world.run([](Transaction& tx) { return Numbers::create(tx); });
  world.run([&](Transaction& tx) {
    REQUIRE(queue.check_invariants(tx) == "");
    tx.write(queue.header()).first = tx.make<Numbers::First>();
    CHECK_THAT(queue.check_invariants(tx), Catch::Contains("The header names the ends"));
  });
}

TEST_CASE("Damage to a queue is reported") {
  World world(tiny_shape());
  const auto queue = world.run([](Transaction& tx) {
    const auto created = Queue<std::uint64_t>::create(tx);
    for (std::uint64_t i = 0; i < 5; ++i) created.push(tx, i);
    return created;
  });
  const auto first = [&](Transaction& tx) { return tx.read(tx.read(queue.header()).first).node; };
  REQUIRE_THAT(reported_after(world, queue,
                              [&](Transaction& tx) {
                                tx.write(tx.read(queue.header()).last).node = first(tx);
                              }),
               Catch::Contains("After 5 nodes the list ends at"));
  REQUIRE_THAT(reported_after(world, queue,
                              [&](Transaction& tx) {
                                tx.write(tx.read(tx.read(queue.header()).last).node).next =
                                    first(tx);
                              }),
               Catch::Contains("circle"));
  REQUIRE_THAT(
      reported_after(world, queue, [&](Transaction& tx) { tx.write(first(tx)).next = nullptr; }),
      Catch::Contains("After 1 nodes"));
  REQUIRE_THAT(
      reported_after(world, queue, [&](Transaction& tx) { tx.destroy(tx.read(first(tx)).next); }),
      Catch::Contains("A pointer is wrong: ") && Catch::Contains("was destroyed"));
}

// Values are number * 2 + producer, so that each producer's order can be checked.
TEST_CASE("Values pushed by two threads come out once and in each thread's order") {
  const Shape shape = GENERATE(tiny_shape(), default_shape());
  const std::uint64_t used_seed = seed();
  INFO("SP3_TEST_SEED=" << used_seed << ", " << shape.name << " pool");
  World world(shape);
  const auto queue = world.run([](Transaction& tx) { return Queue<std::uint64_t>::create(tx); });
  std::array<std::vector<std::uint64_t>, 2> popped;
  std::array<std::uint64_t, 2> pushed{};
  const auto worker = [&](unsigned self) {
    return [&, self](Session& session) {
      Random random(used_seed + self);
      for (unsigned step = 0; step < 4000; ++step) {
        if (random.chance(52)) {
          session.run([&](Transaction& tx) { queue.push(tx, pushed[self] * 2 + self); });
          ++pushed[self];
        } else if (const auto value = session.run([&](Transaction& tx) { return queue.pop(tx); })) {
          popped[self].push_back(*value);
        }
      }
    };
  };
  run_two_threads(world, worker(0), worker(1));

  REQUIRE(world.run([&](Transaction& tx) { return queue.check_invariants(tx); }) == "");
  std::vector<std::uint64_t> rest;
  world.run([&](Transaction& tx) {
    rest.clear();
    queue.for_each(tx, [&](const std::uint64_t& value) { rest.push_back(value); });
  });
  std::set<std::uint64_t> all;
  for (const auto* values : {&popped[0], &popped[1], &rest}) {
    std::array<std::uint64_t, 2> next{};
    for (const std::uint64_t value : *values) {
      REQUIRE(all.insert(value).second);
      REQUIRE(value / 2 >= next[value % 2]);
      next[value % 2] = value / 2 + 1;
    }
  }
  REQUIRE(all.size() == pushed[0] + pushed[1]);
}

TEST_CASE("A queue whose types are tagged is found by a program that has renamed its values") {
  World world(tiny_shape());
  world.run([](Transaction& tx) {
    const auto queue = Queue<Before>::create(tx);
    queue.push(tx, {7});
    tx.set_root("queue", queue.header());
  });
  const auto value = world.run([](Transaction& tx) {
    return Queue<After>::open(tx, tx.root<Queue<After>::Header>("queue")).pop(tx);
  });
  REQUIRE(value.value().value == 7);
}

TEST_CASE("A queue is not read as one of values of a new version") {
  World world(tiny_shape());
  world.run([](Transaction& tx) {
    const auto queue = Queue<After>::create(tx);
    queue.push(tx, {7});
    tx.set_root("queue", queue.header());
  });
  const auto open = [](Transaction& tx) {
    return Queue<Changed>::open(tx, tx.root<Queue<Changed>::Header>("queue"));
  };
  const auto changed = world.run(open);
  try {
    world.run([&](Transaction& tx) { static_cast<void>(changed.front(tx)); });
    FAIL("the bytes of the old version were read");
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::wrong_type);
  }
}

TEST_CASE("A queue survives the death of its process at any time", "[crash]") {
  run_crashes(tiny_shape(), QueueSubject(), 8);
  run_crashes(default_shape(), QueueSubject(), 4);
}

TEST_CASE("A queue survives many deaths of its process", "[.full][crash]") {
  run_crashes(tiny_shape(), QueueSubject(), 150);
}

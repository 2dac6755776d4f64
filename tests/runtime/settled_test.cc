// Versions that a checkpoint has settled are not compared, and read-only transactions of nothing
// else not validated: what that may not change, and what it saves.
#include <array>
#include <cstddef>
#include <cstdint>

#include <catch2/catch.hpp>

#include <sp3/ranged.h>

#include "tests/runtime/cells.h"

namespace sp3::test {
namespace {

// Two sessions, and cells that are settled.
struct World : Cells {
  Session theirs = pool.session();
  World() : Cells(quiet_options()) { pool.checkpoint(); }
  void add(std::initializer_list<int> to, std::int64_t amount) { Cells::add(theirs, to, amount); }
};

}  // namespace

TEST_CASE("a settled version beside a newer one of the same transaction starts an attempt over") {
  World world;
  int attempts = 0;
  bool torn = false;
  const std::int64_t sum = world.session.run([&](Transaction& tx) {
    const std::int64_t before = world.read(tx, 0);
    if (++attempts == 1) world.add({0, 1}, 5);
    const std::int64_t after = world.read(tx, 1);
    torn = torn || before != after;
    return before + after;
  });
  CHECK(attempts == 2);
  CHECK_FALSE(torn);  // opacity: the first attempt did not get that far
  CHECK(sum == 10);
}

TEST_CASE("a newer version among settled ones is validated at the end") {
  World world;
  world.add({1}, 7);  // newer than the floor
  int attempts = 0;
  const std::int64_t sum = world.session.run([&](Transaction& tx) {
    const std::int64_t newer = world.read(tx, 1);
    const std::int64_t settled = world.read(tx, 2);
    // Settled ones are not compared with it any more, so this is found at the end alone.
    if (++attempts == 1) world.add({1}, 1);
    return newer + settled + world.read(tx, 3);
  });
  CHECK(attempts == 2);
  CHECK(sum == 8);
}

TEST_CASE("a read-only transaction of settled versions is at its begin, whatever comes after") {
  World world;
  int attempts = 0;
  const std::int64_t sum = world.session.run([&](Transaction& tx) {
    const std::int64_t first = world.read(tx, 0);
    if (++attempts == 1) world.add({0, 4}, 3);  // not what is read from here on
    return first + world.read(tx, 1) + world.read(tx, 2);
  });
  CHECK(attempts == 1);
  CHECK(sum == 0);
}

TEST_CASE("a writer validates settled versions too") {
  World world;
  int attempts = 0;
  world.session.run([&](Transaction& tx) {
    const std::int64_t seen = world.read(tx, 0);
    if (++attempts == 1) world.add({0}, 3);
    tx.write(world.cells[1]).value = seen;
  });
  CHECK(attempts == 2);
  CHECK(world.session.run([&](Transaction& tx) { return world.read(tx, 1); }) == 3);
}

TEST_CASE("one comparison after the last read serves a read-only transaction for validation") {
  World world;
  world.add({5}, 1);
  int attempts = 0;
  const std::int64_t sum = world.session.run([&](Transaction& tx) {
    std::int64_t total = world.read(tx, 0) + world.read(tx, 1) + world.read(tx, 2) +
                         world.read(tx, 3) + world.read(tx, 4);
    total += world.read(tx, 5);  // newer: all are compared
    if (++attempts == 1) world.add({0, 5}, 1);
    return total;
  });
  CHECK(attempts == 1);  // it is where it has read the last one
  CHECK(sum == 1);
}

TEST_CASE("what was read is not read or written in another version by the same attempt") {
  for (const bool writes : {false, true}) {
    World world;
    world.add({0, 1}, 7);  // newer than the floor
    check_that_none_is_torn(world, 0, writes);
  }
}

TEST_CASE("what was read is read and written again whatever else changes") {
  World world;
  world.add({0, 1, 2}, 7);
  int attempts = 0;
  world.session.run([&](Transaction& tx) {
    std::int64_t sum = world.read(tx, 1) + world.read(tx, 0);
    if (++attempts == 1) world.add({2}, 1);
    sum += world.read(tx, 1) + tx.write(world.cells[0]).value;
    CHECK(sum == 4 * 7);
    tx.write(world.cells[0]).value = sum;
  });
  CHECK(attempts == 1);
  CHECK(world.theirs.run([&](Transaction& tx) { return world.read(tx, 0); }) == 4 * 7);
}

// What it read is durable when run() returns or throws.
TEST_CASE("a reader waits for all whose versions it has read") {
  World world;
  Session third = world.pool.session();
  const auto add_async = [&](Session& session, int to) {
    return session.run_async([&, to](Transaction& tx) { ++tx.write(world.cells[to]).value; });
  };
  const Ticket second_to_last = add_async(world.theirs, 1);
  const Ticket last = add_async(third, 2);
  CHECK(world.session.run([&](Transaction& tx) { return world.read(tx, 1) + world.read(tx, 2); }) ==
        2);
  CHECK(second_to_last.ready());
  CHECK(last.ready());
}

TEST_CASE("who is told that an object was destroyed is told when that is durable") {
  for (const bool writes : {false, true}) {
    INFO((writes ? "written" : "read"));
    World world;
    const Ticket destroyed =
        world.theirs.run_async([&](Transaction& tx) { tx.destroy(world.cells[3]); });
    CHECK_FALSE(destroyed.ready());
    CHECK(world.code([&](Transaction& tx) {
      return writes ? tx.write(world.cells[3]).value : world.read(tx, 3);
    }) == "destroyed_object");
    CHECK(destroyed.ready());
  }
}

TEST_CASE("who reads what nobody else may change waits until that is durable") {
  World world;
  RangedObject object;
  world.session.run([&](Transaction& tx) {
    object = RangedObject::create(tx, 1024, 256);
    object.fill(tx, 0, 1024);
  });
  world.pool.checkpoint();  // so that a chunk alone is newer
  std::array<std::byte, 8> bytes{std::byte{7}};
  const Ticket written =
      world.theirs.run_async([&](Transaction& tx) { object.write(tx, 256, bytes); });
  CHECK_FALSE(written.ready());
  bytes = {};
  world.session.run([&](Transaction& tx) {
    object.lock(tx, 256, 512);
    object.read(tx, 256, bytes);
  });
  CHECK(bytes[0] == std::byte{7});
  CHECK(written.ready());
}

TEST_CASE("what was written is not seen beside a newer version of something else") {
  World world;
  int attempts = 0;
  bool torn = false;
  world.session.run([&](Transaction& tx) {
    const std::int64_t before = tx.write(world.cells[0]).value;
    if (++attempts == 1) world.add({0, 1}, 5);
    torn = torn || before != world.read(tx, 1);
  });
  CHECK(attempts == 2);
  CHECK_FALSE(torn);
}

TEST_CASE("an error that a body catches is true of what it has read before") {
  World world;
  int attempts = 0;
  bool torn = false;
  world.session.run([&](Transaction& tx) {
    const bool is_there = world.read(tx, 0) == 0;
    if (++attempts == 1) {
      world.theirs.run([&](Transaction& other) {
        other.write(world.cells[0]).value = 1;
        other.destroy(world.cells[3]);
      });
    }
    try {
      tx.write(world.cells[3]).value = 5;
    } catch (const Error&) {
      torn = torn || is_there;
    }
  });
  CHECK(attempts == 2);
  CHECK_FALSE(torn);
}

}  // namespace sp3::test

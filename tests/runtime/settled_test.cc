// Versions that a checkpoint has settled are not compared, and read-only transactions of nothing
// else not validated: what that may not change, and what it saves.
#include <cstdint>

#include <catch2/catch.hpp>

#include "tests/runtime/cells.h"

namespace sp3::test {
namespace {

// Two sessions, and cells that are settled.
struct World : Cells {
  Session theirs = pool.session();
  World() : Cells(tiny_options()) { pool.checkpoint(); }
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

}  // namespace sp3::test

// Cells: a tiny new pool with a few numbers, and one open session.
#pragma once

#include <cstdint>
#include <initializer_list>

#include <catch2/catch.hpp>

#include "tests/runtime/one_pool.h"

namespace sp3::test {

struct Cell {
  std::int64_t value = 0;
};

struct Cells : OnePool {
  Ptr<Cell> cells[8] = {};
  explicit Cells(const Options& options) : OnePool(options) {
    session.run([&](Transaction& tx) {
      for (Ptr<Cell>& cell : cells) cell = tx.make<Cell>();
    });
  }
  // By another session, in one transaction.
  void add(Session& other, std::initializer_list<int> to, std::int64_t amount) {
    other.run([&](Transaction& tx) {
      for (const int i : to) tx.write(cells[i]).value += amount;
    });
  }
  std::int64_t read(Transaction& tx, int i) const { return tx.read(cells[i]).value; }
};

// Cells 0 and 1 have the same value. Others add to both in the middle of a body, between its read
// of cell 0 and another of cell `second`, or a write: it must not see the difference.
template <class World>
void check_that_none_is_torn(World& world, int second, bool writes) {
  int attempts = 0;
  bool torn = false;
  world.session.run([&](Transaction& tx) {
    const std::int64_t before = world.read(tx, 0);
    if (++attempts == 1) world.add({0, 1}, 5);
    const std::int64_t after =
        writes ? tx.write(world.cells[second]).value : world.read(tx, second);
    torn = torn || before != after;
  });
  INFO((writes ? "written" : "read"));
  CHECK(attempts == 2);
  CHECK_FALSE(torn);
}

}  // namespace sp3::test

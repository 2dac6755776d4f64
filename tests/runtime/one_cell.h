// OneCell: a tiny new pool with one object, named "cell".
#pragma once

#include <cstdint>

#include "tests/runtime/one_pool.h"

namespace sp3::test {

struct OneCell : OnePool {
  struct Cell {
    std::uint64_t value = 0;
  };
  Ptr<Cell> cell;
  explicit OneCell(const Options& options = quiet_options(), std::uint64_t size = kTinyPool)
      : OnePool(options, size) {
    cell = session.run([](Transaction& tx) {
      const auto made = tx.make<Cell>();
      tx.set_root("cell", made);
      return made;
    });
  }
  std::uint64_t value() {
    return session.run([&](Transaction& tx) { return tx.read(cell).value; });
  }
  void set(std::uint64_t to) {
    session.run([&](Transaction& tx) { tx.write(cell).value = to; });
  }
  Ticket set_async(std::uint64_t to) {
    return session.run_async([&, to](Transaction& tx) { tx.write(cell).value = to; });
  }
};

}  // namespace sp3::test

// What tests of failures share: a cell by name, a disk that fails, and what a call ends in.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

#include "emu/memory.h"
#include "tests/runtime/one_pool.h"

namespace sp3::test {

struct Cell {
  std::uint64_t value = 0;
};

inline Ptr<Cell> make_cell(Session& session) {
  return session.run([](Transaction& tx) {
    const auto cell = tx.make<Cell>();
    tx.set_root("cell", cell);
    return cell;
  });
}

inline std::uint64_t read_cell(Session& session) {
  return session.run([](Transaction& tx) { return tx.read(tx.root<Cell>("cell")).value; });
}

// Fails every fence from now on, until it is destroyed.
struct BrokenDisk {
  explicit BrokenDisk(int error = EIO, std::uint64_t countdown = 1) {
    emu::inject_io_error(error, countdown);
  }
  ~BrokenDisk() { emu::inject_io_error(0, 0); }
};

template <class Call>
std::string outcome(Call&& call) {
  return code_of([&] {
    call();
    return 0;
  });
}

}  // namespace sp3::test

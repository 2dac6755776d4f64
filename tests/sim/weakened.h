// Weakened: while it lives, the accesses of a file have a weaker memory order than they state.
#pragma once

#include <atomic>

#include "emu/sim/weak_memory.h"

namespace sp3::test {

class Weakened {
 public:
  // `file`: how its path ends.
  Weakened(const char* file, std::memory_order to) {
    emu::sim::weakening = {.file = file, .to = to};
  }
  ~Weakened() { emu::sim::weakening.reset(); }
  Weakened(const Weakened&) = delete;
  Weakened& operator=(const Weakened&) = delete;
};

}  // namespace sp3::test

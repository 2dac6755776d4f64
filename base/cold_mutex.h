// ColdMutex: a mutex for a few steps that nobody's order hangs on, where waiting is rare.
//
// What is done under it is one step to simulated cores: there is no event inside, and atomic accesses
// find the newest.
#pragma once

#include <mutex>

#ifdef SP3_SIMULATED
#include "base/atomic.h"
#endif

namespace sp3::base {

#ifdef SP3_SIMULATED

class ColdMutex {
 public:
  void lock() noexcept {
    turns_.exchange(0, std::memory_order_seq_cst);
    if (memory_model != nullptr) memory_model->begin_step();
  }
  void unlock() noexcept {
    if (memory_model != nullptr) memory_model->end_step();
    turns_.exchange(0, std::memory_order_seq_cst);
  }

 private:
  Atomic<int> turns_{0};
};

#else

using ColdMutex = std::mutex;

#endif

}  // namespace sp3::base

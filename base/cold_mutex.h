// ColdMutex: a mutex for a few steps that nobody's order hangs on, where waiting is rare.
//
// What is done under it is one step to simulated cores: there is no event inside, and no atomic
// access that a memory model is asked about.
#pragma once

#include <mutex>

#ifdef SP3_SIMULATED
#include <utility>

#include "base/atomic.h"
#endif

namespace sp3::base {

#ifdef SP3_SIMULATED

class ColdMutex {
 public:
  void lock() noexcept {
    turns_.exchange(0, std::memory_order_seq_cst);
    model_ = std::exchange(memory_model, nullptr);
  }
  void unlock() noexcept {
    memory_model = model_;
    turns_.exchange(0, std::memory_order_seq_cst);
  }

 private:
  Atomic<int> turns_{0};
  MemoryModel* model_ = nullptr;
};

#else

using ColdMutex = std::mutex;

#endif

}  // namespace sp3::base

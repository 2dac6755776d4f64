// How the runtime waits for another core: a bounded spin that then offers its core.
#pragma once

#include <cstdint>

#ifdef SP3_SIMULATED
#include "emu/sim/machine.h"
#else
#include <sched.h>
#include <x86intrin.h>
#endif

namespace sp3::emu {

// One wait. pause() costs a few nanoseconds at first, and gives up the core once the wait is longer
// than a lock is ever held by a running thread.
class Spin {
 public:
  void pause() noexcept {
#ifdef SP3_SIMULATED
    ++rounds_;
    sim::machine().pause();
#else
    if (++rounds_ < kSpins) {
      _mm_pause();
    } else {
      sched_yield();
    }
#endif
  }
  [[nodiscard]] std::uint32_t rounds() const noexcept { return rounds_; }
  // Long enough that whoever we wait for has probably lost its core.
  [[nodiscard]] bool is_long() const noexcept { return rounds_ >= kSpins; }

 private:
#ifdef SP3_SIMULATED
  static constexpr std::uint32_t kSpins = 8;  // virtual cores are never taken away unseen
#else
  static constexpr std::uint32_t kSpins = 256;
#endif
  std::uint32_t rounds_ = 0;
};

}  // namespace sp3::emu

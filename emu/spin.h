// How the runtime waits for another core: a bounded spin that then offers its core.
#pragma once

#include <cstdint>

#include <sched.h>
#include <x86intrin.h>

namespace sp3::emu {

// One wait. pause() costs a few nanoseconds at first, and gives up the core once the wait is longer
// than a lock is ever held by a running thread.
class Spin {
 public:
  void pause() noexcept {
    if (++rounds_ < kSpins) {
      _mm_pause();
    } else {
      sched_yield();
    }
  }
  [[nodiscard]] std::uint32_t rounds() const noexcept { return rounds_; }
  // Long enough that whoever we wait for has probably lost its core.
  [[nodiscard]] bool is_long() const noexcept { return rounds_ >= kSpins; }

 private:
  static constexpr std::uint32_t kSpins = 256;
  std::uint32_t rounds_ = 0;
};

}  // namespace sp3::emu

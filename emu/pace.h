// Pace: how a background thread works in short bursts.
//
// It may share a core with somebody whose transactions are to be quick, and a scheduler takes a
// core away at its own pace: a tick, 4 ms on many machines. So the thread gives it away itself, by
// sleeping: a sleeper that wakes up runs soon, while one that only offered its core (sched_yield)
// waits until whoever took it has used up its turn.
//
// Thread safety: none; the thread's own.
#pragma once

#include <cstdint>

#include "emu/clock.h"
#include "emu/spin.h"

namespace sp3::emu {

class Pace {
 public:
  // Called after every little piece of work. Sleeps for a moment if the last burst was long enough
  // and `at_leisure()`. Simulated cores are nobody else's: nothing.
  template <typename AtLeisure>
  void breathe([[maybe_unused]] AtLeisure&& at_leisure) noexcept {
#ifndef SP3_SIMULATED
    if (++calls_ % kCalls != 0 || ticks() - resumed_ < burst_) return;
    if (at_leisure()) Spin::sleep();
    resumed_ = ticks();
#endif
  }

 private:
#ifndef SP3_SIMULATED
  static constexpr std::uint32_t kCalls = 16;  // between looks at the clock
  const std::uint64_t burst_ = ticks_from_nanoseconds(250'000);
  std::uint64_t resumed_ = 0;
  std::uint32_t calls_ = 0;
#endif
};

}  // namespace sp3::emu

// Emulated latency: makes a flush or a fence take as long as it would on slower memory.
//
// The wait starts right after the instruction, as in earlier emulators, so the hardware's own drain
// overlaps with it: what a fence really costs is measured (bench/floor.cc), not computed.
#pragma once

#include <cstdint>

#include <sched.h>
#include <x86intrin.h>

#include <sp3/options.h>

#include "emu/clock.h"

namespace sp3::emu {

// Waits until `length` ticks after `start`. A pause takes up to 140 ticks, so it polls near the
// end.
inline void spin_for(std::uint64_t start, std::uint64_t length) noexcept {
  constexpr std::uint64_t kPauseTicks = 160;
  for (;;) {
    const std::uint64_t passed = ticks() - start;
    if (passed >= length) return;
    if (length - passed > kPauseTicks) _mm_pause();
  }
}

// sp3::Latency in ticks.
class LatencyTicks {
 public:
  LatencyTicks() = default;
  explicit LatencyTicks(const Latency& latency) noexcept
      : after_line_(
            latency.model == LatencyModel::line ? ticks_from_nanoseconds(latency.nanoseconds) : 0),
        at_fence_(
            latency.model == LatencyModel::line ? 0 : ticks_from_nanoseconds(latency.nanoseconds)),
        per_line_(ticks_from_nanoseconds(latency.per_line_nanoseconds)),
        yields_(latency.model == LatencyModel::yield) {}

  [[nodiscard]] bool charges_lines() const noexcept { return after_line_ != 0; }
  [[nodiscard]] bool charges_fences() const noexcept { return (at_fence_ | per_line_) != 0; }

  void charge_line() const noexcept { spin_for(ticks(), after_line_); }

  // REQUIRES: lines > 0 were flushed since the last fence.
  void charge_fence(std::uint64_t lines) const noexcept {
    const std::uint64_t start = ticks();
    const std::uint64_t length = at_fence_ + per_line_ * lines;
    if (yields_) {
      while (ticks() - start < length) sched_yield();
    } else {
      spin_for(start, length);
    }
  }

 private:
  std::uint64_t after_line_ = 0;
  std::uint64_t at_fence_ = 0;
  std::uint64_t per_line_ = 0;
  bool yields_ = false;
};

}  // namespace sp3::emu

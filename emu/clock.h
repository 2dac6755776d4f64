// The clock behind stamps and emulated latency: the time-stamp counter.
#pragma once

#include <cstdint>

#ifdef SP3_SIMULATED
#include "emu/sim/machine.h"
#else
#include <x86intrin.h>
#endif

namespace sp3::emu {

#ifdef SP3_SIMULATED
// Of the running core: a virtual clock of one tick a nanosecond.
inline std::uint64_t ticks() noexcept { return sim::machine().ticks(); }
inline std::uint64_t ticks_after_loads() noexcept { return ticks(); }
// Counters agree on when a lock was taken: loads behind this one see those taken before it.
inline std::uint64_t ticks_before_loads() noexcept {
  sim::machine().see_fenced();
  return ticks();
}
#else

// Ticks now, in no particular order with the surrounding instructions.
inline std::uint64_t ticks() noexcept { return __rdtsc(); }

// Ticks at a moment after every earlier load and locked instruction of this thread: a writer's
// stamp is taken with its locks held.
inline std::uint64_t ticks_after_loads() noexcept {
  _mm_lfence();
  return __rdtsc();
}

// Ticks at a moment before every later load of this thread: a reader's snapshot.
inline std::uint64_t ticks_before_loads() noexcept {
  const std::uint64_t now = __rdtsc();
  _mm_lfence();
  return now;
}
#endif

// Ticks per second, measured once per process (a few milliseconds).
double ticks_per_second() noexcept;

std::uint64_t ticks_from_nanoseconds(double nanoseconds) noexcept;
double nanoseconds_from_ticks(std::uint64_t ticks) noexcept;

// Whether the counters of all cores run at one rate and agree: the CPU promises an invariant TSC,
// and a ping-pong between cores (once per process) saw no step backwards; where the machine was too
// busy for one, the kernel's word counts. Only opacity's cheap path relies on it, and that all wait
// at the serial gate at the same time.
bool clock_is_synchronised() noexcept;

// Tests: pools opened from now on are told that the counters disagree.
void force_unsynchronised_clock(bool apart) noexcept;

}  // namespace sp3::emu

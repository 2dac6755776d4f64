// How the runtime waits for another core: a bounded spin that then offers its core, and in the end
// sleeps. An offer reaches none but threads of the same priority: a real-time thread that had taken
// the core from the one it waits for would offer it for ever.
#pragma once

#include <cstdint>

#ifdef SP3_SIMULATED
#include <algorithm>

#include "emu/sim/machine.h"
#else
#include <ctime>

#include <sched.h>
#include <x86intrin.h>

#include "base/no_cancellation.h"
#endif

namespace sp3::emu {

// One wait. pause() costs a few nanoseconds at first, and gives up the core once the wait is longer
// than a lock is ever held by a running thread; some milliseconds later it sleeps.
class Spin {
 public:
  // `rounds` of them, with nothing to look at in between.
  void pause(std::uint64_t rounds = 1) noexcept {
#ifdef SP3_SIMULATED
    const std::uint64_t left = rounds_ < kSpins ? kSpins - 1 - rounds_ : 0;
    rounds_ += static_cast<std::uint32_t>(rounds);
    sim::machine().pause(std::min(rounds, left), rounds - std::min(rounds, left));
#else
    for (; rounds > 0; --rounds) {
      if (++rounds_ < kSpins) {
        _mm_pause();
      } else {
        offer_or_sleep();
      }
    }
#endif
  }
  // As pause(), for one who is in no hurry: a wait that has become long sleeps, instead of offering
  // the core again and again.
  void rest() noexcept {
#ifndef SP3_SIMULATED
    if (is_long()) return sleep();
#endif
    pause();
  }
  // As pause(), for one who may wait for somebody without a core: offers its own after `rounds`.
  void pause_or_offer([[maybe_unused]] std::uint32_t rounds) noexcept {
#ifndef SP3_SIMULATED
    if (rounds_ >= rounds) {
      rounds_ += kSpins / 16;  // about what it lasts
      return offer_or_sleep();
    }
#endif
    pause();
  }
  // As pause(), in a loop that waits for what somebody tells changed(on), or for ticks() to pass
  // `deadline`. Simulated cores that only measure time skip the rounds in which nothing can happen.
  void pause_until_changed([[maybe_unused]] const void* on,
                           [[maybe_unused]] std::uint64_t deadline) noexcept {
#ifdef SP3_SIMULATED
    if (sim::machine().is_timed()) return sim::machine().poll(on, deadline);
#endif
    pause();
  }
  // Gives up the core, if anybody else wants it.
  static void offer() noexcept {
#ifdef SP3_SIMULATED
    sim::machine().pause(0, 1);
#else
    sched_yield();
#endif
  }
  // For one who waits in attempts of which each is short: as a wait that has lasted too long.
  static void let_all_run() noexcept {
#ifndef SP3_SIMULATED
    sleep();
#endif
  }
#ifndef SP3_SIMULATED
  // Lets somebody else have the core, whatever its priority, for 50 us and what the kernel adds.
  static void sleep() noexcept {
    const base::NoCancellation whole;
    const timespec length{.tv_sec = 0, .tv_nsec = 50'000};
    ::nanosleep(&length, nullptr);
  }
#endif
  [[nodiscard]] std::uint32_t rounds() const noexcept { return rounds_; }
  // Long enough that whoever we wait for has probably lost its core.
  [[nodiscard]] bool is_long() const noexcept {
#ifdef SP3_SIMULATED
    // Where interleavings are explored, virtual cores are never taken away unseen.
    return rounds_ >= (sim::machine().is_timed() ? kSpins : 8);
#else
    return rounds_ >= kSpins;
#endif
  }

  // From here on a round is long.
  static constexpr std::uint32_t kSpins = 256;
  // Offers have not helped: from here on a round sleeps. Far beyond what it takes threads of the
  // same priority to run.
  static constexpr std::uint32_t kOffers = 1 << 15;

 private:
#ifndef SP3_SIMULATED
  void offer_or_sleep() const noexcept {
    if (rounds_ < kOffers) {
      offer();
    } else {
      sleep();
    }
  }
#endif
  std::uint32_t rounds_ = 0;
};

// Tells those who wait in Spin::pause_until_changed. Natively they see it by themselves.
inline void changed([[maybe_unused]] const void* on) noexcept {
#ifdef SP3_SIMULATED
  sim::machine().changed(on);
#endif
}

}  // namespace sp3::emu

// Litmus tests: a few bodies, each on a core of its own, where memory is weak, with many seeds.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include <catch2/catch.hpp>

#include "base/atomic.h"
#include "base/fence.h"
#include "emu/sim/machine.h"
#include "emu/threads.h"

namespace sp3::test {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;
constexpr auto acq_rel = std::memory_order_acq_rel;
constexpr auto seq_cst = std::memory_order_seq_cst;

// What the cores of a run share, and what they found.
struct Shared {
  base::Atomic<std::uint64_t> x{0};
  base::Atomic<std::uint64_t> y{0};
  base::Atomic<std::uint64_t> z{0};
  std::uint64_t plain = 0;
  std::array<std::uint64_t, 4> found{};
};
using Body = std::function<void(Shared&)>;

inline void nothing(Shared& /*shared*/) {}

constexpr std::uint64_t kSeeds = 2000;

// Runs the bodies once with each of so many seeds, and then calls look(machine, shared).
template <class Look>
void on_weak_cores(const std::vector<Body>& bodies, Look look, std::uint64_t seeds = kSeeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    emu::sim::Config config;
    config.seed = seed;
    config.schedule = seed % 2 == 0 ? emu::sim::Schedule::priority : emu::sim::Schedule::random;
    config.expected_events = 16;
    config.weak_memory = true;
    emu::sim::Machine machine(config);
    Shared shared;
    const auto ended = machine.run([&] {
      std::vector<emu::Thread> threads;
      for (const Body& body : bodies) threads.emplace_back([&] { body(shared); });
      for (emu::Thread& thread : threads) thread.join();
    });
    REQUIRE(ended == emu::sim::Machine::Ended::normally);
    look(machine, shared);
  }
}

// What C++ says of a flag that hands over what was done before it. fails(before_flag, store, load,
// behind_flag): whether some seed shows that it was not.
template <class Fails>
void check_release_and_acquire(Fails fails) {
  const Body before = [](Shared&) { base::atomic_fence(release); };
  const Body behind = [](Shared&) { base::atomic_fence(acquire); };
  CHECK(fails(nothing, relaxed, relaxed, nothing));
  CHECK(fails(nothing, release, relaxed, nothing));
  CHECK(fails(nothing, relaxed, acquire, nothing));
  CHECK_FALSE(fails(nothing, release, acquire, nothing));
  CHECK_FALSE(fails(nothing, seq_cst, seq_cst, nothing));
  CHECK(fails(before, relaxed, relaxed, nothing));
  CHECK(fails(nothing, relaxed, relaxed, behind));
  CHECK_FALSE(fails(before, relaxed, relaxed, behind));
  CHECK_FALSE(fails(before, relaxed, acquire, nothing));
  CHECK_FALSE(fails(nothing, release, relaxed, behind));
}

}  // namespace sp3::test

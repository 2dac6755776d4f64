#include "emu/clock.h"

#include <chrono>
#include <thread>

#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "emu/latency.h"
#include "emu/spin.h"

using namespace sp3::emu;

TEST_CASE("the clock of a thread never goes backwards") {
  std::uint64_t last = ticks();
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t now = i % 3 == 0   ? ticks()
                              : i % 3 == 1 ? ticks_after_loads()
                                           : ticks_before_loads();
    REQUIRE(now >= last);
    last = now;
  }
}

TEST_CASE("ticks pass at the measured rate") {
  CHECK(ticks_per_second() > 1e8);
  CHECK(ticks_per_second() < 2e10);
  const auto start_time = std::chrono::steady_clock::now();
  const std::uint64_t start = ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::uint64_t passed = ticks() - start;
  const std::chrono::duration<double, std::nano> real =
      std::chrono::steady_clock::now() - start_time;
  // Between the two readings the thread may lose its core; they then differ by more than the rate
  // does.
  CHECK(nanoseconds_from_ticks(passed) < real.count() * 1.02);
  CHECK(nanoseconds_from_ticks(passed) > 49e6);
}

TEST_CASE("nanoseconds become ticks and ticks nanoseconds") {
  CHECK(ticks_from_nanoseconds(0) == 0);
  CHECK(ticks_from_nanoseconds(-5) == 0);
  const std::uint64_t second = ticks_from_nanoseconds(1e9);
  CHECK(static_cast<double>(second) == Approx(ticks_per_second()).epsilon(1e-6));
  CHECK(nanoseconds_from_ticks(second) == Approx(1e9).epsilon(1e-6));
}

TEST_CASE("the clock's synchronisation is decided once") {
  CHECK(clock_is_synchronised() == clock_is_synchronised());
}

TEST_CASE("a spin lasts at least its length") {
  for (const std::uint64_t length : {0U, 10U, 1000U, 100000U}) {
    const std::uint64_t start = ticks();
    spin_for(start, length);
    CHECK(ticks() - start >= length);
  }
}

TEST_CASE("a spin is long after it has offered its core") {
  Spin spin;
  while (!spin.is_long()) spin.pause();
  CHECK(spin.rounds() >= 100);
  spin.pause();
  CHECK(spin.is_long());
}

// Its offers do not reach who has a lower priority, and may be what it waits for.
TEST_CASE("a spin that has offered its core in vain sleeps") {
  Spin spin;
  while (spin.rounds() < Spin::kOffers) spin.pause_or_offer(0);
  const auto sleeps = [] {
    rusage usage{};
    REQUIRE(::getrusage(RUSAGE_THREAD, &usage) == 0);
    return usage.ru_nvcsw;  // who only offers its core is still ready to run
  };
  const long before = sleeps();
  spin.pause();
  CHECK(sleeps() > before);
  spin.pause_or_offer(0);
  CHECK(sleeps() > before + 1);
}

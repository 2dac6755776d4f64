// Litmus tests of races: accesses to plain memory that nothing orders are found by some seed, and
// those that something orders are taken for races by none.
#include <memory>
#include <string>

#include "base/cold_mutex.h"
#include "base/epoch.h"
#include "base/fence.h"
#include "base/plain_access.h"
#include "emu/spin.h"
#include "tests/sim/weak_cores.h"
#include "tests/sim/weakened.h"

namespace sp3::test {
namespace {

void reads(Shared& s) { base::plain_read(&s.plain, sizeof s.plain); }
void writes(Shared& s) { base::plain_write(&s.plain, sizeof s.plain); }

// The first race that a seed shows; empty if none does.
std::string race_of(const std::vector<Body>& bodies, std::uint64_t seeds = kSeeds) {
  std::string race;
  const auto look = [&](const emu::sim::Machine& machine, const Shared& /*shared*/) {
    if (race.empty()) race = machine.race();
  };
  on_weak_cores(bodies, look, seeds);
  return race;
}
bool races(const std::vector<Body>& bodies, std::uint64_t seeds = kSeeds) {
  return !race_of(bodies, seeds).empty();
}

// One writes and then stores a flag, and the other reads if it sees it.
bool handing_over(const Body& before_flag, std::memory_order store, std::memory_order load,
                  const Body& behind_flag) {
  return races({[=](Shared& s) {
                  writes(s);
                  before_flag(s);
                  s.y.store(1, store);
                },
                [=](Shared& s) {
                  if (s.y.load(load) == 0) return;
                  behind_flag(s);
                  reads(s);
                }});
}

}  // namespace

TEST_CASE("races: two accesses, one of them a write") {
  CHECK(races({writes, writes}));
  CHECK(races({writes, reads}));
  CHECK_FALSE(races({reads, reads}));
  CHECK_FALSE(races({writes}));
  CHECK_FALSE(races({writes, [](Shared& s) { base::plain_write(&s.found, sizeof s.found); }}));
}

TEST_CASE("races: a report names both places and what was done there") {
  const std::string race = race_of({writes, reads});
  CHECK_THAT(
      race,
      Catch::Matches("core [12] (reads|writes) at sim/races_test.cc:[0-9]+ .event [0-9]+. what "
                     "core [12] has (written|read) at sim/races_test.cc:[0-9]+ .event [0-9]+., and "
                     "nothing orders the two"));
}

TEST_CASE("races: who acquires a flag comes behind what came before its release") {
  check_release_and_acquire(handing_over);
}

TEST_CASE("races: full fences order plain memory only through what is read of atomics") {
  const Body full = [](Shared&) { base::atomic_fence(seq_cst); };
  const Body exchange = [](Shared& s) { s.z.exchange(1, seq_cst); };
  CHECK_FALSE(handing_over(full, relaxed, relaxed, full));
  CHECK(handing_over(nothing, relaxed, relaxed, full));
  CHECK(handing_over(full, relaxed, relaxed, exchange));
  CHECK(handing_over(exchange, relaxed, relaxed, full));
}

TEST_CASE("races: a heavy fence comes behind what all cores have done, and before what they do") {
  const Body heavy = [](Shared&) { base::heavy_fence(); };
  CHECK_FALSE(handing_over(nothing, relaxed, relaxed, heavy));
  CHECK_FALSE(handing_over(heavy, relaxed, relaxed, nothing));
}

TEST_CASE("races: a mutex orders what is done under it, and so do beginning and end of a thread") {
  base::ColdMutex cold;
  emu::Mutex one;
  emu::Mutex other;
  const auto under = [](auto& mutex, const Body& body) {
    return [&mutex, body](Shared& s) {
      { const std::lock_guard hold(mutex); }
      body(s);
      { const std::lock_guard hold(mutex); }
    };
  };
  const auto inside = [](auto& mutex, const Body& body) {
    return [&mutex, body](Shared& s) {
      const std::lock_guard hold(mutex);
      body(s);
    };
  };
  CHECK_FALSE(races({inside(one, writes), inside(one, reads)}));
  CHECK(races({inside(one, writes), inside(other, reads)}));
  CHECK(races({under(one, writes), under(one, writes)}));
  CHECK(races({under(cold, writes), under(cold, writes)}));
  CHECK_FALSE(races({[](Shared& s) {
    writes(s);
    emu::Thread child([&] { writes(s); });
    child.join();
    reads(s);
  }}));
}

TEST_CASE(
    "races: what exchanges leave of a release orders, what a store has overwritten does not") {
  const auto through = [](const Body& change) {
    return races({[](Shared& s) {
                    writes(s);
                    s.y.store(1, release);
                  },
                  [=](Shared& s) {
                    if (s.y.load(relaxed) == 1) change(s);
                  },
                  [](Shared& s) {
                    if (s.y.load(acquire) == 2) reads(s);
                  }});
  };
  CHECK_FALSE(through([](Shared& s) { s.y.fetch_add(1, relaxed); }));
  CHECK(through([](Shared& s) { s.y.store(2, relaxed); }));
}

TEST_CASE("races: a release orders however long ago it was") {
  const auto long_ago = [](std::memory_order load) {
    constexpr std::uint64_t kFewSeeds = 50;
    return races({[](Shared& s) {
                    writes(s);
                    s.y.store(1, release);
                    for (int i = 0; i < 2000; ++i) s.z.store(1, relaxed);
                    s.x.store(1, relaxed);
                  },
                  [=](Shared& s) {
                    while (s.x.load(relaxed) == 0) emu::Spin().pause();
                    if (s.y.load(load) == 1) reads(s);
                  }},
                 kFewSeeds);
  };
  CHECK_FALSE(long_ago(acquire));
  CHECK(long_ago(relaxed));
}

TEST_CASE("races: a long read lasts until it is said to have ended") {
  const auto told = [](bool before_end) {
    return races({[=](Shared& s) {
                    base::long_read(&s.plain, sizeof s.plain);
                    if (before_end) s.x.store(1, release);
                    base::end_long_reads();
                    s.x.store(1, release);
                  },
                  [](Shared& s) {
                    if (s.x.load(acquire) == 1) writes(s);
                  }});
  };
  CHECK(told(true));
  CHECK_FALSE(told(false));
}

// Also when whoever frees it meets the reader in none but its latest state: pinned again, by a plain
// store, after it has rested.
TEST_CASE(
    "races: what was read under a pin is read before it is freed, however the reader goes on") {
  const Body reads_and_frees = [](Shared& s) {
    base::EpochDomain epochs(1);
    epochs.admit(0);
    emu::Thread reader([&] {
      for (int i = 0; i < 6; ++i) {
        epochs.pin(0);
        if (s.x.load(acquire) == 0) reads(s);
        epochs.rest(0);
      }
    });
    s.x.store(1, release);
    const auto retired = epochs.retirement_epoch();
    for (int i = 0; i < 40 && !base::EpochDomain::may_free(retired, epochs.current()); ++i) {
      epochs.try_advance();
    }
    if (base::EpochDomain::may_free(retired, epochs.current())) writes(s);
    reader.join();
  };
  CHECK_FALSE(races({reads_and_frees}));
  const Weakened epochs("base/epoch.h", relaxed);
  CHECK(races({reads_and_frees}));
}

TEST_CASE("races: memory that comes from an allocator has no history") {
  const Body fresh = [](Shared& s) { base::fresh_memory(&s.plain, sizeof s.plain); };
  CHECK_FALSE(handing_over(nothing, relaxed, relaxed, fresh));
}

}  // namespace sp3::test

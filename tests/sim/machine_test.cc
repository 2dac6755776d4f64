// Virtual cores: what their schedule may depend on, and what they offer the runtime.
#include <chrono>
#include <mutex>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include "emu/clock.h"
#include "emu/executor.h"
#include "emu/spin.h"
#include "emu/threads.h"
#include "emu/touch.h"
#include "sim/crasher.h"
#include "sim/describe.h"

namespace sp3::test {
namespace {

using emu::sim::Config;
using emu::sim::Event;
using emu::sim::Machine;
using emu::sim::Schedule;

Config config_of(Schedule schedule, std::uint64_t seed = 1) {
  Config config;
  config.schedule = schedule;
  config.seed = seed;
  config.most_events = 100'000;
  return config;
}

constexpr Schedule kSchedules[] = {Schedule::timed, Schedule::random, Schedule::priority};

}  // namespace

TEST_CASE("what an event is about is told in words") {
  const auto told = [](Event event, std::uint64_t what) {
    return sim::describe_event({}, event, what);
  };
  const auto touch = [&](emu::Line line, std::uint64_t which, emu::Access access) {
    return told(Event::touch,
                emu::sim::pack_touch({.line = line, .which = which, .access = access}));
  };
  using emu::Access;
  using emu::Line;
  CHECK(touch(Line::entry, 0x80, Access::load) == "load of the entry of the object at 0x80");
  CHECK(touch(Line::epoch_slot, 3, Access::exchange) == "exchange of the epoch slot 3");
  CHECK(touch(Line::gate, 0, Access::store) == "store to the serial gate");
  CHECK(touch(Line::word_clock, 0, Access::load) == "touch 104");
  using emu::sim::FileChange;
  CHECK(told(Event::file, static_cast<std::uint64_t>(FileChange::make)) == "making of a file");
  CHECK(told(Event::file, static_cast<std::uint64_t>(FileChange::remove)) == "removal of a file");
}

TEST_CASE("the same seed gives the same trace, whatever ran before it") {
  const auto hash_of = [](std::uint64_t seed) {
    sim::CrashLab lab({});
    const std::vector<std::vector<char>> disturbance(seed % 7, std::vector<char>(100));
    REQUIRE(lab.explore(sim::case_of(seed)));
    return lab.trace_hash();
  };
  std::set<std::uint64_t> different;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const std::uint64_t first = hash_of(seed);
    CHECK(hash_of(seed) == first);
    different.insert(first);
  }
  CHECK(different.size() == 30);
}

TEST_CASE("a watcher changes nothing of what it watches") {
  sim::CrashOptions few;
  few.most_enumerated = 2;
  few.samples = 2;
  few.continued_one_in = ~std::uint32_t{0};
  few.continued_clean_one_in = ~std::uint32_t{0};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    sim::CrashLab watched(few);
    sim::CrashLab alone(few);
    REQUIRE(watched.run(sim::case_of(seed)));
    REQUIRE(alone.explore(sim::case_of(seed)));
    CHECK(watched.trace_hash() == alone.trace_hash());
  }
}

TEST_CASE("a mutex keeps cores apart at every event") {
  for (const Schedule schedule : kSchedules) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Machine machine(config_of(schedule, seed));
      int inside = 0;
      int most = 0;
      int turns = 0;
      emu::Mutex mutex;
      const auto body = [&] {
        for (int i = 0; i < 10; ++i) {
          const std::lock_guard guard(mutex);
          most = std::max(most, ++inside);
          emu::interleave();
          emu::interleave();
          --inside;
          ++turns;
        }
      };
      const auto ended = machine.run([&] {
        std::vector<emu::Thread> threads;
        for (int i = 0; i < 4; ++i) threads.emplace_back(body);
        for (emu::Thread& thread : threads) thread.join();
      });
      CHECK(ended == Machine::Ended::normally);
      CHECK(most == 1);
      CHECK(turns == 40);
    }
  }
}

TEST_CASE("explored schedules differ by seed, and let cores overtake each other") {
  const auto order_of = [](Schedule schedule, std::uint64_t seed) {
    Machine machine(config_of(schedule, seed));
    std::vector<int> order;
    machine.run([&] {
      std::vector<emu::Thread> threads;
      for (int number = 0; number < 3; ++number) {
        threads.emplace_back([&order, number] {
          for (int i = 0; i < 3; ++i) {
            order.push_back(number);
            emu::interleave();
          }
        });
      }
      for (emu::Thread& thread : threads) thread.join();
    });
    return order;
  };
  for (const Schedule schedule : {Schedule::random, Schedule::priority}) {
    const auto first = order_of(schedule, 1);
    bool differs = false;
    for (std::uint64_t seed = 2; seed < 20; ++seed) {
      differs = differs || order_of(schedule, seed) != first;
    }
    CHECK(differs);
  }
}

TEST_CASE("a timed wait ends at its time, or when it is woken") {
  using std::chrono::milliseconds;
  for (const Schedule schedule : kSchedules) {
    Machine machine(config_of(schedule));
    bool timed_out = false;
    bool woken = false;
    emu::Mutex mutex;
    emu::ConditionVariable changed;
    bool ready = false;
    machine.run([&] {
      std::unique_lock lock(mutex);
      const auto start = emu::SteadyClock::now();
      timed_out = !changed.wait_for(lock, milliseconds(5), [] { return false; });
      timed_out = timed_out && emu::SteadyClock::now() - start >= milliseconds(5);
      emu::Thread other([&] {
        const std::lock_guard guard(mutex);
        ready = true;
        changed.notify_all();
      });
      woken = changed.wait_for(lock, std::chrono::hours(1), [&] { return ready; });
      lock.unlock();
      other.join();
    });
    CHECK(timed_out);
    CHECK(woken);
    CHECK(machine.now() < 3'600'000'000'000);
  }
}

TEST_CASE("a core that waits for another by spinning lets it run") {
  for (const Schedule schedule : kSchedules) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Machine machine(config_of(schedule, seed));
      bool done = false;
      const auto ended = machine.run([&] {
        emu::Thread other([&] {
          for (int i = 0; i < 20; ++i) emu::interleave();
          done = true;
        });
        emu::Spin spin;
        while (!done) spin.pause();
        other.join();
      });
      CHECK(ended == Machine::Ended::normally);
    }
  }
}

TEST_CASE("a core that polls goes on in its first turn after the change, or at its deadline") {
  Config config = config_of(Schedule::timed);
  config.costs.pause = 300;
  config.costs.clock = 200;
  Machine machine(config);
  bool done = false;
  std::uint64_t changed_at = 0;
  std::uint64_t seen_at = 0;
  std::uint64_t gave_up_at = 0;
  int turns = 0;
  machine.run([&] {
    emu::Thread waiter([&] {
      emu::Spin spin;
      for (; !done; ++turns) spin.pause_until_changed(&done, emu::ticks() + 1'000'000);
      seen_at = machine.now();
    });
    emu::Thread impatient([&] {
      const std::uint64_t deadline = emu::ticks() + 100;
      emu::Spin spin;
      while (!done && emu::ticks() <= deadline) spin.pause_until_changed(&done, deadline);
      gave_up_at = machine.now();
      CHECK_FALSE(done);
    });
    for (int i = 0; i < 1000; ++i) emu::interleave();
    done = true;
    changed_at = machine.now();
    emu::changed(&done);
    waiter.join();
    impatient.join();
  });
  CHECK(machine.uncaught().empty());
  CHECK(turns == 1);
  CHECK(seen_at >= changed_at);
  CHECK(seen_at <= changed_at + 1);
  CHECK(gave_up_at < changed_at);
  CHECK(gave_up_at >= 100);
}

TEST_CASE("many rounds of waiting take as long as one after the other") {
  const auto time_of = [](std::uint64_t at_once, int times) {
    Machine machine(config_of(Schedule::timed));
    machine.run([&] {
      emu::Spin spin;
      for (int i = 0; i < times; ++i) spin.pause(at_once);
      CHECK(spin.is_long() == (at_once * static_cast<std::uint64_t>(times) >= emu::Spin::kSpins));
    });
    return machine.now();
  };
  CHECK(time_of(200, 1) == time_of(1, 200));
  CHECK(time_of(400, 1) == time_of(1, 400));
  CHECK(time_of(100, 4) == time_of(1, 400));
  CHECK(time_of(400, 1) > 3 * time_of(200, 1));  // the last 145 offered the core
}

TEST_CASE("cores that wait for each other are reported, and so is one that never ends") {
#if defined(__SANITIZE_ADDRESS__)
  const __lsan::ScopedDisabler abandoned;  // such cores keep what they own
#endif
  Machine locked(config_of(Schedule::random));
  CHECK(locked.run([] {
    emu::Mutex mutex;
    mutex.lock();
    mutex.lock();
  }) == Machine::Ended::deadlocked);
  Machine endless(config_of(Schedule::random));
  CHECK(endless.run([] {
    emu::Spin spin;
    while (true) spin.pause();
  }) == Machine::Ended::hung);
}

TEST_CASE("time is what events cost: two cores work side by side") {
  const auto time_of = [](int cores) {
    Machine machine(config_of(Schedule::timed));
    machine.run([&] {
      std::vector<emu::Thread> threads;
      for (int i = 0; i < cores; ++i) {
        threads.emplace_back([] {
          for (int k = 0; k < 1000; ++k) emu::sim::machine().event(Event::step, 0, 100'000);
        });
      }
      for (emu::Thread& thread : threads) thread.join();
    });
    return machine.now();
  };
  CHECK(time_of(1) >= 100'000);
  CHECK(time_of(8) < 2 * time_of(1));
}

TEST_CASE("a core waits for what it needs, and all else comes meanwhile") {
  using emu::Access;
  using emu::Line;
  using emu::touch;
  Config config = config_of(Schedule::timed);
  config.costs.hit = 0;
  config.costs.fetch = 60'000;
  config.costs.exchange = 10'000;
  const auto ns_of = [&](auto body) {
    Machine machine(config);
    std::uint64_t taken = 0;
    machine.run([&] {
      const std::uint64_t start = machine.now();
      body(machine);
      taken = machine.now() - start;
    });
    return taken;
  };
  const auto entry = [](Access access) { touch(Line::entry, 512, access); };
  const auto version = [](Access access) { touch(Line::version, 512, access); };
  const auto lock = [] { touch(Line::epoch_slot, 0, Access::exchange); };

  SECTION("a value that decides where to go on") {
    CHECK(ns_of([&](Machine&) { entry(Access::load), version(Access::load); }) == 120);
  }
  SECTION("a check, but not for what lies where a check says") {
    CHECK(ns_of([&](Machine&) { entry(Access::check); }) == 0);
    CHECK(ns_of([&](Machine&) { entry(Access::check), version(Access::load); }) == 60);
    CHECK(ns_of([&](Machine&) { entry(Access::check), version(Access::follow); }) == 120);
    CHECK(ns_of([&](Machine&) { entry(Access::check), lock(); }) == 70);
  }
  SECTION("stores, until there is a locked instruction or a fence") {
    CHECK(ns_of([&](Machine&) { entry(Access::store), entry(Access::store); }) == 0);
    CHECK(ns_of([&](Machine&) { entry(Access::store), lock(); }) == 70);
    CHECK(ns_of([&](Machine& machine) { entry(Access::store), machine.fence(5000); }) == 65);
  }
  SECTION("what was asked for before") {
    CHECK(ns_of([&](Machine&) { emu::prefetch(Line::entry, 512, true); }) == 0);
    CHECK(ns_of([&](Machine& machine) {
            emu::prefetch(Line::entry, 512, true);
            machine.event(Event::step, 0, 50'000);
            entry(Access::exchange);
          }) == 70);
    CHECK(ns_of([&](Machine&) {
            emu::prefetch(Line::entry, 512, false);
            emu::prefetch(Line::version, 512, false);
            entry(Access::load);
            version(Access::load);
          }) == 120);
  }
}

TEST_CASE("clocks never fall, on one core or from core to core, when they agree") {
  for (const Schedule schedule : kSchedules) {
    Machine machine(config_of(schedule));
    std::uint64_t last = 0;
    bool fell = false;
    machine.run([&] {
      std::vector<emu::Thread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
          for (int k = 0; k < 100; ++k) {
            const std::uint64_t now = emu::ticks();
            fell = fell || now < last;
            last = now;
            emu::interleave();
          }
        });
      }
      for (emu::Thread& thread : threads) thread.join();
    });
    CHECK_FALSE(fell);
  }
}

TEST_CASE("the executor runs every item once, on cores of its own") {
  for (const std::uint32_t threads : {1U, 3U}) {
    Machine machine(config_of(Schedule::random));
    std::vector<int> visits(50, 0);
    std::vector<int> fed(10, 0);
    machine.run([&] {
      emu::Executor executor(threads);
      executor.parallel_for(visits.size(), [&](std::size_t i) { ++visits[i]; });
      const std::uint32_t initial = 0;
      executor.parallel_feed(&initial, 1, [&](std::uint32_t item, const auto& ready) {
        ++fed[item];
        if (item + 1 < fed.size()) ready(item + 1);
      });
    });
    CHECK(visits == std::vector<int>(50, 1));
    CHECK(fed == std::vector<int>(10, 1));
  }
}

}  // namespace sp3::test

// Waiting: blocking, fairness, deadlines, cancellation, batches, nested waits, introspection.
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <new>
#include <span>

#include "rangelock/hook.h"
#include "tests/rangelock/stop.h"
#include "tests/rangelock/support.h"

using namespace sp3;
using namespace sp3::tests;
using namespace std::chrono_literals;
using Clock = BlockingRangeLock::Clock;

TEMPLATE_TEST_CASE("blocked acquisitions get their ranges in the end", "", SP3_OUR_RANGE_LOCKS) {
  for (const Fairness fairness : {Fairness::barging, Fairness::fifo}) {
    const auto lock = make_lock<TestType>({.fairness = fairness});
    ExclusionOracle oracle;
    std::array<std::uint64_t, kSpace> counts{};  // guarded by the ranges
    constexpr unsigned kThreads = 8, kEach = 600;
    run_threads(kThreads, [&](unsigned thread) {
      workloads::Rng rng(7, thread);
      for (unsigned i = 0; i < kEach; ++i) {
        const std::uint64_t begin = rng.below(64);
        const Range range{begin, begin + 1 + rng.below(64)};
        const RangeMode mode = rng.below(4) == 0 ? RangeMode::shared : RangeMode::exclusive;
        const RangeGuard guard(*lock, range.begin, range.end, mode);
        oracle.enter(range, mode);
        if (mode == RangeMode::exclusive) ++counts[begin];
        if (rng.below(8) == 0) std::this_thread::yield();
        oracle.leave(range, mode);
      }
    });
    CHECK(oracle.violations() == 0);
    CHECK(lock->waiters().empty());
    CHECK(lock->holders().empty());
  }
}

// Each of four threads always holds a narrow range: it lets go of one when it has the next. A full
// range is never free, unless those that wait for it come first.
TEMPLATE_TEST_CASE("a wide range is starved by narrow ones unless it is fair", "",
                   SP3_OUR_RANGE_LOCKS) {
  constexpr unsigned kNarrow = 4;
  const Fairness fairness = GENERATE(Fairness::barging, Fairness::fifo);
  const auto lock = make_lock<TestType>({.fairness = fairness});
  std::atomic<unsigned> holding{0};
  std::atomic<bool> over{false};
  run_threads(1 + kNarrow, [&](unsigned thread) {
    if (thread == 0) {
      wait_until([&] { return holding.load() == kNarrow; });
      if (fairness == Fairness::fifo) {
        for (int i = 0; i < 20; ++i) lock->unlock(lock->lock(0, kRangeMax));
      } else {
        CHECK_FALSE(lock->try_lock_until(0, kRangeMax, Clock::now() + 20ms));
      }
      over.store(true);
      return;
    }
    RangeOwner owner(thread);
    const std::uint64_t begin = 100 * thread;
    RangeHandle held = lock->lock(owner, begin, begin + 10);
    holding.fetch_add(1);
    while (!over.load()) {
      const std::uint64_t other = held.range().begin == begin ? begin + 50 : begin;
      RangeHandle next = lock->try_lock(owner, other, other + 10);
      // Unfair, it is refused only by who is about to retreat.
      if (!next && fairness == Fairness::barging) continue;
      lock->unlock(held);
      held = next ? std::move(next) : lock->lock(owner, other, other + 10);
    }
    lock->unlock(held);
  });
  CHECK(lock->holders().empty());
}

TEMPLATE_TEST_CASE("with fifo nobody overtakes a conflicting waiter", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>({.fairness = Fairness::fifo});
  RangeHandle reader = lock->lock_shared(10, 20);
  std::thread writer([&] { lock->unlock(lock->lock(0, 100)); });
  wait_until([&] { return lock->waiters().size() == 1; });
  // Alone, the lock would grant all of these.
  CHECK_FALSE(is_free(*lock, 10, 20, RangeMode::shared));
  CHECK_FALSE(is_free(*lock, 50, 60));
  CHECK(is_free(*lock, 100, 200));
  lock->unlock(reader);
  writer.join();
  CHECK(is_free(*lock, 0, 100));
}

TEMPLATE_TEST_CASE("a deadline that passes leaves no trace", "", SP3_OUR_RANGE_LOCKS) {
  for (const Fairness fairness : {Fairness::barging, Fairness::fifo}) {
    const auto lock = make_lock<TestType>({.fairness = fairness});
    RangeHandle held = lock->lock(0, 50);
    for (const Range& range : {Range{40, 45}, Range{40, 60}, Range{0, kRangeMax}}) {
      const auto deadline = Clock::now() + 5ms;
      CHECK_FALSE(lock->try_lock_until(range.begin, range.end, deadline));
      CHECK(Clock::now() >= deadline);
      CHECK_FALSE(lock->try_lock_shared_until(range.begin, range.end, Clock::now() + 1ms));
    }
    CHECK(lock->waiters().empty());
    CHECK(lock->holders().size() == 1);
    CHECK(lock->counters().timeouts == 6);
    CHECK(is_free(*lock, 50, kRangeMax));
    // A deadline in the past is a try.
    RangeHandle other = lock->try_lock_until(50, 60, Clock::now() - 1s);
    CHECK(other);
    lock->unlock(other);
    lock->unlock(held);
    CHECK(is_free(*lock, 0, kRangeMax));
  }
}

TEMPLATE_TEST_CASE("who gives up wakes those behind", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>({.fairness = Fairness::fifo});
  RangeHandle held = lock->lock(0, 10);
  std::stop_source stop;
  std::thread wide([&] { CHECK_FALSE(lock->lock(0, 100, stop.get_token())); });
  wait_until([&] { return lock->waiters().size() == 1; });
  std::thread behind([&] { lock->unlock(lock->lock(50, 60)); });
  wait_until([&] { return lock->waiters().size() == 2; });
  stop.request_stop();  // the lock goes on being held: only this can wake the one behind
  wide.join();
  behind.join();
  lock->unlock(held);
}

TEMPLATE_TEST_CASE("a cancelled wait leaves no trace", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeHandle held = lock->lock(0, 10);
  std::stop_source stop;
  std::thread waiter([&] { CHECK_FALSE(lock->lock(5, 15, stop.get_token())); });
  wait_until([&] { return lock->waiters().size() == 1; });
  stop.request_stop();
  waiter.join();
  CHECK(lock->waiters().empty());
  CHECK(is_free(*lock, 10, 15));
  CHECK_FALSE(lock->lock(5, 15, stop.get_token()));  // at once
  lock->unlock(held);
}

TEMPLATE_TEST_CASE("a batch is had whole or not at all", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeOwner owner(1);
  const std::vector<Range> ranges{{500, 600}, {0, 10}, {20, 30}, {10, 20}};
  std::vector<RangeHandle> handles = lock->try_lock_all(owner, ranges);
  REQUIRE(handles.size() == 4);
  for (std::size_t i = 1; i < handles.size(); ++i) {
    CHECK(handles[i - 1].range().begin < handles[i].range().begin);
  }
  CHECK(owner.held() == 4);
  CHECK(lock->holders().size() == 4);
  lock->unlock_all(handles);
  CHECK(owner.held() == 0);

  RangeHandle in_the_way = lock->lock(595, 597);
  CHECK(lock->try_lock_all(owner, ranges).empty());
  CHECK(lock->try_lock_all_until(owner, ranges, Clock::now() + 2ms).empty());
  CHECK(lock->holders().size() == 1);
  lock->unlock(in_the_way);

  const std::vector<Range> overlapping{{0, 10}, {9, 12}};
  CHECK_THROWS_AS(lock->try_lock_all(owner, overlapping), Error);
  handles = lock->lock_all(owner, overlapping, RangeMode::shared);
  CHECK(handles.size() == 2);
  lock->unlock_all(handles);
}

TEMPLATE_TEST_CASE("a batch fills the handles it is given, in their order, or none of them", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeOwner owner(1);
  // More than are asked for at once; of every kind that the grid knows, and without order.
  std::vector<Range> ranges{{2000, 3000}, {30, 34}, {0, 10}};
  for (std::uint64_t i = 0; i < 37; ++i) ranges.push_back({100 + 10 * i, 105 + 10 * i});
  std::vector<RangeHandle> handles(ranges.size());
  const auto none_is_held = [&] {
    return owner.held() == 0 && lock->holders().empty() &&
           std::ranges::none_of(handles, [](const RangeHandle& handle) { return bool(handle); });
  };
  for (int round = 0; round < 3; ++round) {
    REQUIRE(lock->try_lock_all(owner, ranges, handles));
    for (std::size_t i = 0; i < ranges.size(); ++i) CHECK(handles[i].range() == ranges[i]);
    CHECK(owner.held() == ranges.size());
    CHECK_FALSE(is_free(*lock, 104, 105));
    lock->unlock_all(std::span(handles));
    CHECK(none_is_held());
  }

  RangeHandle in_the_way = lock->lock(460, 462);
  CHECK_FALSE(lock->try_lock_all(owner, ranges, handles));
  lock->unlock(in_the_way);
  CHECK(none_is_held());

  ranges.back() = {4, 6};
  CHECK_THROWS_AS(lock->try_lock_all(owner, ranges, handles), Error);
  CHECK(none_is_held());
  REQUIRE(lock->try_lock_all(owner, ranges, handles, RangeMode::shared));
  lock->unlock_all(std::span(handles));
  CHECK(none_is_held());
  CHECK(lock->try_lock_all(owner, {}, std::span<RangeHandle>()));
}

// Whoever gets a range keeps its handle where the one before had his: an unlock that touched its
// handle once the range is free would change another's. Mostly it is ThreadSanitizer that tells.
TEMPLATE_TEST_CASE("a handle may lie in what it protects", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  // In one slot of the grid, in two, and in its lists; on the skip list all the same.
  for (const Range& range : {Range{1, 2}, Range{12, 20}, Range{0, 100}}) {
    RangeHandle holder;  // guarded by the range
    run_threads(3, [&](unsigned thread) {
      RangeOwner owner(thread);
      for (int i = 0; i < 5000; ++i) {
        RangeHandle mine = lock->try_lock(owner, range.begin, range.end);
        if (!mine) continue;
        holder = std::move(mine);
        lock->unlock(holder);
      }
    });
    CHECK_FALSE(holder);
    CHECK(is_free(*lock, 0, 100));
  }
}

TEST_CASE("a batch that runs out of memory half-way holds nothing") {
  const Stop stop(rangelock::Hook::inside_bucket);  // where nobody gets to
  RangeLockDomain domain(1);
  SkiplistRangeLock lock({.domain = &domain});
  RangeOwner owner(1, domain);
  std::vector<Range> ranges;
  for (std::uint64_t i = 0; i < 300; ++i) ranges.push_back({10 * i, 10 * i + 5});
  std::vector<RangeHandle> handles(ranges.size());
  RangeHandle first = lock.lock(owner, 5000, 5001);  // from then on a refill comes within the batch
  Stop::when_i_get_to(rangelock::Hook::before_refill, [] { throw std::bad_alloc(); });
  CHECK_THROWS_AS(lock.try_lock_all(owner, ranges, handles), std::bad_alloc);
  CHECK(owner.held() == 1);
  CHECK(lock.holders().size() == 1);
  CHECK(std::ranges::none_of(handles, [](const RangeHandle& handle) { return bool(handle); }));
  REQUIRE(lock.try_lock_all(owner, ranges, handles));
  lock.unlock_all(handles);
  lock.unlock(first);
}

TEMPLATE_TEST_CASE("batches never wait for each other in a circle", "", SP3_OUR_RANGE_LOCKS) {
  const auto fairness = GENERATE(Fairness::barging, Fairness::fifo);
  const auto lock = make_lock<TestType>({.fairness = fairness});
  ExclusionOracle oracle;
  std::atomic<unsigned> stuck{0};
  run_threads(4, [&](unsigned thread) {
    RangeOwner owner(thread);
    workloads::Rng rng(9, thread);
    for (unsigned i = 0; i < 300; ++i) {
      std::vector<Range> ranges;
      for (unsigned k = 0; k < 4; ++k) {
        const std::uint64_t begin = std::uint64_t{40} * k + rng.below(20);
        ranges.push_back({begin, begin + 1 + rng.below(20)});
      }
      std::swap(ranges[0], ranges[rng.below(4)]);
      if (thread == 0 && i % 2 == 1) ranges = {{0, 160}};
      const auto limit = Clock::now() + (stuck == 0 ? 30s : 0s);
      std::vector<RangeHandle> handles = lock->try_lock_all_until(owner, ranges, limit);
      if (handles.empty()) {
        ++stuck;
        break;
      }
      for (const Range& range : ranges) oracle.enter(range, RangeMode::exclusive);
      for (const Range& range : ranges) oracle.leave(range, RangeMode::exclusive);
      lock->unlock_all(handles);
    }
  });
  CHECK(stuck == 0);
  CHECK(oracle.violations() == 0);
}

// The batch holds [0, 10) when a full range comes that waits for it and wants what the batch wants
// too.
TEMPLATE_TEST_CASE("a batch that holds a range goes behind nobody", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>({.fairness = Fairness::fifo});
  const auto limit = Clock::now() + 10s;
  RangeHandle middle = lock->lock(20, 30);
  bool batch_had = false, full_had = false;
  std::thread batch([&] {
    RangeOwner owner(1);
    const std::vector<Range> ranges{{0, 10}, {20, 30}, {40, 50}};
    std::vector<RangeHandle> handles = lock->try_lock_all_until(owner, ranges, limit);
    batch_had = handles.size() == 3;
    lock->unlock_all(handles);
  });
  wait_until([&] { return lock->waiters().size() == 1; });
  std::thread full([&] {
    RangeHandle handle = lock->try_lock_until(0, 50, limit);
    full_had = static_cast<bool>(handle);
    if (handle) lock->unlock(handle);
  });
  wait_until([&] { return lock->waiters().size() == 2; });
  lock->unlock(middle);
  batch.join();
  full.join();
  CHECK(batch_had);
  CHECK(full_had);
}

// Two full ranges wait, one behind the other, when the last range of the batch is unlocked. That
// wakes the second, which has to wait on for the first, and so for the batch.
TEMPLATE_TEST_CASE("a batch that holds a range is not passed over", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>({.fairness = Fairness::fifo});
  RangeHandle middle = lock->lock(20, 30);
  RangeHandle last = lock->lock(40, 50);
  bool batch_had = false;
  std::thread batch([&] {
    RangeOwner owner(1);
    const std::vector<Range> ranges{{0, 10}, {20, 30}, {40, 50}};
    const auto limit = Clock::now() + 10s;
    std::vector<RangeHandle> handles = lock->try_lock_all_until(owner, ranges, limit);
    batch_had = handles.size() == 3;
    lock->unlock_all(handles);
  });
  wait_until([&] { return lock->waiters().size() == 1; });
  std::vector<std::thread> full;
  for (std::size_t i = 1; i <= 2; ++i) {
    full.emplace_back([&] { lock->unlock(lock->lock(0, 50)); });
    wait_until([&] { return lock->waiters().size() == 1 + i; });
  }
  lock->unlock(middle);
  wait_until([&] { return lock->waiters().back().range == Range{40, 50}; });
  // One that gives up wakes the two, so that they find out what they wait for now.
  (void)lock->try_lock_until(22, 24, Clock::now() + 5ms);
  wait_until([&] {
    const auto waiters = lock->waiters();
    return waiters[0].blocker == Range{0, 10} && waiters[1].blocker == Range{0, 50};
  });
  std::this_thread::sleep_for(20ms);  // both asleep
  lock->unlock(last);
  batch.join();
  CHECK(batch_had);
  for (std::thread& thread : full) thread.join();
}

// Or a row of batches would starve it: each would hold its first range and then go before the
// waiter.
TEMPLATE_TEST_CASE("a batch that holds nothing goes behind waiters for any of its ranges", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>({.fairness = Fairness::fifo});
  RangeHandle reader = lock->lock_shared(20, 30);
  std::thread writer([&] { lock->unlock(lock->lock(20, 40)); });
  wait_until([&] { return lock->waiters().size() == 1; });
  RangeOwner owner(1);
  // The lock would grant both.
  const std::vector<Range> ranges{{0, 10}, {20, 30}};
  CHECK(lock->try_lock_all(owner, ranges, RangeMode::shared).empty());
  CHECK(lock->try_lock_all_until(owner, ranges, Clock::now() + 5ms, RangeMode::shared).empty());
  std::vector<RangeHandle> had;
  std::thread batch([&] { had = lock->lock_all(owner, ranges, RangeMode::shared); });
  wait_until([&] { return lock->waiters().size() == 2; });
  lock->unlock(reader);
  writer.join();
  batch.join();
  CHECK(had.size() == 2);
  lock->unlock_all(had);
}

// An unlock wakes the elder of two waiters that want the same, and the elder cannot have it after
// all.
TEMPLATE_TEST_CASE("a waiter that was woken in vain lets those behind it have the range", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeHandle first = lock->lock(0, 10);
  RangeHandle second = lock->lock(50, 60);
  const auto wait_for_waiters = [&](std::size_t count) {
    wait_until([&] { return lock->waiters().size() == count; });
    wait_until([&] { return lock->waiters().back().blocker == Range{0, 10}; });
  };
  std::thread wide([&] { lock->unlock(lock->lock(0, 100)); });
  wait_for_waiters(1);
  std::atomic<bool> had{false};
  std::thread narrow([&] {
    RangeHandle handle = lock->try_lock_until(0, 10, std::chrono::steady_clock::now() + 20s);
    had = static_cast<bool>(handle);
    if (handle) lock->unlock(handle);
  });
  wait_for_waiters(2);
  lock->unlock(first);
  narrow.join();
  CHECK(had);
  lock->unlock(second);
  wide.join();
}

// Counts how often anybody goes to sleep, while it lives.
class SleepCounter {
 public:
  SleepCounter() {
    count_ = 0;
    rangelock::install_hook([](rangelock::Hook at) {
      if (at == rangelock::Hook::before_sleep) ++count_;
    });
  }
  ~SleepCounter() { rangelock::install_hook(nullptr); }
  SleepCounter(const SleepCounter&) = delete;
  SleepCounter& operator=(const SleepCounter&) = delete;
  [[nodiscard]] unsigned count() const { return count_; }

 private:
  static inline std::atomic<unsigned> count_{0};
};

// Both wait for what is still held. Each that finds so may wake who was passed over for it, and who
// took its own attempt for a held range, once.
TEMPLATE_TEST_CASE("waiters that were woken in vain sleep, and do not go on waking each other", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeHandle first = lock->lock(0, 5);
  RangeHandle second = lock->lock(5, 10);
  // On the grid the first is wide, and so is the second of the second round.
  const Range others[] = {{0, 10}, {0, 100}, {0, 200}};
  for (const Range& other : others) {
    std::thread wide([&] { lock->unlock(lock->lock(0, 100)); });
    wait_until([&] { return lock->waiters().size() == 1; });
    std::thread behind([&] { lock->unlock(lock->lock(other.begin, other.end)); });
    wait_until([&] { return lock->waiters().size() == 2; });
    std::this_thread::sleep_for(20ms);  // both asleep
    const SleepCounter sleeps;
    lock->unlock(first);
    std::this_thread::sleep_for(100ms);
    CHECK(sleeps.count() <= 8);
    lock->unlock(second);
    wide.join();
    behind.join();
    first = lock->lock(0, 5);
    second = lock->lock(5, 10);
  }
  lock->unlock(first);
  lock->unlock(second);
}

// An attempt that finds a range of the other kind in its way, a narrow one on the grid or a shared
// one in the lists, has shown itself first and retreats: that must not wake the waiter it is made
// for, nor one that waits for the very same.
TEMPLATE_TEST_CASE("a waiter whose attempts retreat sleeps", "", SP3_OUR_RANGE_LOCKS) {
  struct Case {
    Range held;
    RangeMode mode, wanted;
  };
  const Range wide{0, 1000};
  for (const Case& c : {Case{{10, 20}, RangeMode::exclusive, RangeMode::exclusive},
                        Case{{10, 20}, RangeMode::exclusive, RangeMode::shared},
                        Case{{10, 20}, RangeMode::shared, RangeMode::exclusive},
                        Case{wide, RangeMode::shared, RangeMode::exclusive},
                        Case{wide, RangeMode::exclusive, RangeMode::shared}}) {
    const auto lock = make_lock<TestType>();
    RangeHandle held = c.mode == RangeMode::exclusive ? lock->lock(c.held.begin, c.held.end)
                                                      : lock->lock_shared(c.held.begin, c.held.end);
    const SleepCounter sleeps;
    std::vector<std::thread> waiters;
    for (int i = 0; i < 3; ++i) {
      waiters.emplace_back([&] { const RangeGuard guard(*lock, wide.begin, wide.end, c.wanted); });
    }
    wait_until([&] { return lock->waiters().size() == 3; });
    std::this_thread::sleep_for(100ms);
    // Each may have seen the others' attempts a few times before all were asleep.
    CHECK(sleeps.count() <= 30);
    lock->unlock(held);
    for (std::thread& waiter : waiters) waiter.join();
  }
}

TEMPLATE_TEST_CASE("a deadlock of nested waits ends in a typed error", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>({.nested_wait = 20ms});
  std::atomic<unsigned> ready{0}, errors{0};
  run_threads(2, [&](unsigned thread) {
    RangeOwner owner(thread);
    RangeHandle own = lock->lock(owner, 10 * thread, 10 * thread + 10);
    ready.fetch_add(1);
    wait_until([&] { return ready.load() >= 2; });
    const std::uint64_t other = std::uint64_t{10} * (1 - thread);
    try {
      lock->unlock(lock->lock(owner, other, other + 10));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::nested_wait) errors.fetch_add(1);
    }
    lock->unlock(own);
  });
  CHECK(errors.load() >= 1);
  CHECK(lock->waiters().empty());
  CHECK(lock->holders().empty());
}

TEMPLATE_TEST_CASE("a batch that waits nested for too long ends in a typed error, with none of it",
                   "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>({.nested_wait = 20ms});
  RangeHandle held = lock->lock(20, 30);
  std::thread waiter([&] {
    RangeOwner owner(1);
    RangeHandle own = lock->lock(owner, 100, 110);
    std::string code;
    try {
      (void)lock->lock_all(owner, std::array{Range{0, 10}, Range{20, 30}, Range{40, 50}});
    } catch (const Error& error) {
      code = to_string(error.code());
    }
    CHECK(code == "nested_wait");
    lock->unlock(own);
  });
  waiter.join();
  CHECK(lock->waiters().empty());
  CHECK(lock->holders().size() == 1);
  lock->unlock(held);
}

TEMPLATE_TEST_CASE("a nested wait may be for ever", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>({.nested_wait = std::chrono::nanoseconds::max()});
  RangeHandle held = lock->lock(0, 10);
  bool had = false, batch_had = false;
  std::thread waiter([&] {
    RangeOwner owner(1);
    RangeHandle own = lock->lock(owner, 100, 110);
    try {
      RangeHandle handle = lock->lock(owner, 0, 10);
      had = static_cast<bool>(handle);
      lock->unlock(handle);
      std::vector<RangeHandle> handles = lock->lock_all(owner, std::array{Range{0, 10}});
      batch_had = handles.size() == 1;
      lock->unlock_all(handles);
    } catch (const Error&) {
    }
    lock->unlock(own);
  });
  // Not asleep yet: a wait that fails at once may be over before it could be seen.
  wait_until([&] { return lock->counters().contended == 1; });
  std::this_thread::sleep_for(5ms);
  lock->unlock(held);
  waiter.join();
  CHECK(had);
  CHECK(batch_had);
}

TEMPLATE_TEST_CASE("holders, waiters and counters tell what goes on", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeOwner alice(101), bob(102);
  RangeHandle narrow = lock->lock(alice, 34, 40);
  RangeHandle twice = lock->lock(alice, 60, 70);  // two granules of the grid
  RangeHandle wide = lock->lock_shared(bob, 200, 900);
  RangeHandle last = lock->lock_shared(bob, 1000, 1001);
  std::vector<RangeHolder> holders = lock->holders();
  std::ranges::sort(holders, {}, [](const RangeHolder& holder) { return holder.range.begin; });
  REQUIRE(holders.size() == 4);
  CHECK(holders[0].range == Range{34, 40});
  CHECK(holders[0].token == 101);
  CHECK(holders[0].mode == RangeMode::exclusive);
  CHECK(holders[1].range == Range{60, 70});
  CHECK(holders[1].mode == RangeMode::exclusive);
  CHECK(holders[2].range == Range{200, 900});
  CHECK(holders[2].token == 102);
  CHECK(holders[2].mode == RangeMode::shared);
  CHECK(holders[3].range == Range{1000, 1001});
  CHECK(holders[3].token == 102);
  CHECK(holders[3].mode == RangeMode::shared);
  CHECK(alice.held() == 2);
  CHECK(alice.counters().acquired == 2);

  std::thread thread([&] {
    RangeOwner carol(103);
    lock->unlock(lock->lock(carol, 39, 41));
    CHECK(carol.counters().contended == 1);
    CHECK(carol.counters().waited_ns > 0);
  });
  wait_until([&] { return !lock->waiters().empty(); });
  wait_until([&] { return lock->waiters().front().blocker == Range{34, 40}; });
  const RangeWaiter waiter = lock->waiters().front();
  CHECK(waiter.range == Range{39, 41});
  CHECK(waiter.token == 103);
  CHECK(waiter.waited_ns > 0);
  alice.set_token(104);
  CHECK(alice.token() == 104);
  holders = lock->holders();
  CHECK(std::ranges::count(holders, 104U, &RangeHolder::token) == 2);
  CHECK(std::ranges::count(holders, 101U, &RangeHolder::token) == 0);
  lock->unlock(narrow);
  thread.join();
  CHECK(lock->counters().contended == 1);
  CHECK(lock->counters().timeouts == 0);
  CHECK(lock->counters().waited_ns > 0);
  lock->unlock(twice);
  lock->unlock(wide);
  lock->unlock(last);
}

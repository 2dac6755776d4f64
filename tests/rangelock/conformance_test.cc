// What every range lock must do. The first eight cases are the faults found in published range
// locks.
#include <catch2/catch.hpp>

#include "base/epoch.h"
#include "emu/spin_lock.h"
#include "tests/rangelock/support.h"

using namespace sp3;
using namespace sp3::tests;

TEMPLATE_TEST_CASE("fault 1: ranges that touch zero or the maximum can be locked", "",
                   SP3_ALL_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  constexpr std::uint64_t end = kEnd<TestType>;
  {
    auto low = try_lock(*lock, 0, 10);
    auto high = try_lock(*lock, end - 10, end);
    REQUIRE(low);
    REQUIRE(high);
    CHECK_FALSE(is_free(*lock, 0, end));
    lock->unlock(std::move(low));
    lock->unlock(std::move(high));
  }
  auto full = try_lock(*lock, 0, end);
  REQUIRE(full);
  CHECK_FALSE(is_free(*lock, 0, 1));
  CHECK_FALSE(is_free(*lock, end - 1, end));
  CHECK_FALSE(is_free(*lock, 500, 510));
  lock->unlock(std::move(full));
  CHECK(is_free(*lock, 0, end));
}

TEMPLATE_TEST_CASE("fault 2: a range of one address can be locked, unlocked and locked again", "",
                   SP3_ALL_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  for (int i = 0; i < 3; ++i) {
    auto point = try_lock(*lock, 7, 8);
    REQUIRE(point);
    CHECK_FALSE(is_free(*lock, 7, 8));
    CHECK(is_free(*lock, 6, 7));
    CHECK(is_free(*lock, 8, 9));
    lock->unlock(std::move(point));
  }
}

TEMPLATE_TEST_CASE("fault 3: adjacent ranges do not conflict", "", SP3_ALL_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  auto a = try_lock(*lock, 10, 20);
  auto c = try_lock(*lock, 30, 40);
  auto b = try_lock(*lock, 20, 30);
  REQUIRE(a);
  REQUIRE(b);
  REQUIRE(c);
  CHECK_FALSE(is_free(*lock, 19, 20));
  CHECK_FALSE(is_free(*lock, 20, 21));
  CHECK_FALSE(is_free(*lock, 39, 41));
  lock->unlock(std::move(b));
  CHECK(is_free(*lock, 20, 30));
  CHECK_FALSE(is_free(*lock, 20, 31));
  lock->unlock(std::move(a));
  lock->unlock(std::move(c));
}

// The published lock refuses [15, 25) as long as the marked node of [20, 30) stands behind the gap.
TEMPLATE_TEST_CASE("fault 4: what is unlocked blocks nobody, whoever comes next", "",
                   SP3_ALL_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  auto left = try_lock(*lock, 0, 10);
  for (std::uint64_t begin = 20; begin < 60; begin += 10) {
    auto token = try_lock(*lock, begin, begin + 10);
    REQUIRE(token);
    lock->unlock(std::move(token));
    CHECK(is_free(*lock, begin - 5, begin + 5));
    CHECK(is_free(*lock, 10, begin + 10));
  }
  lock->unlock(std::move(left));
}

// Tall towers at random, then every range must still be found by searches that come from above.
TEMPLATE_TEST_CASE("fault 5: no index entry is lost when towers are built side by side", "",
                   SP3_ALL_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  constexpr unsigned kThreads = 4, kEach = 200;
  std::atomic<unsigned> missing{0}, ready{0};
  run_threads(kThreads, [&](unsigned thread) {
    using Token = decltype(try_lock(*lock, 0, 1));
    std::vector<Token> tokens;
    for (unsigned i = 0; i < kEach; ++i) {
      const std::uint64_t begin = i * kThreads + thread;
      tokens.push_back(try_lock(*lock, begin, begin + 1));
      if (!tokens.back()) missing.fetch_add(1);
    }
    ready.fetch_add(1);
    wait_until([&] { return ready.load() >= kThreads; });
    for (std::uint64_t at = 0; at < std::uint64_t{kThreads} * kEach; ++at) {
      if (is_free(*lock, at, at + 1)) missing.fetch_add(1);
    }
    ready.fetch_add(1);
    wait_until([&] { return ready.load() >= 2 * kThreads; });
    for (Token& token : tokens) lock->unlock(std::move(token));
  });
  CHECK(missing.load() == 0);
  CHECK(is_free(*lock, 0, kSpace));
}

// The interleaving itself is replayed in interleavings_test.cc; here many threads look for it.
// Ranges of changing shape around the same place, so that a node used again stands for another
// range.
TEMPLATE_TEST_CASE("fault 6: memory that is used again never breaks exclusion", "",
                   SP3_ALL_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  ExclusionOracle oracle;
  run_threads(4, [&](unsigned thread) {
    workloads::Rng rng(6, thread);
    for (unsigned i = 0; i < 20'000; ++i) {
      const std::uint64_t begin = 30 + rng.below(10);
      const Range range{begin, begin + 1 + rng.below(10)};
      auto token = try_lock(*lock, range.begin, range.end);
      if (!token) continue;
      oracle.enter(range, RangeMode::exclusive);
      oracle.leave(range, RangeMode::exclusive);
      lock->unlock(std::move(token));
    }
  });
  CHECK(oracle.violations() == 0);
}

// Neighbours are linked behind a range while it is unlocked.
TEMPLATE_TEST_CASE("fault 7: an unlock loses no neighbour that is locked at the same time", "",
                   SP3_ALL_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  std::atomic<unsigned> lost{0};
  run_threads(4, [&](unsigned thread) {
    const std::uint64_t begin = 100 + 10 * thread;
    for (unsigned i = 0; i < 20'000; ++i) {
      auto token = try_lock(*lock, begin, begin + 10);
      if (!token || is_free(*lock, begin + 5, begin + 6)) lost.fetch_add(1);
      if (token) lock->unlock(std::move(token));
    }
  });
  CHECK(lost.load() == 0);
}

TEMPLATE_TEST_CASE("fault 8: failed attempts leave nothing behind", "", SP3_ALL_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  auto token = try_lock(*lock, 100, 200);
  REQUIRE(token);
  const std::uint64_t before = RangeLockDomain::process().statistics().node_bytes;
  for (unsigned i = 0; i < 10'000; ++i) REQUIRE_FALSE(is_free(*lock, 50, 101));
  CHECK(RangeLockDomain::process().statistics().node_bytes <= before + std::uint64_t{64} * 64);
  CHECK(is_free(*lock, 50, 100));
  lock->unlock(std::move(token));
  CHECK(is_free(*lock, 50, 101));
}

TEMPLATE_TEST_CASE("nested, overlapping and full ranges exclude each other", "",
                   SP3_ALL_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  auto middle = try_lock(*lock, 40, 60);
  for (const Range& range : {Range{40, 60}, Range{45, 50}, Range{30, 41}, Range{59, 70},
                             Range{30, 70}, Range{0, kSpace}, Range{40, 41}, Range{59, 60}}) {
    CHECK_FALSE(is_free(*lock, range.begin, range.end));
  }
  lock->unlock(std::move(middle));
}

TEMPLATE_TEST_CASE("shared ranges overlap each other and no exclusive one", "",
                   SP3_ALL_RANGE_LOCKS) {
  if constexpr (kHasShared<TestType>) {
    const auto lock = make_lock<TestType>();
    // Narrow, double and wide ranges against each other.
    for (const Range& first : {Range{34, 40}, Range{30, 40}, Range{10, 200}, Range{0, kSpace}}) {
      for (const Range& second : {Range{35, 36}, Range{31, 39}, Range{36, 300}, Range{0, kSpace}}) {
        auto reader = try_lock(*lock, first.begin, first.end, RangeMode::shared);
        REQUIRE(reader);
        CHECK(is_free(*lock, second.begin, second.end, RangeMode::shared));
        CHECK_FALSE(is_free(*lock, second.begin, second.end, RangeMode::exclusive));
        lock->unlock(std::move(reader));
        auto writer = try_lock(*lock, first.begin, first.end);
        REQUIRE(writer);
        CHECK_FALSE(is_free(*lock, second.begin, second.end, RangeMode::shared));
        CHECK_FALSE(is_free(*lock, second.begin, second.end, RangeMode::exclusive));
        lock->unlock(std::move(writer));
      }
    }
  } else {
    STATIC_REQUIRE_FALSE(kIsOurs<TestType>);
  }
}

// They could not both be had if one were exclusive.
TEMPLATE_TEST_CASE("what is asked for as shared is had as shared, whoever asks", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeOwner owner(1);
  RangeHandle held = lock->lock_shared(0, 10);
  const auto soon = BlockingRangeLock::Clock::now() + std::chrono::milliseconds(5);
  const auto is_had = [&](RangeHandle handle) {
    REQUIRE(handle);
    CHECK(handle.mode() == RangeMode::shared);
    lock->unlock(handle);
  };
  is_had(lock->try_lock_shared(owner, 5, 15));
  is_had(lock->lock_shared(owner, 5, 15));
  is_had(lock->try_lock_shared_until(owner, 5, 15, soon));
  is_had(lock->try_lock_shared(5, 15));
  is_had(lock->lock_shared(5, 15));
  is_had(lock->try_lock_shared_until(5, 15, soon));
  CHECK(RangeGuard(*lock, 20, 30, RangeMode::shared).handle().mode() == RangeMode::shared);
  CHECK(RangeGuard(*lock, 20, 30).handle().mode() == RangeMode::exclusive);
  lock->unlock(held);
}

TEMPLATE_TEST_CASE("shared ranges that begin together, at zero too, are all seen", "",
                   SP3_OUR_RANGE_LOCKS) {
  for (const std::uint64_t base : {0U, 1U, 512U}) {
    const auto lock = make_lock<TestType>();
    std::vector<RangeHandle> readers;
    for (const std::uint64_t end : {120U, 100U, 110U}) {
      readers.push_back(lock->try_lock_shared(base, base + end));
      REQUIRE(readers.back());
    }
    CHECK_FALSE(is_free(*lock, base + 115, base + 116));
    CHECK(is_free(*lock, base + 120, base + 121));
    lock->unlock_all(readers);
    CHECK(is_free(*lock, base, base + 120));
  }
}

TEMPLATE_TEST_CASE(
    "a shared range of more than half of all addresses is seen, whatever begins behind it", "",
    SP3_OUR_RANGE_LOCKS) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  const auto lock = make_lock<TestType>();
  RangeOwner owner(1);
  std::vector<RangeHandle> readers;
  readers.push_back(lock->try_lock_shared(owner, 1, kRangeMax));
  readers.push_back(lock->try_lock_shared(owner, 2, kHalf + 10));
  CHECK_FALSE(is_free(*lock, kRangeMax - 5, kRangeMax - 4));
  lock->unlock(readers[0]);
  CHECK(is_free(*lock, kRangeMax - 5, kRangeMax - 4));
  CHECK_FALSE(is_free(*lock, kHalf + 9, kHalf + 10));
  lock->unlock(readers[1]);
}

TEMPLATE_TEST_CASE("many shared ranges over one place outlast any number of slots", "",
                   SP3_ALL_RANGE_LOCKS) {
  if constexpr (kHasShared<TestType>) {
    const auto lock = make_lock<TestType>();
    using Token = decltype(try_lock(*lock, 0, 1));
    std::vector<Token> readers;
    for (std::uint64_t i = 0; i < 40; ++i) {
      readers.push_back(try_lock(*lock, 50 - i % 7, 51 + i, RangeMode::shared));
      REQUIRE(readers.back());
    }
    while (!readers.empty()) {
      CHECK_FALSE(is_free(*lock, 50, 51));
      lock->unlock(std::move(readers.back()));
      readers.pop_back();
    }
    CHECK(is_free(*lock, 50, 51));
  } else {
    STATIC_REQUIRE_FALSE(kIsOurs<TestType>);
  }
}

namespace {

// Adjacent, nested, overlapping, full and point ranges, some shared.
Range draw_range(workloads::Rng& rng) {
  const std::uint64_t shape = rng.below(100);
  const std::uint64_t begin = rng.below(kSpace);
  if (shape < 2) return {0, kSpace};
  if (shape < 20) return {begin, begin + 1};
  if (shape < 60) return {begin / 16 * 16, begin / 16 * 16 + 16};
  if (shape < 90) return {begin, std::min(kSpace, begin + 1 + rng.below(40))};
  return {begin, std::min(kSpace, begin + 1 + rng.below(400))};
}

template <class Lock>
void stress(unsigned threads, unsigned attempts, std::uint64_t seed,
            std::unique_ptr<Lock> lock = make_lock<Lock>()) {
  ExclusionOracle oracle;
  std::atomic<std::uint64_t> acquired{0};
  run_threads(threads, [&](unsigned thread) {
    workloads::Rng rng(seed, thread);
    std::uint64_t mine = 0;
    for (unsigned i = 0; i < attempts / threads; ++i) {
      const Range range = draw_range(rng);
      const bool shared = kHasShared<Lock> && rng.below(3) == 0;
      const RangeMode mode = shared ? RangeMode::shared : RangeMode::exclusive;
      auto token = try_lock(*lock, range.begin, range.end, mode);
      if (!token) continue;
      ++mine;
      oracle.enter(range, mode);
      if (rng.below(64) == 0) std::this_thread::yield();
      oracle.leave(range, mode);
      lock->unlock(std::move(token));
    }
    acquired.fetch_add(mine);
  });
  INFO("seed " << seed << ", " << threads << " threads");
  CHECK(oracle.violations() == 0);
  CHECK(acquired.load() > 0);
  CHECK(is_free(*lock, 0, kSpace));
}

// An owner that any thread may take for a turn, in which it locks a range or gives up the one it
// holds.
struct MovingOwner {
  emu::SpinLock turn;
  RangeOwner owner{1};
  RangeHandle handle;
  Range range{};
  RangeMode mode = RangeMode::exclusive;

  void take_turn(BlockingRangeLock& lock, ExclusionOracle& oracle, workloads::Rng& rng) {
    if (handle) {
      oracle.leave(range, mode);
      lock.unlock(handle);
      return;
    }
    range = draw_range(rng);
    mode = rng.below(3) == 0 ? RangeMode::shared : RangeMode::exclusive;
    const auto deadline =
        BlockingRangeLock::Clock::now() + std::chrono::microseconds(rng.below(30));
    handle = mode == RangeMode::shared
                 ? lock.try_lock_shared_until(owner, range.begin, range.end, deadline)
                 : lock.try_lock_until(owner, range.begin, range.end, deadline);
    if (handle) oracle.enter(range, mode);
  }
};

}  // namespace

TEMPLATE_TEST_CASE("what an owner has locked on one thread it gives up on another", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  ExclusionOracle oracle;
  std::array<MovingOwner, 6> owners;
  std::atomic<std::uint64_t> turns{0};
  run_threads(4, [&](unsigned thread) {
    workloads::Rng rng(7, thread);
    while (turns.load(std::memory_order_relaxed) < 40'000) {
      MovingOwner& one = owners[rng.below(owners.size())];
      // No more than acquire and release orders the turns of two threads.
      const std::unique_lock turn(one.turn, std::try_to_lock);
      if (!turn) continue;
      one.take_turn(*lock, oracle, rng);
      turns.fetch_add(1, std::memory_order_relaxed);
    }
  });
  workloads::Rng rng(7, 4);
  for (MovingOwner& one : owners) {
    if (one.handle) one.take_turn(*lock, oracle, rng);
    CHECK(one.owner.counters().acquired > 0);
  }
  CHECK(oracle.violations() == 0);
  CHECK(is_free(*lock, 0, kSpace));
}

TEMPLATE_TEST_CASE("no two conflicting ranges are ever held at once, by 2 to 32 threads", "",
                   SP3_ALL_RANGE_LOCKS) {
  for (const unsigned threads : {2U, 8U, 32U}) stress<TestType>(threads, 24'000, 10 + threads);
}

// Then a wide range goes from granule to granule, as long as it has fewer than the summary has
// words.
TEST_CASE("no two conflicting ranges are ever held at once on a grid of many buckets") {
  const auto make = [] {
    return std::make_unique<GridRangeLock>(RangeLockOptions{.granule = 16, .buckets = 4096});
  };
  const auto lock = make();
  auto narrow = try_lock(*lock, 100, 101);
  CHECK_FALSE(is_free(*lock, 0, 200));
  CHECK(is_free(*lock, 101, 400));
  lock->unlock(std::move(narrow));
  for (const unsigned threads : {2U, 8U, 32U}) {
    stress<GridRangeLock>(threads, 24'000, 20 + threads, make());
  }
}

TEMPLATE_TEST_CASE("no two conflicting ranges are ever held at once, for long", "[.full]",
                   SP3_ALL_RANGE_LOCKS) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (const unsigned threads : {2U, 4U, 32U}) stress<TestType>(threads, 100'000, seed);
  }
}

TEST_CASE("the oracle sees what no lock prevents") {
  ExclusionOracle oracle;
  oracle.enter({10, 20}, RangeMode::shared);
  oracle.enter({15, 25}, RangeMode::shared);
  CHECK(oracle.violations() == 0);
  oracle.enter({24, 30}, RangeMode::exclusive);
  CHECK(oracle.violations() == 1);
}

// Plain data under the lock: ThreadSanitizer would tell of an unlock that does not happen before
// the lock it makes possible. Narrow and wide ranges, and more in one bucket of the grid than it
// has slots.
TEMPLATE_TEST_CASE("what was written under a range is visible under the next, of whatever kind", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  constexpr std::uint64_t kWide = 128;
  std::array<std::uint64_t, kWide> counts{};
  std::array<std::uint64_t, 4> written{};
  run_threads(4, [&](unsigned thread) {
    RangeOwner owner(thread);
    workloads::Rng rng(5, thread);
    for (unsigned i = 0; i < 5000; ++i) {
      std::vector<RangeHandle> handles;
      const auto write = [&](std::uint64_t begin, std::uint64_t end) {
        RangeHandle handle = lock->try_lock(owner, begin, end);
        if (!handle) return;
        for (std::uint64_t at = begin; at < end; ++at) ++counts[at];
        written[thread] += end - begin;
        handles.push_back(std::move(handle));
      };
      if (thread == 0) {
        write(0, kWide);
      } else {
        for (unsigned k = 0; k < (thread == 1 ? 1U : 7U); ++k) {
          const std::uint64_t at = thread == 1 ? rng.below(kWide) : rng.below(16);
          write(at, at + 1);
        }
      }
      lock->unlock_all(handles);
    }
  });
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts) sum += count;
  for (const std::uint64_t count : written) sum -= count;
  CHECK(sum == 0);
}

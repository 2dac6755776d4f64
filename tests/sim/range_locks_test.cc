// Range locks on simulated cores whose memory is weak. What is done under a range is an access to
// plain memory, so the search for races is the oracle: it finds two that hold what conflicts, an
// unlock that does not come before the next lock, and a node that is used again too early.
#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <sp3/range_lock.h>

#include "base/plain_access.h"
#include "emu/sim/machine.h"
#include "emu/sim/random.h"
#include "emu/spin.h"
#include "emu/spin_lock.h"
#include "emu/threads.h"
#include "tests/sim/weakened.h"

namespace sp3::test {
namespace {

constexpr std::uint64_t kWords = 32;      // a range's unit
constexpr std::uint64_t kMovesOneIn = 3;  // of the seeds: owners go from core to core

// What the ranges guard.
class Guarded {
 public:
  // The range is held so.
  void visit(const Range& range, RangeMode mode) {
    const bool alone = mode == RangeMode::exclusive;
    for (std::uint64_t i = range.begin; i < range.end; ++i) {
      is_violated_ |= writers_[i] != 0 || (alone && readers_[i] != 0);
      ++(alone ? writers_ : readers_)[i];
      alone ? base::plain_write(&words_[i], 8) : base::plain_read(&words_[i], 8);
    }
    emu::sim::machine().event(emu::sim::Event::interleave);
    for (std::uint64_t i = range.begin; i < range.end; ++i) --(alone ? writers_ : readers_)[i];
  }
  [[nodiscard]] bool is_violated() const { return is_violated_; }

 private:
  std::array<std::uint64_t, kWords> words_{};
  std::array<int, kWords> readers_{};
  std::array<int, kWords> writers_{};
  bool is_violated_ = false;
};

Range any_range(emu::sim::Random& choose) {
  if (choose.one_in(16)) return {0, kWords};
  const std::uint64_t begin = choose.below(kWords);
  return {begin, std::min(kWords, begin + 1 + choose.below(choose.one_in(4) ? 12 : 3))};
}

// Disjoint ones, in no order.
std::vector<Range> some_ranges(emu::sim::Random& choose) {
  const std::uint64_t first = choose.below(kWords / 4);
  return {{first + 16, first + 17}, {first, first + 2}, {first + 8, first + 9}};
}

// One acquisition, by whatever way the seed chooses, of one range or several.
template <class Lock>
void use(Lock& lock, RangeOwner& owner, Guarded& guarded, emu::sim::Random& choose) {
  const RangeMode mode = choose.one_in(3) ? RangeMode::shared : RangeMode::exclusive;
  if (choose.one_in(6)) {
    std::vector<RangeHandle> handles = choose.one_in(2)
                                           ? lock.lock_all(owner, some_ranges(choose), mode)
                                           : lock.try_lock_all(owner, some_ranges(choose), mode);
    for (const RangeHandle& handle : handles) guarded.visit(handle.range(), mode);
    lock.unlock_all(handles);
    return;
  }
  const Range range = any_range(choose);
  const bool waits = choose.one_in(2);
  RangeHandle handle;
  if (mode == RangeMode::shared) {
    handle = waits ? lock.lock_shared(owner, range.begin, range.end)
                   : lock.try_lock_shared(owner, range.begin, range.end);
  } else {
    handle = waits ? lock.lock(owner, range.begin, range.end)
                   : lock.try_lock(owner, range.begin, range.end);
  }
  if (!handle) return;
  guarded.visit(range, mode);
  lock.unlock(handle);
}

// Owners of which a core takes any for each acquisition. No more than acquire and release orders
// the turns of two cores.
class MovingOwners {
 public:
  MovingOwners(std::uint64_t owners, RangeLockDomain& domain) : places_(owners) {
    for (std::uint64_t i = 0; i < owners; ++i) places_[i].owner.emplace(i, domain);
  }
  // REQUIRES: as many owners as cores, or those who have one wait for those who want one.
  template <class Use>
  void with_any(emu::sim::Random& choose, Use&& use) {
    for (emu::Spin spin;; spin.pause()) {
      Place& place = places_[choose.below(places_.size())];
      const std::unique_lock lock(place.lock, std::try_to_lock);
      if (!lock) continue;
      return use(*place.owner);
    }
  }

 private:
  struct Place {
    emu::SpinLock lock;
    std::optional<RangeOwner> owner;
  };
  std::vector<Place> places_;
};

// What a seed shows that must not be; empty if nothing. So many acquisitions by each core.
template <class Lock>
std::string fault_of(std::uint64_t seed, int acquisitions) {
  emu::sim::Random choose(seed);
  emu::sim::Config config;
  config.seed = seed;
  config.schedule = choose.one_in(3) ? emu::sim::Schedule::priority : emu::sim::Schedule::random;
  config.weak_memory = true;
  config.priority_changes = 16;
  config.expected_events = static_cast<std::uint64_t>(acquisitions) * 128;
  if (choose.one_in(2)) config.draw_stalls(choose);
  emu::sim::Machine machine(config);
  Guarded guarded;
  const auto ended = machine.run([&] {
    RangeLockDomain domain(8);
    Lock lock({.fairness = choose.one_in(2) ? Fairness::fifo : Fairness::barging,
               .domain = &domain,
               .max_height = 4,
               .granule = 4,
               .buckets = 64});
    const std::uint64_t cores = 2 + choose.below(3);
    std::optional<MovingOwners> moving;
    if (seed % kMovesOneIn == 0) moving.emplace(cores, domain);
    std::vector<emu::Thread> threads;
    for (std::uint64_t core = 0; core < cores; ++core) {
      threads.emplace_back([&, core] {
        emu::sim::Random chosen(seed * 8 + core);
        std::optional<RangeOwner> own;
        if (!moving) own.emplace(core, domain);
        const auto use_once = [&](RangeOwner& owner) { use(lock, owner, guarded, chosen); };
        for (int i = 0; i < acquisitions; ++i) {
          moving ? moving->with_any(chosen, use_once) : use_once(*own);
        }
      });
    }
    for (emu::Thread& thread : threads) thread.join();
  });
  if (ended != emu::sim::Machine::Ended::normally) return "the run never ends";
  if (!machine.uncaught().empty()) return machine.uncaught();
  if (guarded.is_violated()) return "two hold what conflicts";
  return machine.race();
}

struct Seeds {
  std::uint64_t count;
  int acquisitions;
};
constexpr Seeds kShort = {2000, 2};  // who is not woken now will not be
constexpr Seeds kLong = {60, 150};   // enough for nodes to be used again

// The first fault that one of the seeds shows.
template <class Lock>
std::string first_fault(const Seeds& seeds, std::uint64_t times = 1) {
  for (std::uint64_t seed = 1; seed <= seeds.count * times; ++seed) {
    const std::string fault = fault_of<Lock>(seed, seeds.acquisitions);
    if (!fault.empty()) return fmt::format("seed {}: {}", seed, fault);
  }
  return "";
}

}  // namespace

TEMPLATE_TEST_CASE("range locks on weak memory: what is done under a range is ordered", "",
                   SkiplistRangeLock, GridRangeLock) {
  CHECK(first_fault<TestType>(kLong) == "");
}

TEMPLATE_TEST_CASE("range locks on weak memory: who sleeps is woken", "", SkiplistRangeLock,
                   GridRangeLock) {
  CHECK(first_fault<TestType>(kShort) == "");
}

TEMPLATE_TEST_CASE("range locks on weak memory at length", "[.full]", SkiplistRangeLock,
                   GridRangeLock) {
  constexpr std::uint64_t kTimes = 100;
  CHECK(first_fault<TestType>(kLong, kTimes) == "");
  CHECK(first_fault<TestType>(kShort, kTimes) == "");
}

TEMPLATE_TEST_CASE("range locks on weak memory: an unlock that releases nothing is found", "",
                   SkiplistRangeLock, GridRangeLock) {
  const bool grid = std::is_same_v<TestType, GridRangeLock>;
  const Weakened unlock(grid ? "rangelock/bucket.h" : "rangelock/ordered_list.h",
                        std::memory_order_relaxed);
  CHECK_THAT(first_fault<TestType>(kLong), Catch::Contains("nothing orders the two"));
}

}  // namespace sp3::test

// Range locks of a process that runs out of memory. A program of its own, because it replaces the
// allocation functions of the whole program.
#include <array>
#include <new>
#include <semaphore>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/rangelock/stop.h"
#include "tests/rangelock/support.h"
#include "tests/support/errors.h"
#include "tests/support/failing_allocations.h"

// Once, when the thread asks for aligned memory next.
static thread_local void (*when_i_ask)() = nullptr;

bool sp3::test::is_refused(std::size_t /*bytes*/) { return has_run_out(); }
bool sp3::test::is_refused_aligned(std::size_t /*bytes*/) {
  if (when_i_ask != nullptr) std::exchange(when_i_ask, nullptr)();
  return has_run_out();
}

using namespace sp3;
using namespace sp3::tests;
using rangelock::Hook;
using sp3::test::allocations_left;
using sp3::test::kPlenty;

namespace {

// All that owners can do with a lock, step by step; each may lack memory. Assertions of the test
// framework need memory themselves, so they come afterwards.
template <class Lock>
class Steps {
 public:
  explicit Steps(Fairness fairness)
      : lock_(small_grid({.fairness = fairness,
                          .nested_wait = std::chrono::nanoseconds(0),
                          .domain = &domain_})) {}

  void run() {
    const Stop stop(Hook::before_sleep);
    for (int round = 0; round < 2; ++round) {
      many();
      batches();
      meet();
      contended();
      step([&] { static_cast<void>(lock_.holders()); });
      step([&] { static_cast<void>(lock_.waiters()); });
    }
  }

  void check() {
    CHECK(one_.held() == 0);
    CHECK(two_.held() == 0);
    CHECK(lock_.holders().empty());
    CHECK(lock_.waiters().empty());
    for (const RangeMode mode : {RangeMode::exclusive, RangeMode::shared}) {
      for (const Range& range : {Range{0, kRangeMax}, Range{3, 4}, Range{100, 5000}}) {
        const RangeGuard guard(lock_, two_, range.begin, range.end, mode);
        CHECK(lock_.holders().size() == 1);
      }
    }
    lock_.close();
  }

 private:
  template <class Action>
  void step(Action&& action) {
    try {
      action();
    } catch (const std::bad_alloc&) {
    }
  }
  void drop(RangeHandle handle) {
    if (handle) lock_.unlock(handle);
  }

  void many() {
    std::array<RangeHandle, 150> handles;  // for more nodes than a batch has
    step([&] {
      std::uint64_t at = 0;
      for (RangeHandle& handle : handles) {
        handle = lock_.lock(one_, at, at + 1 + at % 3 * 20);
        at += 50;
      }
    });
    lock_.unlock_all(std::span(handles));
    step([&] {
      for (std::uint64_t i = 0; i < 12; ++i) {
        handles[i] = lock_.lock_shared(one_, i, i + (std::uint64_t{1} << (4 * i)));
      }
    });
    lock_.unlock_all(std::span(handles));
    step([&] { drop(lock_.try_lock(one_, 0, kRangeMax)); });
  }

  void batches() {
    std::array<Range, 40> ranges;
    for (std::uint64_t i = 0; i < ranges.size(); ++i) ranges[i] = {80 * i, 80 * i + 40 + i};
    for (const RangeMode mode : {RangeMode::exclusive, RangeMode::shared}) {
      step([&] {
        std::vector<RangeHandle> handles = lock_.lock_all(one_, ranges, mode);
        lock_.unlock_all(handles);
      });
      std::array<RangeHandle, ranges.size()> handles;
      step([&] { static_cast<void>(lock_.try_lock_all(one_, ranges, handles, mode)); });
      lock_.unlock_all(std::span(handles));
    }
  }

  // One loses its link to two, for ranges far from each other: then the list gets signposts, and
  // acquisitions plant some.
  void meet() {
    constexpr std::uint64_t kFar = 1 << 20;
    Stop::when_i_get_to(Hook::before_link,
                        [this] { step([&] { drop(lock_.lock(two_, kFar, kFar + 1000)); }); });
    step([&] { drop(lock_.lock(one_, 0, 1000)); });
    for (std::uint64_t i = 0; i < 20; ++i) {
      step([&] { drop(lock_.lock(one_, i * kFar, i * kFar + 1000)); });
    }
    Stop::when_i_get_to(Hook::before_link, nullptr);
  }

  void contended() {
    step([&] { held_by_two_ = lock_.lock(two_, 100, 1000); });
    const auto at_once = BlockingRangeLock::Clock::now();
    step([&] { drop(lock_.try_lock_until(one_, 150, 20'000, at_once)); });
    step([&] { drop(lock_.try_lock_shared_until(one_, 150, 200, at_once)); });
    const std::array ranges{Range{3000, 3010}, Range{1, 3}, Range{500, 501}};
    step([&] {
      std::vector<RangeHandle> handles = lock_.try_lock_all_until(one_, ranges, at_once);
      lock_.unlock_all(handles);
    });
    RangeHandle first;
    step([&] { first = lock_.lock(one_, 5, 50); });
    step([&] {
      try {
        drop(lock_.lock(one_, 150, 200));  // nested, if there was memory for `first`
      } catch (const Error&) {
      }
    });
    drop(std::move(first));
    // One that waits, and then has it.
    for (const RangeMode mode : {RangeMode::exclusive, RangeMode::shared}) {
      if (!held_by_two_) step([&] { held_by_two_ = lock_.lock(two_, 100, 1000); });
      Stop::when_i_get_to(Hook::before_sleep, [this] { drop(std::move(held_by_two_)); });
      step([&] {
        drop(mode == RangeMode::exclusive ? lock_.lock(one_, 900, 1100)
                                          : lock_.lock_shared(one_, 900, 1100));
      });
      Stop::when_i_get_to(Hook::before_sleep, nullptr);
    }
    drop(std::move(held_by_two_));
  }

  RangeLockDomain domain_{8};
  Lock lock_;
  RangeOwner one_{1, domain_};
  RangeOwner two_{2, domain_};
  RangeHandle held_by_two_;
};

}  // namespace

TEMPLATE_TEST_CASE("whatever allocation fails, nothing stays locked, and the lock is as good", "",
                   SP3_OUR_RANGE_LOCKS) {
  for (const Fairness fairness : {Fairness::barging, Fairness::fifo}) {
    long allocations = 0;
    for (bool refused = true; refused; ++allocations) {
      INFO("allocation " << allocations << ", fifo: " << (fairness == Fairness::fifo));
      allocations_left = allocations;
      try {
        Steps<TestType> steps(fairness);
        steps.run();
        const long left = std::exchange(allocations_left, kPlenty);
        refused = left == kPlenty;
        steps.check();
        allocations_left = left;  // destroying it may need none
      } catch (const std::bad_alloc&) {
        REQUIRE(allocations_left == kPlenty);
      }
      allocations_left = kPlenty;
    }
    CHECK(allocations > 20);
  }
}

// Neither for nodes, nor for batches to note them in.
TEST_CASE("an owner that comes when another has gone needs memory for itself alone") {
  RangeLockDomain domain;
  RangeOwner stays(1, domain);
  SkiplistRangeLock lock({.domain = &domain});
  lock.unlock(lock.lock(stays, 0, 10));
  const auto come_and_go = [&] {
    constexpr long kMany = 1000;
    allocations_left = kMany;
    {
      RangeOwner owner(2, domain);
      lock.unlock(lock.lock(owner, 20, 30));
    }
    return kMany - std::exchange(allocations_left, kPlenty);
  };
  come_and_go();
  for (int i = 0; i < 100; ++i) REQUIRE(come_and_go() <= 1);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // which hang themselves
// For the child it is held for ever.
TEST_CASE("a thread ends in a child made by fork though another held its domain's mutex") {
  static std::binary_semaphore holds{0}, resumed{0};
  static pthread_key_t last;
  int code = -1;
  RangeOwner::this_thread();  // its key comes before the last
  REQUIRE(::pthread_key_create(&last, [](void*) { ::_exit(3); }) == 0);
  std::thread parent([&code] {
    RangeOwner::this_thread();
    std::thread other([] {
      when_i_ask = [] {
        holds.release();
        resumed.acquire();
      };
      const RangeOwner owner(1);
    });
    holds.acquire();
    const pid_t child = ::fork();
    if (child == 0) {
      ::pthread_setspecific(last, &last);
      other.detach();
      return;
    }
    code = test::wait_for(child, 20);
    resumed.release();
    other.join();
  });
  parent.join();
  CHECK(code == 3);
  ::pthread_key_delete(last);
}
#endif

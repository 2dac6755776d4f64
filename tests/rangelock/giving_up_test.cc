// Waits that come to nothing: each way to wait ends by its stop token or its deadline.
#include <catch2/catch.hpp>

#include <array>
#include <chrono>
#include <stop_token>
#include <vector>

#include "tests/rangelock/support.h"

using namespace sp3;
using namespace sp3::tests;
using namespace std::chrono_literals;
using Clock = BlockingRangeLock::Clock;

// Each asks for what is held when stop was requested already, and holds something else meanwhile:
// were that not seen, the wait would end by an error or the deadline.
TEMPLATE_TEST_CASE("any wait can be cancelled, a nested one too", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>({.nested_wait = 50ms});
  RangeHandle held = lock->lock(0, 10);
  RangeOwner owner(1);
  RangeHandle own = lock->lock(owner, 100, 110);
  RangeOwner& mine = RangeOwner::this_thread();
  std::stop_source stop;
  stop.request_stop();
  const std::stop_token token = stop.get_token();
  const auto far = Clock::now() + 20s;
  const std::vector<Range> ranges{{20, 30}, {5, 15}};
  for (RangeOwner* const by : {&owner, &mine}) {
    CHECK_FALSE(lock->lock(*by, 5, 15, token));
    CHECK_FALSE(lock->lock_shared(*by, 5, 15, token));
    CHECK_FALSE(lock->try_lock_until(*by, 5, 15, far, token));
    CHECK_FALSE(lock->try_lock_shared_until(*by, 5, 15, far, token));
    CHECK(lock->lock_all(*by, ranges, RangeMode::exclusive, token).empty());
    CHECK(lock->try_lock_all_until(*by, ranges, far, RangeMode::shared, token).empty());
  }
  CHECK_FALSE(lock->lock(5, 15, token));
  CHECK_FALSE(lock->lock_shared(5, 15, token));
  CHECK_FALSE(lock->try_lock_until(5, 15, far, token));
  CHECK_FALSE(lock->try_lock_shared_until(5, 15, far, token));
  CHECK(Clock::now() < far);
  CHECK(owner.held() == 1);
  CHECK(lock->waiters().empty());
  CHECK(lock->holders().size() == 2);
  lock->unlock(own);
  lock->unlock(held);
}

TEMPLATE_TEST_CASE("a nested wait that has a deadline ends by it, and not in an error", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>({.nested_wait = 0ms});
  RangeHandle held = lock->lock(20, 30);
  RangeOwner owner(1);
  RangeHandle own = lock->lock(owner, 100, 110);
  CHECK_FALSE(lock->try_lock_until(owner, 20, 30, Clock::now() + 1ms));
  CHECK(owner.counters().contended == 1);
  const std::array ranges{Range{0, 10}, Range{20, 30}};
  CHECK(lock->try_lock_all_until(owner, ranges, Clock::now() + 1ms).empty());
  CHECK(owner.counters().contended == 2);
  CHECK(owner.held() == 1);
  lock->unlock(own);
  lock->unlock(held);
}

TEMPLATE_TEST_CASE("the first and the last deadlines that there are do what they say", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeHandle held = lock->lock(20, 30);
  CHECK_FALSE(lock->try_lock_until(25, 35, Clock::time_point::min()));
  CHECK_FALSE(lock->try_lock_until(25, 35, Clock::time_point(-1s)));
  RangeHandle free = lock->try_lock_until(40, 50, Clock::time_point::min());
  CHECK(free);
  lock->unlock(free);
  bool had = false;
  std::thread waiter([&] {
    RangeHandle handle = lock->try_lock_until(25, 35, Clock::time_point::max());
    had = static_cast<bool>(handle);
    if (handle) lock->unlock(handle);
  });
  while (lock->waiters().empty()) std::this_thread::yield();
  lock->unlock(held);
  waiter.join();
  CHECK(had);
}

// Only two who hold ranges can wait for each other.
TEMPLATE_TEST_CASE("who holds nothing waits as long as it takes", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>({.nested_wait = 1ms});
  const bool is_batch = GENERATE(false, true);
  RangeHandle held = lock->lock(0, 10);
  std::atomic<bool> had{false};
  std::thread waiter([&] {
    RangeOwner owner(1);
    if (is_batch) {
      std::vector<RangeHandle> handles =
          lock->lock_all(owner, std::array{Range{5, 6}, Range{7, 8}});
      had = handles.size() == 2;
      lock->unlock_all(handles);
    } else {
      RangeHandle handle = lock->lock(owner, 5, 6);
      had = static_cast<bool>(handle);
      lock->unlock(handle);
    }
  });
  wait_until([&] { return !lock->waiters().empty(); });
  std::this_thread::sleep_for(20ms);
  CHECK(lock->waiters().size() == 1);
  lock->unlock(held);
  waiter.join();
  CHECK(had);
}

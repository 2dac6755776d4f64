// The interleavings that broke published range locks, driven step by step through the hooks.
#include <catch2/catch.hpp>

#include <semaphore>

#include "tests/rangelock/stop.h"
#include "tests/rangelock/support.h"

using namespace sp3;
using namespace sp3::tests;
using rangelock::Hook;

// T1 finds the gap between P and X for [35, 45) and stops. X is unlocked, and its memory would be
// the first to be used again: for [30, 40), so that P leads to the same address as before. T1's CAS
// must not succeed.
TEMPLATE_TEST_CASE("ABA: a node used again does not pass for the old one", "", SkiplistRangeLock,
                   workloads::ListLock) {
  const Stop stop(Hook::before_link);
  const auto lock = make_lock<TestType>();
  auto p = try_lock(*lock, 0, 10);
  auto x = try_lock(*lock, 50, 60);
  bool t1_has_it = true;
  std::thread t1([&] {
    Stop::arm_me();
    t1_has_it = is_free(*lock, 35, 45);
  });
  Stop::wait_until_stopped();
  lock->unlock(std::move(x));
  // Unlinks X, and gives memory every chance to come round.
  for (int i = 0; i < 1000; ++i) REQUIRE(is_free(*lock, 46, 70));
  auto a = try_lock(*lock, 30, 40);
  REQUIRE(a);
  Stop::go_on();
  t1.join();
  CHECK_FALSE(t1_has_it);
  lock->unlock(std::move(a));
  CHECK(is_free(*lock, 30, 45));
  lock->unlock(std::move(p));
}

// T1 is about to link [20, 30) behind P = [0, 10) when P is unlocked. If the unlock could overwrite
// the link, or the link the unlock, [20, 30) would be held but not found.
TEMPLATE_TEST_CASE("a neighbour linked behind a range that is being unlocked is found", "",
                   SkiplistRangeLock, workloads::ListLock) {
  const Stop stop(Hook::before_link);
  const auto lock = make_lock<TestType>();
  auto first = try_lock(*lock, 0, 1);  // the list's fast path is not what this is about
  auto p = try_lock(*lock, 5, 10);
  using Token = decltype(try_lock(*lock, 0, 1));
  Token held{};
  std::binary_semaphore tried{0}, checked{0};
  std::thread t1([&] {
    Stop::arm_me();
    held = try_lock(*lock, 20, 30);
    tried.release();
    checked.acquire();
    if (held) lock->unlock(std::move(held));
  });
  Stop::wait_until_stopped();
  lock->unlock(std::move(p));
  CHECK(is_free(*lock, 5, 10));  // unlinks P
  Stop::go_on();
  tried.acquire();  // to look before would be in its way
  CHECK(held);
  CHECK_FALSE(is_free(*lock, 25, 26));
  CHECK(is_free(*lock, 1, 20));
  checked.release();
  t1.join();
  lock->unlock(std::move(first));
  CHECK(is_free(*lock, 0, 100));
}

// The other order: the unlocker stops before its mark, and the neighbour is linked first.
TEMPLATE_TEST_CASE("an unlock does not lose the neighbour that was linked before it", "",
                   SkiplistRangeLock, workloads::ListLock) {
  const Stop stop(Hook::before_unlock);
  const auto lock = make_lock<TestType>();
  auto first = try_lock(*lock, 0, 1);
  auto p = try_lock(*lock, 5, 10);
  std::thread t1([&] {
    Stop::arm_me();
    lock->unlock(std::move(p));
  });
  Stop::wait_until_stopped();
  auto neighbour = try_lock(*lock, 20, 30);
  REQUIRE(neighbour);
  Stop::go_on();
  t1.join();
  CHECK_FALSE(is_free(*lock, 25, 26));
  CHECK(is_free(*lock, 5, 10));
  CHECK_FALSE(is_free(*lock, 5, 30));
  lock->unlock(std::move(neighbour));
  lock->unlock(std::move(first));
}

// A writer has linked itself and not yet looked for readers when a reader comes. The reader waits
// for its decision, or has lost patience with it before; each holds what it got until both have
// tried.
TEST_CASE("of a writer and a reader that meet half-way, exactly one gets the range") {
  for (const bool patient : {true, false}) {
    INFO((patient ? "the writer goes on while the reader waits" : "the reader has tried before"));
    const Stop stop(Hook::before_resolve);
    SkiplistRangeLock lock;
    lock.unlock(lock.lock_shared(10, 20));  // there are shared ranges from now on
    bool writer_has_it = false, reader_has_it = false;
    std::atomic<bool> reader_tried{false};
    std::counting_semaphore<2> tried{0}, checked{0};
    std::thread writer([&] {
      Stop::arm_me();
      RangeHandle handle = lock.try_lock(10, 20);
      writer_has_it = static_cast<bool>(handle);
      tried.release();
      checked.acquire();
      if (handle) lock.unlock(handle);
    });
    Stop::wait_until_stopped();
    CHECK(lock.holders().empty());  // it may have to retreat
    std::thread reader([&] {
      RangeHandle handle = lock.try_lock_shared(10, 20);
      reader_has_it = static_cast<bool>(handle);
      reader_tried = true;
      tried.release();
      checked.acquire();
      if (handle) lock.unlock(handle);
    });
    // Linked beside the writer, the reader finds it undecided.
    wait_until([&] { return reader_tried || (patient && !lock.holders().empty()); });
    Stop::go_on();
    tried.acquire();
    tried.acquire();
    CHECK(writer_has_it != reader_has_it);
    checked.release(2);
    writer.join();
    reader.join();
    CHECK(is_free(lock, 10, 20));
  }
}

// A narrow acquisition is inside its bucket, and has not filled its slot, when a wide one comes.
TEST_CASE("a wide range waits for who is inside a bucket, and sees the range it enters") {
  const Stop stop(Hook::inside_bucket);
  const auto lock = make_lock<GridRangeLock>();
  bool narrow_has_it = false;
  std::counting_semaphore<2> tried{0}, checked{0};
  std::thread t1([&] {
    Stop::arm_me();
    RangeHandle narrow = lock->try_lock(32, 40);
    narrow_has_it = static_cast<bool>(narrow);
    tried.release();
    checked.acquire();
    if (narrow) lock->unlock(narrow);
  });
  Stop::wait_until_stopped();
  bool wide_has_it = false;
  std::thread t2([&] {
    RangeHandle wide = lock->try_lock(0, kRangeMax);
    wide_has_it = static_cast<bool>(wide);
    checked.acquire();
    if (wide) lock->unlock(wide);
  });
  wait_until([&] { return !lock->holders().empty(); });  // the wide one is in the lists
  Stop::go_on();
  tried.acquire();
  checked.release(2);
  t1.join();
  t2.join();
  CHECK_FALSE((narrow_has_it && wide_has_it));
  CHECK(is_free(*lock, 0, kRangeMax));
}

// The waiter has noted what blocks it and is about to sleep when that is unlocked.
TEMPLATE_TEST_CASE("an unlock just before the sleep wakes the waiter", "", SP3_OUR_RANGE_LOCKS) {
  const Stop stop(Hook::before_sleep);
  const auto lock = make_lock<TestType>();
  RangeHandle held = lock->lock(10, 20);
  std::thread waiter([&] {
    Stop::arm_me();
    lock->unlock(lock->lock(15, 25));
  });
  Stop::wait_until_stopped();
  lock->unlock(held);
  Stop::go_on();
  waiter.join();
  CHECK(lock->counters().timeouts == 0);
}

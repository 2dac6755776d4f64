// What a waiter may conclude before it sleeps, call by call.
#include <catch2/catch.hpp>

#include "rangelock/wait_queue.h"

using namespace sp3;
using rangelock::Blocker;
using rangelock::WaitQueue;

namespace {

struct Waiting : WaitQueue::Waiter {
  Waiting(WaitQueue& in, RangeOwner& by, Range wanted)
      : Waiter(by.core(), wanted, RangeMode::exclusive, true), queue(in) {
    queue.enter(*this);
  }
  ~Waiting() { queue.leave(*this, false); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  // After an attempt that met this one.
  bool may_sleep_behind(Range held) {
    return queue.set_blocker(*this, {held, RangeMode::exclusive});
  }
  [[nodiscard]] bool is_woken() const { return woken.load(std::memory_order_relaxed) != 0; }

  WaitQueue& queue;
};

constexpr Range kHeld{0, 10};
constexpr Range kElsewhere{0, 3};

// One that wants what is held, and one behind it that wants a part of that.
struct TwoWaiting {
  WaitQueue queue;
  RangeOwner owners[2];
  Waiting elder{queue, owners[0], kHeld};
  Waiting waiter{queue, owners[1], {5, 15}};
};

}  // namespace

TEST_CASE("a waiter sleeps once it has tried again after it noted what blocks it") {
  WaitQueue queue;
  RangeOwner owner;
  Waiting waiter(queue, owner, {5, 15});
  CHECK_FALSE(waiter.may_sleep_behind(kHeld));
  CHECK(waiter.may_sleep_behind(kHeld));
  queue.released(kHeld);
  CHECK(waiter.is_woken());
  CHECK_FALSE(waiter.may_sleep_behind(kHeld));
}

// What it was passed over for is a waiter's range, which may be the very range that was unlocked.
TEST_CASE("a waiter that was passed over during its attempt tries again") {
  TwoWaiting two;
  CHECK_FALSE(two.elder.may_sleep_behind(kHeld));
  CHECK(two.elder.may_sleep_behind(kHeld));
  CHECK_FALSE(two.waiter.may_sleep_behind(kHeld));
  two.queue.released(kHeld);  // the waiter's second attempt has just met it
  CHECK(two.elder.is_woken());
  CHECK_FALSE(two.waiter.is_woken());
  CHECK_FALSE(two.waiter.may_sleep_behind(kHeld));
  CHECK(two.waiter.may_sleep_behind(kHeld));  // but not for ever
}

TEST_CASE("a waiter that was passed over is woken when the other has tried in vain") {
  TwoWaiting two;
  for (Waiting* one : {&two.elder, &two.waiter}) {
    CHECK_FALSE(one->may_sleep_behind(kHeld));
    CHECK(one->may_sleep_behind(kHeld));
  }
  two.queue.released(kHeld);
  CHECK_FALSE(two.waiter.is_woken());
  CHECK_FALSE(two.elder.may_sleep_behind(kElsewhere));
  CHECK(two.waiter.is_woken());
}

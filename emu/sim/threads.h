// Threads of the simulated machine: virtual cores. The interfaces are those of the standard
// library, as far as the runtime uses them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "emu/sim/machine.h"

namespace sp3::emu {

class Mutex {
 public:
  void lock() {
    sim::Machine& machine = sim::machine();
    machine.event(sim::Event::mutex, 0, machine.costs().mutex);
    while (held_) machine.block(this, 0);
    held_ = true;
    machine.synchronise(this);
  }
  bool try_lock() {
    sim::Machine& machine = sim::machine();
    machine.event(sim::Event::mutex, 1);
    machine.synchronise(this);
    return !std::exchange(held_, true);
  }
  void unlock() {
    held_ = false;
    sim::machine().wake(this);  // also a full fence
  }

 private:
  bool held_ = false;
};

struct SteadyClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SteadyClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept {
    return time_point(duration(static_cast<rep>(sim::machine().now())));
  }
};

class ConditionVariable {
 public:
  void notify_all() noexcept { sim::machine().wake(this); }
  // Wakes all: a wait may end for no reason, and looks again.
  void notify_one() noexcept { notify_all(); }

  template <class Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate done) {
    while (!done()) sleep(lock, 0);
  }
  void wait(std::unique_lock<Mutex>& lock) { sleep(lock, 0); }
  template <class Duration, class Predicate>
  bool wait_until(std::unique_lock<Mutex>& lock,
                  const std::chrono::time_point<SteadyClock, Duration>& until, Predicate done) {
    while (!done()) {
      if (SteadyClock::now() >= until) return false;
      const auto since_start =
          std::chrono::ceil<std::chrono::nanoseconds>(until.time_since_epoch());
      sleep(lock, static_cast<std::uint64_t>(since_start.count()));
    }
    return true;
  }
  template <class Rep, class Period, class Predicate>
  bool wait_for(std::unique_lock<Mutex>& lock, const std::chrono::duration<Rep, Period>& time,
                Predicate done) {
    return wait_until(lock, SteadyClock::now() + time, std::move(done));
  }

 private:
  // Nothing can happen between the unlock and the sleep: both come without an event in between.
  void sleep(std::unique_lock<Mutex>& lock, std::uint64_t deadline) {
    lock.unlock();
    sim::machine().block(this, deadline);
    lock.lock();
  }
};

class Thread {
 public:
  Thread() = default;
  explicit Thread(std::function<void()> body)
      : core_(sim::machine().spawn(std::move(body))), joinable_(true) {}
  Thread(Thread&& other) noexcept
      : core_(other.core_), joinable_(std::exchange(other.joinable_, false)) {}
  Thread& operator=(Thread&& other) noexcept {
    core_ = other.core_;
    joinable_ = std::exchange(other.joinable_, false);
    return *this;
  }

  [[nodiscard]] bool joinable() const noexcept { return joinable_; }
  void join() {
    sim::Machine& machine = sim::machine();
    while (!machine.has_ended(core_)) machine.block(machine.end_of(core_), 0);
    machine.synchronise(machine.end_of(core_));
    joinable_ = false;
  }

 private:
  sim::Machine::Core core_ = 0;
  bool joinable_ = false;
};

struct ThreadId {
  sim::Machine::Core core = ~sim::Machine::Core{0};
  friend bool operator==(ThreadId, ThreadId) = default;
};

inline ThreadId this_thread_id() noexcept { return {sim::machine().core()}; }
inline unsigned cores() noexcept { return sim::machine().advertised_cores(); }

}  // namespace sp3::emu

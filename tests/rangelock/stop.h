// Stop: how tests step in between two threads of a range lock (rangelock/hook.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <semaphore>
#include <thread>
#include <utility>

#include "rangelock/hook.h"

namespace sp3::tests {

// Stops one chosen thread at one chosen hook until it is told to go on. Counts how often each hook
// was reached, by whatever thread. One at a time.
class Stop {
 public:
  explicit Stop(rangelock::Hook at) {
    at_ = at;
    armed_ = false;
    for (auto& count : counts_) count = 0;
    rangelock::install_hook(&Stop::reached);
  }
  ~Stop() { rangelock::install_hook(nullptr); }
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;

  // From the thread that is to stop.
  static void arm_me() {
    chosen_ = std::this_thread::get_id();
    armed_ = true;
  }
  static void wait_until_stopped() { stopped_.acquire(); }
  static void go_on() { resumed_.release(); }
  // Until it is there, where it stops again.
  static void go_on_to(rangelock::Hook at) {
    at_ = at;
    armed_ = true;
    resumed_.release();
    wait_until_stopped();
  }
  // The calling thread does that, once, when it gets there next. Whatever it is about to do must
  // then not be in the way of what it does meanwhile: another owner's work, for one.
  static void when_i_get_to(rangelock::Hook at, std::function<void()> act) {
    act_at_ = at;
    act_ = std::move(act);
  }
  static std::uint64_t count(rangelock::Hook at) { return counts_[static_cast<std::size_t>(at)]; }

 private:
  static void reached(rangelock::Hook at) {
    counts_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
    if (act_ && at == act_at_) std::exchange(act_, nullptr)();
    if (at != at_ || !armed_.load() || chosen_.load() != std::this_thread::get_id()) return;
    armed_ = false;
    stopped_.release();
    resumed_.acquire();
  }
  static inline rangelock::Hook at_{};
  static inline thread_local rangelock::Hook act_at_{};
  static inline thread_local std::function<void()> act_;
  static inline std::atomic<bool> armed_{false};
  static inline std::atomic<std::thread::id> chosen_{};
  static inline std::binary_semaphore stopped_{0}, resumed_{0};
  static inline std::array<std::atomic<std::uint64_t>, 16> counts_{};
};

}  // namespace sp3::tests

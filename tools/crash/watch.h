// Watch: tells a victim that hangs from one whose time has come.
//
//   expecting --runs()--> living --its time is over--> kill
//       |                    |                          ^
//       |                    +--but a thread is silent--+--> lingering --all have spoken--> kill
//       |                                                        |
//       +----------------- nothing for the deadline -------------+--> hangs
//
// Where a victim is to do something and end, or to be killed when it has done it, silence for the
// whole deadline says that it hangs. Where it runs transactions and is to be killed at a random
// moment, that moment comes much sooner. So a victim of which a thread has acknowledged nothing for
// kSilence by then lives on until that thread has; the moments of most kills stay random.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

namespace sp3::tools::crash {

class Watch {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr auto kSilence = std::chrono::milliseconds(50);

  Watch(Clock::duration deadline, Clock::time_point now);

  // Transactions run from now on, in so many threads, and it is to be killed after `lifetime`.
  void runs(unsigned threads, Clock::duration lifetime, Clock::time_point now);
  // It has said anything.
  void heard(Clock::time_point now);
  // Thread `thread` has said that it did something.
  void heard_of(unsigned thread, Clock::time_point now);
  // It has done what it was to do and may be killed.
  void is_done(Clock::time_point now);
  void killed(Clock::time_point now);

  enum class Verdict { wait, kill, hangs };
  // When to ask for a verdict unless something is heard before.
  [[nodiscard]] Clock::time_point until() const { return until_; }
  // REQUIRES: now >= until().
  Verdict judge(Clock::time_point now);
  // The threads that are waited for while it lingers.
  [[nodiscard]] std::vector<unsigned> silent_threads() const;

 private:
  enum class State { expecting, living, lingering, done };

  const Clock::duration deadline_;
  State state_ = State::expecting;
  Clock::time_point until_;
  Clock::time_point silent_since_;        // while it lingers: heard of before is silent
  std::vector<Clock::time_point> heard_;  // by thread: when last
};

// "4 threads: 3 S in futex_do_wait, 1 R": what the kernel tells of a process.
std::string process_state(pid_t pid);

}  // namespace sp3::tools::crash

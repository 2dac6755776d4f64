// Threads, locks and timed waits, as the runtime uses them: those of the standard library, or those
// of the simulated machine, whose threads are virtual cores and whose time is virtual.
#pragma once

#ifdef SP3_SIMULATED

#include "emu/sim/threads.h"

#else

#include <chrono>
#include <concepts>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/no_signals.h"

namespace sp3::emu {

using Mutex = std::mutex;
using ConditionVariable = std::condition_variable;  // with std::unique_lock<Mutex>
using ThreadId = std::thread::id;
using SteadyClock = std::chrono::steady_clock;

// One of the library's: signals of the process are not for it.
class Thread : public std::thread {
 public:
  Thread() = default;
  template <std::invocable Body>
  explicit Thread(Body body) : std::thread(start(std::move(body))) {}

 private:
  template <class Body>
  static std::thread start(Body body) {
    const base::NoSignals blocked;
    return std::thread(std::move(body));
  }
};

inline ThreadId this_thread_id() noexcept { return std::this_thread::get_id(); }
// Of the machine; 0 if that cannot be told.
inline unsigned cores() noexcept { return std::thread::hardware_concurrency(); }

}  // namespace sp3::emu

#endif

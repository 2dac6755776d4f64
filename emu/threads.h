// Threads, locks and timed waits, as the runtime uses them: those of the standard library, or those
// of the simulated machine, whose threads are virtual cores and whose time is virtual.
#pragma once

#ifdef SP3_SIMULATED

#include "emu/sim/threads.h"

#else

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace sp3::emu {

using Mutex = std::mutex;
using ConditionVariable = std::condition_variable;  // with std::unique_lock<Mutex>
using Thread = std::thread;
using ThreadId = std::thread::id;
using SteadyClock = std::chrono::steady_clock;

inline ThreadId this_thread_id() noexcept { return std::this_thread::get_id(); }
// Of the machine; 0 if that cannot be told.
inline unsigned cores() noexcept { return std::thread::hardware_concurrency(); }

}  // namespace sp3::emu

#endif

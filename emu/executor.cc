// The only file that knows oneTBB, which does graph walks, with threads that are ours: its own end
// the process where one of them cannot be started. Of all that is parallel there are as many threads
// as can be had.
//
// One thread means the caller's: no worker is started and the order is fixed, which tests and small
// recoveries like.
#include "emu/executor.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <thread>
#include <vector>

#include <oneapi/tbb/parallel_for_each.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "base/no_signals.h"
#include "base/process.h"
#include "base/scope_exit.h"

namespace sp3::emu {

namespace tbb = oneapi::tbb;

namespace {

// oneTBB's locks, which may have been held, do not survive a fork: in a child of a process that has
// had an executor of several threads everything is done by the caller's.
bool may_have_several() noexcept {
  static std::atomic<base::Process> user{};
  const base::Process self = base::Process::current();
  base::Process found;
  // relaxed: a child has what its parent stored before it forked.
  return user.compare_exchange_strong(found, self, std::memory_order_relaxed) || found == self;
}

// Threads that help the caller; fewer than asked for where there is no memory for more, or the
// process may not have them.
template <class Work>
std::vector<std::jthread> start_helpers(std::size_t count, const Work& work) noexcept {
  std::vector<std::jthread> helpers;
  try {
    helpers.reserve(count);
    const base::NoSignals blocked;
    while (helpers.size() < count) helpers.emplace_back(work);
  } catch (const std::exception&) {
  }
  return helpers;
}

// Keeps one thread in an arena until it is let go: there it does what the others offer.
struct Stay {
  tbb::task_group group;
  tbb::task_handle held = group.defer([] {});  // what the group waits for, and nobody runs
};

}  // namespace

Executor::Executor(std::uint32_t threads) noexcept {
  if (threads == 1 || !may_have_several()) return;
  const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
  threads_ = threads == 0 ? cores : threads;
  at_once_ = std::min(threads_, cores);
}

void Executor::parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (threads_ == 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  const auto work = [&]() noexcept {
    try {
      // relaxed, here and below: what bodies share is theirs; joining orders the rest.
      for (;;) {
        const std::size_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= count) break;
        body(i);
      }
    } catch (...) {
      next.store(count, std::memory_order_relaxed);
      if (!failed.exchange(true, std::memory_order_relaxed)) error = std::current_exception();
    }
  };
  {
    const auto helpers = start_helpers(std::min<std::size_t>(threads_, count) - 1, work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

void Executor::parallel_feed(
    const std::uint32_t* initial, std::size_t count,
    const std::function<void(std::uint32_t item, const std::function<void(std::uint32_t)>& ready)>&
        body) {
  if (threads_ == 1) {
    std::deque<std::uint32_t> left(initial, initial + count);
    const std::function<void(std::uint32_t)> ready = [&left](std::uint32_t item) {
      left.push_back(item);
    };
    while (!left.empty()) {
      const std::uint32_t item = left.front();
      left.pop_front();
      body(item, ready);
    }
    return;
  }
  // All places are kept for threads that come by themselves, so oneTBB starts none.
  tbb::task_arena arena(static_cast<int>(threads_), threads_);
  std::deque<Stay> stays(threads_ - 1);
  std::atomic<std::size_t> taken{0};
  const auto helpers = start_helpers(stays.size(), [&]() noexcept {
    try {
      // relaxed: starting the thread orders the rest.
      Stay& stay = stays[taken.fetch_add(1, std::memory_order_relaxed)];
      arena.execute([&stay] { stay.group.wait(); });
    } catch (const std::exception&) {  // no memory: the others do it
    }
  });
  const base::ScopeExit let_go([&stays] {
    for (Stay& stay : stays) stay.held = {};
  });
  arena.execute([&] {
    tbb::parallel_for_each(initial, initial + count,
                           [&](std::uint32_t item, tbb::feeder<std::uint32_t>& feeder) {
                             body(item, [&feeder](std::uint32_t next) { feeder.add(next); });
                           });
  });
}

}  // namespace sp3::emu

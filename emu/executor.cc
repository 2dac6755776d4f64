// The only file that knows oneTBB, which does graph walks. What else is parallel has threads of its
// own, as many as can be had: oneTBB's wait for ever, or end the process, where one of them cannot
// be started or finds no memory.
//
// One thread means the caller's: no worker is started and the order is fixed, which tests and small
// recoveries like.
#include "emu/executor.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for_each.h>
#include <oneapi/tbb/task_arena.h>

#include "base/no_signals.h"
#include "base/process.h"

namespace sp3::emu {

namespace tbb = oneapi::tbb;

namespace {

// Neither oneTBB's workers nor its locks, which may have been held, survive a fork: in a child of a
// process that has had an executor of several threads everything is done by the caller's.
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

// Whether oneTBB may be asked for so many workers: where one of them cannot be started it ends the
// process. Twice as many are tried: threads count towards a limit for a moment after they were
// joined, and those tried here do when oneTBB starts its own.
bool can_have(std::size_t workers) noexcept {
  std::atomic<bool> all_started{false};
  // relaxed, twice: nothing else is handed over.
  const auto helpers = start_helpers(
      2 * workers, [&]() noexcept { all_started.wait(false, std::memory_order_relaxed); });
  all_started.store(true, std::memory_order_relaxed);
  all_started.notify_all();
  return helpers.size() == 2 * workers;
}

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
  if (threads_ == 1 || !can_have(threads_ - 1)) {
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
  // oneTBB starts no more workers than cores unless told so.
  std::optional<tbb::global_control> more_workers;
  if (threads_ > at_once_) {
    more_workers.emplace(tbb::global_control::max_allowed_parallelism, threads_);
  }
  // oneTBB keeps its workers, and each is started by the caller or by another of them.
  const base::NoSignals blocked;
  tbb::task_arena arena(static_cast<int>(threads_));
  arena.execute([&] {
    tbb::parallel_for_each(initial, initial + count,
                           [&](std::uint32_t item, tbb::feeder<std::uint32_t>& feeder) {
                             body(item, [&feeder](std::uint32_t next) { feeder.add(next); });
                           });
  });
}

}  // namespace sp3::emu

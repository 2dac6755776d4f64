// The only file that knows oneTBB. One thread means the caller's: no worker is started and the
// order is fixed, which tests and small recoveries like.
#include "emu/executor.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>

#include <unistd.h>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_for_each.h>
#include <oneapi/tbb/task_arena.h>

namespace sp3::emu {

namespace tbb = oneapi::tbb;

namespace {

// Neither oneTBB's workers nor its locks, which may have been held, survive a fork: in a child of a
// process that has used it everything is done by the caller's thread.
bool may_use_tbb() noexcept {
  static std::atomic<pid_t> user{0};
  const pid_t self = ::getpid();
  pid_t found = 0;
  // relaxed: a child has what its parent stored before it forked.
  return user.compare_exchange_strong(found, self, std::memory_order_relaxed) || found == self;
}

}  // namespace

struct Executor::Impl {
  explicit Impl(std::uint32_t wanted) {
    if (wanted == 1 || !may_use_tbb()) return;
    cores = static_cast<std::uint32_t>(tbb::info::default_concurrency());
    threads = wanted == 0 ? cores : wanted;
    // oneTBB starts no more workers than cores unless told so.
    if (threads > cores) {
      more_workers = std::make_unique<tbb::global_control>(
          tbb::global_control::max_allowed_parallelism, threads);
    }
    arena.initialize(static_cast<int>(threads));
  }

  std::uint32_t cores = 1;
  std::uint32_t threads = 1;
  std::unique_ptr<tbb::global_control> more_workers;
  tbb::task_arena arena;
};

Executor::Executor(std::uint32_t threads) : impl_(new Impl(threads)) {}
Executor::~Executor() { delete impl_; }

std::uint32_t Executor::threads() const noexcept { return impl_->threads; }
std::uint32_t Executor::at_once() const noexcept { return std::min(impl_->threads, impl_->cores); }

void Executor::parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (impl_->threads == 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  impl_->arena.execute(
      [&] { tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) { body(i); }); });
}

void Executor::parallel_feed(
    const std::uint32_t* initial, std::size_t count,
    const std::function<void(std::uint32_t item, const std::function<void(std::uint32_t)>& ready)>&
        body) {
  if (impl_->threads == 1) {
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
  impl_->arena.execute([&] {
    tbb::parallel_for_each(initial, initial + count,
                           [&](std::uint32_t item, tbb::feeder<std::uint32_t>& feeder) {
                             body(item, [&feeder](std::uint32_t next) { feeder.add(next); });
                           });
  });
}

}  // namespace sp3::emu

#include "base/fence.h"

#include <chrono>
#include <thread>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/no_cancellation.h"

namespace sp3::base {

namespace {

long membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0); }

// A process must register before it may use the command; registering twice is harmless.
bool register_membarrier() noexcept {
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

}  // namespace

// Both are there before the program's own global objects, one of which may be a pool with threads:
// to change what light fences are under them would be a fence too few for a moment.
namespace detail {
[[gnu::init_priority(201)]] std::atomic<bool> has_membarrier = register_membarrier();
}

namespace {
// No light fence is under way that is none. From the start where the kernel has no membarrier.
[[gnu::init_priority(202)]] std::atomic<bool> all_are_full =
    !detail::has_membarrier.load(std::memory_order_relaxed);
}  // namespace

void heavy_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (all_are_full.load(std::memory_order_acquire)) return;
  if (detail::has_membarrier.load(std::memory_order_relaxed) &&
      membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) [[likely]] {
    return;
  }
  // Light fences are full ones from now on. For those that are past theirs, we wait as no store
  // buffer does: what they have stored before is visible then, or, if they have lost their core in
  // the middle, was made so by that.
  detail::has_membarrier.store(false, std::memory_order_seq_cst);
  const NoCancellation whole;
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  all_are_full.store(true, std::memory_order_release);
}

}  // namespace sp3::base

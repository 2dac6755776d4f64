#include "base/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sp3::base {

namespace {

long membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0); }

// A process must register before it may use the command; registering twice is harmless.
bool register_membarrier() noexcept {
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

}  // namespace

namespace detail {
const bool has_membarrier = register_membarrier();
}

void heavy_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (detail::has_membarrier) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

}  // namespace sp3::base

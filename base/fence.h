// A pair of fences of unequal cost, for two threads that each store and then load what the other
// stored (store buffering), when one side is frequent and the other rare.
//
// The frequent side calls light_fence() between its store and its load; the rare side heavy_fence()
// between its own. Then at least one of them sees the other's store. On Linux the light fence only
// holds back the compiler, and the heavy one is membarrier(), which makes every running thread of
// the process execute a full fence. Where the kernel has no membarrier both are full fences, and
// from the moment on at which it refuses one, as after a seccomp filter.
#pragma once

#include <atomic>

#ifdef SP3_SIMULATED
#include "base/memory_model.h"
#endif

namespace sp3::base {

#ifdef SP3_SIMULATED

// There is no compiler to hold back: accesses are told one after the other.
inline void light_fence() noexcept {}
inline void heavy_fence(Site site = Site::current()) noexcept {
  if (memory_model == nullptr) return;
  memory_model->fence_everywhere(
      memory_model->before_access(AtomicAccess::fence, std::memory_order_seq_cst, site));
}

#else

namespace detail {
extern std::atomic<bool> has_membarrier;
}

inline void light_fence() noexcept {
  // relaxed: heavy_fence() waits for those who have not seen it change.
  if (detail::has_membarrier.load(std::memory_order_relaxed)) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

void heavy_fence() noexcept;

#endif

}  // namespace sp3::base

// A pair of fences of unequal cost, for two threads that each store and then load what the other
// stored (store buffering), when one side is frequent and the other rare.
//
// The frequent side calls light_fence() between its store and its load; the rare side heavy_fence()
// between its own. Then at least one of them sees the other's store. On Linux the light fence only
// holds back the compiler, and the heavy one is membarrier(), which makes every running thread of
// the process execute a full fence. Where the kernel has no membarrier both are full fences.
#pragma once

#include <atomic>

namespace sp3::base {

namespace detail {
extern const bool has_membarrier;
}

inline void light_fence() noexcept {
  if (detail::has_membarrier) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

void heavy_fence() noexcept;

}  // namespace sp3::base

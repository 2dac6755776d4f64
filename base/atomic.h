// Atomic, AtomicRef, atomic_fence: those of the standard library. In simulated builds a machine may
// ask to be told of each access, and may answer a load with what was there before, where the memory
// orders allow that (base/memory_model.h).
//
// Whatever cores share is one of these. Counts that nothing depends on are not (base/counter.h).
#pragma once

#include <atomic>

#ifdef SP3_SIMULATED
#include "base/simulated_atomic.h"
#else

namespace sp3::base {

template <class T>
using Atomic = std::atomic<T>;
template <class T>
using AtomicRef = std::atomic_ref<T>;

inline void atomic_fence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }

}  // namespace sp3::base

#endif

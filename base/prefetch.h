// Asking for cache lines ahead of their use. Hints: wrong ones cost time only, and no address
// faults.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sp3::base {

// The line as a writer wants it, taken from whichever core has it. Spelled out, because
// __builtin_prefetch(p, 1) asks for a reader's copy unless the compiler may assume that the machine
// has this instruction; machines that do not have it ignore it.
inline void prefetch_for_write(const void* at) noexcept {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
}

// The line that lies `bytes` behind `at`, or before it; also where no object reaches.
inline void prefetch_beside(const void* at, std::ptrdiff_t bytes) noexcept {
  const auto line = reinterpret_cast<std::uintptr_t>(at) + static_cast<std::uintptr_t>(bytes);
  asm volatile("prefetcht0 (%0)" : : "r"(line));
}

}  // namespace sp3::base

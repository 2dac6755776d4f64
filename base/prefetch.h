// Asking for cache lines ahead of their use. Hints: wrong ones cost time only, and no address
// faults.
#pragma once

namespace sp3::base {

// The line as a writer wants it, taken from whichever core has it. Spelled out, because
// __builtin_prefetch(p, 1) asks for a reader's copy unless the compiler may assume that the machine
// has this instruction; machines that do not have it ignore it.
inline void prefetch_for_write(const void* at) noexcept {
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
}

}  // namespace sp3::base

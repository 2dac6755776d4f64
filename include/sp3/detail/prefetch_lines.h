// Asking for an object's cache lines ahead of their use: a hint, no address faults.
#pragma once

#include <algorithm>
#include <cstddef>

namespace sp3::detail {

inline constexpr std::size_t prefetched_bytes = 512;  // the hardware follows a longer run by itself

// The lines come from memory at the same time, but for those behind the first prefetched_bytes.
inline void prefetch_lines(const std::byte* object, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < std::min(bytes, prefetched_bytes); at += kLine) {
    __builtin_prefetch(object + at);
  }
}

}  // namespace sp3::detail

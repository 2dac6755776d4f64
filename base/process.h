// Process: which process something belongs to, so that a child made by fork() leaves alone what it
// has inherited.
//
// The process ID alone does not tell: a child has its parent's if both are the first of their PID
// namespaces, or once the numbers have come round. So forks are counted. The ID tells of children
// made past the C library's fork().
//
// Thread safety: all members by any thread.
#pragma once

#include <atomic>

#include <sys/types.h>

namespace sp3::base {

namespace detail {
inline std::atomic<int> forks{0};  // between the first process and this one
}

// Differs between a process and its children.
inline int fork_generation() noexcept {
  // relaxed: a child begins with one thread
  return detail::forks.load(std::memory_order_relaxed);
}

// Aligned as a word, or clang calls libatomic to exchange one.
struct alignas(8) Process {
  pid_t id = 0;  // 0: none
  int forks = 0;

  [[nodiscard]] static Process current() noexcept;
  [[nodiscard]] bool is_this() const noexcept { return *this == current(); }

  friend bool operator==(const Process&, const Process&) = default;
};

}  // namespace sp3::base

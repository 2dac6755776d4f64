#include "emu/futex.h"

#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sp3::emu {
namespace {

std::uint32_t* word_of(base::Atomic<std::uint32_t>& word) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return reinterpret_cast<std::uint32_t*>(&word);
}

timespec to_timespec(std::chrono::steady_clock::time_point time) {
  // steady_clock is CLOCK_MONOTONIC, the clock that the call means.
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  return {static_cast<time_t>(seconds.count()),
          static_cast<long>(std::chrono::nanoseconds(since - seconds).count())};
}

}  // namespace

void sleep_while(base::Atomic<std::uint32_t>& word, std::uint32_t value,
                 const std::chrono::steady_clock::time_point* deadline) noexcept {
  timespec until{};
  if (deadline != nullptr) until = to_timespec(*deadline);
  ::syscall(SYS_futex, word_of(word), FUTEX_WAIT_BITSET_PRIVATE, value,
            deadline != nullptr ? &until : nullptr, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void wake_sleepers(base::Atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, word_of(word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace sp3::emu

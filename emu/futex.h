// Sleeping on a word, as by futex(2): natively that call, on the simulated machine a core that is
// blocked.
//
// Thread safety: any thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/atomic.h"

namespace sp3::emu {

// Returns once the word is not `value`, or was woken, or the deadline has come (null: none), or for
// no reason at all. The look at the word and falling asleep are one step for whoever changes the
// word and then wakes it.
void sleep_while(base::Atomic<std::uint32_t>& word, std::uint32_t value,
                 const std::chrono::steady_clock::time_point* deadline) noexcept;
void wake_sleepers(base::Atomic<std::uint32_t>& word) noexcept;

}  // namespace sp3::emu

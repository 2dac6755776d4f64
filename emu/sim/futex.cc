#include "emu/futex.h"

#include "base/assert.h"
#include "emu/sim/machine.h"

namespace sp3::emu {

void sleep_while(base::Atomic<std::uint32_t>& word, std::uint32_t value,
                 const std::chrono::steady_clock::time_point* deadline) noexcept {
  // Simulated time is not that of the clock.
  const bool waits_for_ever = deadline == nullptr;
  SP3_CHECK(waits_for_ever);
  // An exchange, since the kernel finds the newest. No event comes between it and the sleep.
  if (word.fetch_add(0, std::memory_order_seq_cst) == value) sim::machine().block(&word, 0);
}

void wake_sleepers(base::Atomic<std::uint32_t>& word) noexcept { sim::machine().wake(&word); }

}  // namespace sp3::emu

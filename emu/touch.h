// Touches: which cache lines the protocol shares between cores, told to the simulated machine.
//
// The simulator charges a core for a line that another core wrote last, and may let other cores go
// on at each touch. Lines have names instead of addresses, so that where the heap puts things
// changes nothing. Natively a touch is nothing at all.
#pragma once

#include <cstdint>

#include "emu/line.h"

#ifdef SP3_SIMULATED
#include "emu/sim/machine.h"
#endif

namespace sp3::emu {

// `bytes` from the start of the line on.
inline void touch([[maybe_unused]] Line line, [[maybe_unused]] std::uint64_t which,
                  [[maybe_unused]] Access access,
                  [[maybe_unused]] std::uint64_t bytes = 1) noexcept {
#ifdef SP3_SIMULATED
  sim::machine().touch(line, which, access, bytes);
#endif
}

// Between two steps of a lock-free access another core may act: natively nothing.
inline void interleave() noexcept {
#ifdef SP3_SIMULATED
  sim::machine().event(sim::Event::interleave);
#endif
}

}  // namespace sp3::emu

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

// Asks for the lines ahead of their use, as a writer or as a reader. No event: nothing depends on
// it but time. Where a version is its entry says, so the version of an entry that was just asked
// for or checked comes after that.
inline void prefetch([[maybe_unused]] Line line, [[maybe_unused]] std::uint64_t which,
                     [[maybe_unused]] bool as_writer,
                     [[maybe_unused]] std::uint64_t bytes = 1) noexcept {
#ifdef SP3_SIMULATED
  sim::machine().prefetch(line, which, as_writer, bytes);
#endif
}

// Between two steps of a lock-free access another core may act: natively nothing.
inline void interleave() noexcept {
#ifdef SP3_SIMULATED
  sim::machine().event(sim::Event::interleave);
#endif
}

}  // namespace sp3::emu

// Touches: which cache lines the protocol shares between cores, told to the simulated machine.
//
// The simulator charges a core for a line that another core wrote last, and may let other cores go
// on at each touch. Lines have names instead of addresses, so that where the heap puts things
// changes nothing. Natively a touch is nothing at all.
#pragma once

#include <cstdint>

#ifdef SP3_SIMULATED
#include "emu/sim/machine.h"
#endif

namespace sp3::emu {

enum class Line : std::uint8_t {
  entry,              // of the object at this offset
  version,            // the object's newest version in DRAM, or its home
  session_committed,  // SessionShared's lines, by session
  session_sealed,
  session_persisted,
  session_announced,
  session_ring,
  epoch_slot,    // of a participant
  epoch_global,  // one
  floor,         // one
  gate,          // one
  word,          // a transactional memory that sp3 is compared with: its words, by line,
  word_lock,     // its locks, by line,
  word_clock,    // and its clock: one
};

enum class Access : std::uint8_t { load, store, exchange };

// `bytes` from the start of the line on.
inline void touch([[maybe_unused]] Line line, [[maybe_unused]] std::uint64_t which,
                  [[maybe_unused]] Access access,
                  [[maybe_unused]] std::uint64_t bytes = 1) noexcept {
#ifdef SP3_SIMULATED
  sim::machine().touch(static_cast<std::uint8_t>(line), which, static_cast<std::uint8_t>(access),
                       bytes);
#endif
}

// Between two steps of a lock-free access another core may act: natively nothing.
inline void interleave() noexcept {
#ifdef SP3_SIMULATED
  sim::machine().event(sim::Event::interleave);
#endif
}

}  // namespace sp3::emu

// The names of the cache lines that cores share, and what is done to them (emu/touch.h).
#pragma once

#include <cstdint>

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

enum class Access : std::uint8_t {
  load,      // nothing goes on before the value is there
  check,     // a load whose outcome is foreseen: what follows goes on without it, speculatively
  follow,    // a load through a pointer that the last check has read
  store,     // goes on at once; the line is there before the next exchange or fence is done
  exchange,  // a locked instruction: waits for all that was begun before
};

}  // namespace sp3::emu

// Costs: what the events of a simulated machine take, in nanoseconds of virtual time.
//
// The defaults are round numbers of the right size. Measured ones are a property of a machine and
// come with the results that used them.
#pragma once

#include <cstdint>

namespace sp3::emu::sim {

struct Costs {
  std::uint32_t step = 5;        // a protocol step's own work
  std::uint32_t pause = 40;      // one turn of a waiting loop
  std::uint32_t hit = 2;         // a touched line that the core has
  std::uint32_t transfer = 60;   // one that another core wrote last
  std::uint32_t exchange = 10;   // a locked instruction, beyond its line
  std::uint32_t store_line = 4;  // storing a line of persistent memory
  std::uint32_t flush_line = 40;
  std::uint32_t fence = 30;
  std::uint32_t mutex = 20;
  std::uint32_t wake = 2000;          // from waking a sleeping thread until it runs
  std::uint32_t file_write = 3000;    // a system call that writes
  std::uint32_t file_sync = 100'000;  // fdatasync
};

}  // namespace sp3::emu::sim

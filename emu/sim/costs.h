// Costs: what the events of a simulated machine take, in picoseconds of virtual time.
//
// The defaults are round numbers of the right size. Measured ones are a property of a machine: `sp3
// micro --calibrate` and `sp3 sim --calibrate` make a file of them, and results carry what they
// used.
//
// The first group is the hardware's, measured by itself. The second is what the runtime's own
// instructions take beside it; each is charged at one step of the protocol.
#pragma once

#include <cstdint>

namespace sp3::emu::sim {

struct Costs {
  // Cache lines. A core's caches are simulated (caches.h); what is not in them is fetched.
  std::uint32_t hit = 1000;           // in the first-level cache
  std::uint32_t near = 5000;          // in the second
  std::uint32_t shared = 30'000;      // in the one that all cores share
  std::uint32_t shared_next = 4000;   // each further line of one object
  std::uint32_t shared_mib = 16'000;  // no cost: what that one holds, in thousandths of a MiB
  std::uint32_t fetch = 60'000;       // from memory
  std::uint32_t fetch_next = 8000;    // each further line of one object
  std::uint32_t transfer = 60'000;    // one that another core wrote last, or that it must give up
  std::uint32_t transfer_next = 10'000;  // each further line of one object that does
  std::uint32_t exchange = 10'000;       // a locked instruction, beyond its line
  // Persistent memory.
  std::uint32_t store_line = 4000;
  std::uint32_t flush_line = 40'000;
  std::uint32_t fence = 30'000;
  // Waiting.
  std::uint32_t clock = 10'000;   // reading the counter
  std::uint32_t pause = 40'000;   // one turn of a waiting loop
  std::uint32_t yield = 400'000;  // offering the core to others, where there are none
  std::uint32_t mutex = 20'000;
  std::uint32_t wake = 2'000'000;         // from waking a sleeping thread until it runs
  std::uint32_t file_write = 3'000'000;   // a system call that writes
  std::uint32_t file_sync = 100'000'000;  // fdatasync

  std::uint32_t step = 5000;        // any step that has no cost of its own
  std::uint32_t operation = 0;      // what a benchmark does between two transactions
  std::uint32_t begin = 10'000;     // of a transaction that reads or writes
  std::uint32_t read = 10'000;      // of an object
  std::uint32_t write = 20'000;     // of an object: copied, locked and published
  std::uint32_t commit = 20'000;    // of a transaction that writes
  std::uint32_t log = 40'000;       // of a record: composed and sealed
  std::uint32_t log_line = 10'000;  // of each line of a record
};

// By name, for files and command lines.
struct NamedCost {
  const char* name;
  std::uint32_t Costs::*value;
};
inline constexpr NamedCost kNamedCosts[] = {
    {"hit", &Costs::hit},
    {"near", &Costs::near},
    {"shared", &Costs::shared},
    {"shared_next", &Costs::shared_next},
    {"shared_mib", &Costs::shared_mib},
    {"fetch", &Costs::fetch},
    {"fetch_next", &Costs::fetch_next},
    {"transfer", &Costs::transfer},
    {"transfer_next", &Costs::transfer_next},
    {"exchange", &Costs::exchange},
    {"store_line", &Costs::store_line},
    {"flush_line", &Costs::flush_line},
    {"fence", &Costs::fence},
    {"clock", &Costs::clock},
    {"pause", &Costs::pause},
    {"yield", &Costs::yield},
    {"mutex", &Costs::mutex},
    {"wake", &Costs::wake},
    {"file_write", &Costs::file_write},
    {"file_sync", &Costs::file_sync},
    {"step", &Costs::step},
    {"operation", &Costs::operation},
    {"begin", &Costs::begin},
    {"read", &Costs::read},
    {"write", &Costs::write},
    {"commit", &Costs::commit},
    {"log", &Costs::log},
    {"log_line", &Costs::log_line},
};
static_assert(sizeof(Costs) == sizeof(kNamedCosts) / sizeof(NamedCost) * sizeof(std::uint32_t),
              "every cost has a name");

}  // namespace sp3::emu::sim

// Case: one simulated run, all of it following from a seed.
#pragma once

#include <cstdint>
#include <string>

#include <sp3/options.h>

#include "emu/sim/machine.h"
#include "sim/structure.h"

namespace sp3::sim {

inline constexpr std::uint64_t kPoolBytes = std::uint64_t{96} << 10;
inline constexpr std::uint64_t kStructurePoolBytes = std::uint64_t{160} << 10;
// A record may make several nodes of a deep structure.
inline constexpr std::uint64_t kDeepLog = std::uint64_t{32} << 10;
// Without its log: room for eight slabs, where cells of all kinds and the rest may want nine.
inline constexpr std::uint64_t kTightPoolBytes = std::uint64_t{48} << 10;
inline constexpr const char* kPoolName = "pool";

struct Case {
  std::uint64_t seed = 1;
  emu::sim::Schedule schedule = emu::sim::Schedule::random;
  bool clocks_agree = true;
  bool slow_clocks = false;  // events take no time to speak of: clocks that are apart stay apart
  Options options;
  int cores = 2;
  int transactions = 4;      // of each core
  bool async = false;        // some of them
  bool checkpoints = false;  // asked for by cores, now and then
  bool boxes = false;        // some transactions on boxes alone
  bool blind = false;        // some writes without a read before
  bool reopens = false;      // sessions are closed and opened between transactions
  bool churn = false;        // objects are replaced, never updated, by kinds of all sizes
  bool keeps = false;        // pointers to the boxes' cells are kept and read without the boxes
  bool dawdles = false;      // bodies take their time between reading and the end
  bool late = false;         // each core opens its session when the one before has come half way
  int moving_sessions = 0;   // that go from core to core; 0: each core has its own
  bool bulky = false;        // two cells are larger than a log segment; see use_bulk()
  bool tight = false;        // a pool of a few slabs, which is full now and then
  bool handles = false;      // of a ranged structure are kept from one transaction to the next
  bool tiny = false;         // base::TinyLimits
  bool stalls = false;       // a core loses its turn for long, now and then
  bool weak_memory = false;  // cores do not see one order of all stores
  bool restless = false;     // programs that go on have other options; see change_options()
  StructureKind structure = StructureKind::none;  // changed by the same transactions
  // The flush, fence, write or sync, counted from the first, that fails; 0: none. Then it alone, or
  // all after it too.
  std::uint64_t failing_io = 0;
  bool fails_once = false;

  [[nodiscard]] emu::sim::Config machine() const;
  // Slabs of bulky cases are twice as large.
  [[nodiscard]] std::uint64_t pool_bytes() const {
    if (tight) return kTightPoolBytes + options.geometry.log_size;
    return (structure == StructureKind::none ? kPoolBytes : kStructurePoolBytes) * (bulky ? 2 : 1);
  }
  // Records take runs of up to three segments, in a log of four or eight, so that recycled runs are
  // soon begun anew, in part by others.
  void use_bulk();
  // Whatever may change from one opening of a pool to the next, chosen by the seed. The disk, too:
  // one that was sound may fail early on, while the pool is recovered perhaps.
  void change_options();
  [[nodiscard]] std::string describe() const;
};

// Everything chosen by the seed. From kFirstRichSeed on a seed may also choose a structure and a
// failing disk; from kFirstVariedSeed on it chooses among all that a case can have. Those below
// mean what they meant before there were such things.
inline constexpr std::uint64_t kFirstRichSeed = 1'000'000;
inline constexpr std::uint64_t kFirstVariedSeed = 2'000'000;
Case case_of(std::uint64_t seed);

}  // namespace sp3::sim

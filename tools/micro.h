// Microbenchmarks: each a ratio or a time measured in one run, so that it says something anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emu/clock.h"
#include "workloads/system.h"

namespace sp3::tools {

struct MicroRow {
  std::string name;
  double value = 0;
  std::string unit;
  std::string note;                       // what it is, or what the aim is
  workloads::SystemOptions options = {};  // what it was measured with
};

// Of `count` calls of the body. Whoever wants none of them moved or merged says so in the body.
template <class Body>
double ns_each(std::uint64_t count, Body&& body) {
  const std::uint64_t start = emu::ticks();
  for (std::uint64_t i = 0; i < count; ++i) body();
  return emu::nanoseconds_from_ticks(emu::ticks() - start) / static_cast<double>(count);
}

struct OpenArguments {
  std::uint64_t objects = 5'000'000;
  std::uint64_t pool_size = std::uint64_t{4} << 30;
};

// SPS beside a loop that only writes and flushes as many lines, alternating.
std::vector<MicroRow> measure_floor_ratio(const workloads::SystemOptions& options, double seconds,
                                          unsigned repeat);

// A transaction that does nothing, and one that reads one cached object.
std::vector<MicroRow> measure_small(const workloads::SystemOptions& options, unsigned repeat,
                                    bool empty, bool read);

inline constexpr std::uint64_t kCheckpointPool = std::uint64_t{6} << 30;  // bytes

// The longest transactions of two writing threads, with checkpoints and without: pools of
// kCheckpointPool, each with a checkpoint interval of its own, one after the other.
std::vector<MicroRow> measure_checkpoint(const workloads::SystemOptions& options, double seconds,
                                         unsigned repeat);

// Opening a cleanly closed pool: time to open, to the first transaction, to 100000 random reads.
// One pool, opened `repeat` times.
std::vector<MicroRow> measure_open(const workloads::SystemOptions& options,
                                   const OpenArguments& arguments, unsigned repeat);

// In MiB, the memory that `chase_N` of measure_costs() goes through in random order: from what no
// core's own caches hold to what no shared cache has room for.
inline constexpr unsigned kChaseMiB[] = {6, 12, 16, 24, 32, 48, 96};

// What the simulated machine's costs follow from: hardware and the runtime's instructions.
std::vector<MicroRow> measure_costs(const workloads::SystemOptions& options, unsigned repeat);

}  // namespace sp3::tools

// One run of a workload on virtual cores, in virtual time.
#pragma once

#include <cstdint>

#include "emu/sim/costs.h"
#include "tools/bench_rows.h"

namespace sp3::tools {

struct TimedRun {
  workloads::RunResult result;
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  double wall_seconds = 0;  // that simulating warm-up and run took
};

// These options on the simulated machine, whose only pool it is. Throws UsageError.
workloads::SystemOptions simulated_options(StoreArguments store);

// Runs the cell, cell.run.threads virtual cores, on a machine of its own. The same cell and costs
// give the same run. `check`: the structure's invariants at the end. Throws std::runtime_error.
TimedRun run_timed(const Cell& cell, const workloads::Zipf& zipf, const emu::sim::Costs& costs,
                   bool check);

// What the simulated memory of such a pool flushes with, never automatic. Throws
// std::runtime_error.
FlushInstruction flush_instruction(const Options& options);

}  // namespace sp3::tools

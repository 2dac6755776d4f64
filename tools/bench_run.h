// One run of one cell, as `sp3 bench`, `sp3 compare` and `sp3 micro` do it.
#pragma once

#include <string>
#include <vector>

#include "tools/bench_rows.h"
#include "tools/core_distance.h"
#include "workloads/floor.h"

namespace sp3::tools {

// The floor of the memory that a store with these options would have, in a file beside it.
workloads::FloorResult measure_floor(const workloads::SystemOptions& options, unsigned lines,
                                     double seconds);

// What one flushed line and one fence cost on this memory, emulated latency included.
FlushCost measure_flush(const workloads::SystemOptions& options);

// Makes the store, with all of its log mapped, fills it, runs, and removes it. With `check`, throws
// std::runtime_error if the structure or its contents are wrong afterwards. `probes` names what
// counts beside it. Of several threads again, until it was at such a distance (run_at_distance()).
workloads::RunResult run_once(const Cell& cell, const workloads::Zipf& zipf, bool check,
                              const DistanceLimits& distance = {},
                              const std::vector<std::string>& probes = {});

}  // namespace sp3::tools

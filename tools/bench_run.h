// One run of one cell, as `sp3 bench` and `sp3 compare` do it.
#pragma once

#include "tools/bench_rows.h"

namespace sp3::tools {

// What one flushed line and one fence cost on this memory, emulated latency included.
FlushCost measure_flush(const workloads::SystemOptions& options);

// Makes the store, fills it, runs, and removes it. With `check`, throws std::runtime_error if the
// structure or its contents are wrong afterwards.
workloads::RunResult run_once(const Cell& cell, const workloads::Zipf& zipf, bool check);

}  // namespace sp3::tools

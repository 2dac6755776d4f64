// Writes a log as programs do, by running transactions, and dies without closing the pool.
#pragma once

#include <cstdint>

#include "workloads/system.h"
#include "workloads/workload.h"

namespace sp3::tools::recovery {

// What is written, and when the end comes: at the first of the two.
struct LogPlan {
  workloads::WorkloadSpec spec;
  workloads::SystemOptions system;  // memory, latency, durability, path
  unsigned writers = 2;             // threads, each with a session
  std::uint64_t most_bytes = 0;     // of log, since the last checkpoint
  unsigned milliseconds = 0;        // since the last checkpoint; 0: however long it takes

  // The pool's log and the whole pool, in bytes: `most_bytes` never fill the log, so that nothing
  // but its death ends a run.
  [[nodiscard]] std::uint64_t log_size() const;
  [[nodiscard]] std::uint64_t pool_size() const;
  [[nodiscard]] std::uint64_t segment_size() const;
};

struct WrittenLog {
  double seconds = 0;            // from the last checkpoint to the death
  std::uint64_t log_bytes = 0;   // as the sessions count them
  std::uint64_t operations = 0;  // acknowledged, or a few less
};

// Makes the pool at plan.system.path, fills it, checkpoints it, and runs transactions in a process
// that then kills itself: nothing is closed, and what was under way stays half done.
// Errors: std::runtime_error with what the process has met.
// REQUIRES: this process has no thread that holds a lock.
WrittenLog write_log(const LogPlan& plan);

}  // namespace sp3::tools::recovery

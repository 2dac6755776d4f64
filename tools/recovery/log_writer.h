// Writes a log as programs do, by running transactions, and dies without closing the pool.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/system.h"
#include "workloads/workload.h"

namespace sp3::tools::recovery_bench {

// What is written, and when the end comes: at the first of the two.
struct LogPlan {
  workloads::WorkloadSpec spec;
  workloads::SystemOptions system;  // memory, latency, durability, path
  unsigned writers = 2;             // threads, each with a session
  std::uint64_t most_bytes = 0;     // of log, since the last checkpoint; file memory: of its blocks
  unsigned milliseconds = 0;        // since the last checkpoint; 0: however long it takes

  // The pool's log and the whole pool, in bytes: `most_bytes` never fill the log, so that nothing
  // but its death ends a run.
  [[nodiscard]] std::uint64_t log_size() const;
  [[nodiscard]] std::uint64_t pool_size() const;
  [[nodiscard]] std::uint64_t segment_size() const;
  // An upper bound of what a transaction writes, in bytes.
  [[nodiscard]] std::uint64_t largest_record() const;
  // Transactions between a writer's looks at what others wrote: together no more than a segment, if
  // more than one.
  [[nodiscard]] unsigned batch() const;
};

struct WrittenLog {
  double seconds = 0;            // from the last checkpoint to the death
  std::uint64_t log_bytes = 0;   // as the sessions count them; file memory: with a block for each
  std::uint64_t operations = 0;  // acknowledged, or a few less
};

// Runs sp3 with these arguments and those that name a descriptor, and waits for what it says: they
// make it call live_and_die(). Errors: std::runtime_error with what it has met.
WrittenLog write_log(const std::vector<std::string>& arguments);

// Makes the pool at plan.system.path, fills it, checkpoints it, runs transactions, tells through
// the descriptor how far it came, and kills this process: nothing is closed, and what was under way
// stays half done.
[[noreturn]] void live_and_die(const LogPlan& plan, int descriptor);

}  // namespace sp3::tools::recovery_bench

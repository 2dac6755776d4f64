// One measured run of a range lock: which lock, what load, and what came of it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <sp3/range_lock.h>

#include "workloads/histogram.h"

namespace sp3::tools {

inline constexpr unsigned kLockBatch = 16;  // ranges that a thread holds at once in W2

enum class LockWorkload : std::uint8_t {
  w1,           // one random 1 KiB range: lock, memset, unlock
  w2,           // the same in batches of kLockBatch
  uncontended,  // one thread, lock and unlock only, while others' ranges are held
  height,       // w1 with towers up to a given height
  shared,       // w1 with a share of writers; the others lock shared and read
  overlap,      // w1 on fewer and fewer different ranges
};
const char* to_string(LockWorkload workload) noexcept;

struct LockRun {
  std::string lock;
  LockWorkload workload = LockWorkload::w1;
  unsigned threads = 1;
  double seconds = 0.5;
  std::uint64_t pairs = 0;      // of each thread, instead of a time; 0: a time
  std::uint64_t held = 0;       // ranges that others hold meanwhile (uncontended)
  unsigned writes = 100;        // per cent (shared)
  std::uint64_t slots = 65536;  // different ranges to choose from
  std::uint64_t seed = 1;
  RangeLockOptions options;

  [[nodiscard]] std::uint64_t space_bytes() const;
};

struct LockResult {
  double seconds = 0;
  std::uint64_t pairs = 0;
  std::uint64_t conflicts = 0;       // attempts that failed
  double fairness = 1;               // pairs of the luckiest thread per pair of the unluckiest
  double memory_per_held_bytes = 0;  // uncontended with ranges held; else 0
  double line_transfer_ns = 0;       // as of workloads::RunResult
  // Of every 16th range from its lock to its unlock; of W2 of every 16th batch, divided by its
  // ranges, as a pair is. Empty if pairs were counted instead of time.
  workloads::Histogram latency_ticks;

  [[nodiscard]] double pairs_per_s() const {
    return seconds > 0 ? static_cast<double>(pairs) / seconds : 0;
  }
};

// All names, in the order of tables.
const std::vector<std::string>& lock_names();
bool has_shared_mode(const std::string& lock);
// Whether it looks at options.buckets, and at options.max_height.
bool has_buckets(const std::string& lock);
bool has_towers(const std::string& lock);

// The array that W1 and its kin write to: 64 MiB, made once.
std::byte* lockbench_array();

// Thrown by run_lock() where `bare`, to which ranges of one bucket are one, cannot hold so many.
class CannotHold : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// REQUIRES: run.lock is one of lock_names(); the options are what it allows; W2 has kLockBatch
// ranges for each thread. Errors: the first of a thread, once all have ended; CannotHold.
LockResult run_lock(const LockRun& run);

// Counts instructions with valgrind, by running this program under it: per pair, for each of the
// runs, without what the loop costs. Throws std::runtime_error, also where there is no valgrind.
std::vector<double> count_instructions(const std::vector<LockRun>& runs);

}  // namespace sp3::tools

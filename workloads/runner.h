// Runs a workload on a system with some threads and measures it.
//
// All threads warm up, then start together; operations, counters and latencies from before the
// start are not in the result. A run ends after a time or a number of operations; asynchronous
// systems then make everything durable, and that is inside the measured time.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "workloads/histogram.h"
#include "workloads/system.h"
#include "workloads/workload.h"

namespace sp3::workloads {

// What a probe saw of one run.
struct ProbeReading {
  std::string probe;  // its name
  // Of the measured time; only what was counted.
  std::vector<std::pair<std::string, double>> counts;
  std::string note;  // what is not available and why, or what the counts do not hold; may be empty
};

// Something that counts beside a run, outside of the threads that are measured.
class Probe {
 public:
  Probe() = default;
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  virtual ~Probe() = default;

  // The measured time begins: all threads are there and stand still.
  virtual void start() = 0;
  // It has ended: the threads have. Of probes that started only, also if the run failed.
  virtual ProbeReading stop() = 0;
};

inline constexpr double kMostSeconds = 86400;  // of a run

struct RunOptions {
  unsigned threads = 1;
  double seconds = 1.0;
  std::uint64_t operations = 0;  // of all threads together; 0: run for `seconds`
  double warmup_seconds = 0.1;   // with `operations`: a tenth of them instead
  bool latency = true;           // reads the clock around every operation
  std::vector<Probe*> probes;    // not owned

  // Throws std::invalid_argument that names the member, what it allows and what it holds.
  void validate() const;
};

struct RunResult {
  double seconds = 0;            // from the common start to the end of the last thread
  std::uint64_t operations = 0;  // measured, acknowledged
  // Searches without a key, dequeues without a value, transfers refused, new-orders rolled back.
  std::uint64_t misses = 0;
  std::uint64_t new_orders = 0;  // of the operations; those rolled back are among them
  ClientCounters counters;       // all clients together
  BackgroundCounters background;
  Histogram latency_ticks;           // empty without RunOptions::latency
  std::vector<ProbeReading> probed;  // one of each probe
  bool clocks_agree = true;          // emu::clock_is_synchronised(), where it ran
  // What a cache line took from one of its cores to another, if whoever ran it has looked; else 0.
  double line_transfer_ns = 0;

  [[nodiscard]] double throughput() const;        // operations per second
  [[nodiscard]] double new_orders_per_s() const;  // without those rolled back
  [[nodiscard]] double abort_ratio() const;       // aborted attempts per commit
  [[nodiscard]] double fences_per_tx() const;     // per writing transaction; 0 if there was none
  [[nodiscard]] double lines_per_tx() const;
  [[nodiscard]] double latency_ns(double fraction) const;
  [[nodiscard]] double longest_ns() const;
  [[nodiscard]] double slower_per_s(double nanoseconds) const;  // operations that took longer
};

// REQUIRES: system was created and populated for the same spec; `zipf` is over spec.entries.
// Errors of a thread, or of starting one, are thrown once all have stopped, which they do at once.
// So is std::runtime_error if no operation was measured.
RunResult run_workload(System& system, const WorkloadSpec& spec, const Zipf& zipf,
                       const RunOptions& options);

// What to throw if a thread cannot be started after so many could.
std::runtime_error thread_not_started(unsigned started, unsigned wanted,
                                      const std::system_error& why);

}  // namespace sp3::workloads

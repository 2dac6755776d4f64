// PerfProbe: counters of the CPU and of the kernel, by perf_event_open(2).
#pragma once

#include <string>
#include <vector>

#include "workloads/runner.h"

namespace sp3::tools {

// Counts instructions, cycles, llc_misses, cpu_ns, page_faults and context_switches of the thread
// that makes it and of all threads started after that, while it runs. What this machine or this
// user may not count is left out, and the reading's note says why.
class PerfProbe final : public workloads::Probe {
 public:
  PerfProbe();
  ~PerfProbe() override;

  void start() override;
  workloads::ProbeReading stop() override;

 private:
  struct Counter {
    const char* name;
    int fd = -1;
    int error = 0;           // why there is none
    bool user_only = false;  // the kernel's share may not be counted
  };

  [[nodiscard]] std::string note() const;

  std::vector<Counter> counters_;
};

}  // namespace sp3::tools

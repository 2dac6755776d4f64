// The floor: what a durable transaction costs at least on this machine and memory.
//
// Writes as many fresh cache lines as a log record has, flushes them and fences once: nothing else.
// No system that makes each transaction durable with one fence can be faster with one thread.
#pragma once

#include <filesystem>

#include <sp3/options.h>

namespace sp3::workloads {

struct FloorResult {
  double writes_per_s = 0;
  double ns_per_write = 0;
  FlushInstruction flush = FlushInstruction::automatic;  // the one in use, never automatic
};

// Makes a scratch file of 32 MiB whose name starts with `beside`, measures for `seconds`, removes
// the file. The median of slices of that time, each with one write at least.
// Errors: as sp3::Pool::create.
FloorResult measure_floor(const std::filesystem::path& beside, MemoryKind memory,
                          const Latency& latency, FlushInstruction flush, unsigned lines,
                          double seconds);

}  // namespace sp3::workloads

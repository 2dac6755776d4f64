// What this process has used, CPU time and memory at its most, and what memory there is.
#pragma once

#include <cstdint>

#include "emu/threads.h"

namespace sp3::workloads {

// Seconds of CPU of all threads so far. On a machine that others use too, these mean more than the
// time of day. Thread safety: any.
double cpu_seconds();

// Bytes of memory that may be asked for before the machine has to swap or kill; the largest number
// there is where the system does not tell. Thread safety: any.
std::uint64_t available_memory();

// MemoryPeak watches this process's anonymous memory, every few milliseconds, from a thread of its
// own. Mapped files, which pools are, do not count.
//
// Thread safety: one thread.
class MemoryPeak {
 public:
  MemoryPeak();
  ~MemoryPeak();
  MemoryPeak(const MemoryPeak&) = delete;
  MemoryPeak& operator=(const MemoryPeak&) = delete;

  // The most so far, in bytes above what there was at the start; 0 where the system does not tell.
  [[nodiscard]] std::uint64_t bytes();

 private:
  void look();

  const std::uint64_t before_;
  emu::Mutex mutex_;
  emu::ConditionVariable changed_;
  std::uint64_t most_;
  bool ended_ = false;
  emu::Thread thread_;
};

}  // namespace sp3::workloads

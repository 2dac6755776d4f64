#include "emu/flush.h"

#include <cpuid.h>

namespace sp3::emu {
namespace {

struct CpuFlushes {
  bool clflushopt = false;
  bool clwb = false;
};

CpuFlushes detect() noexcept {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  CpuFlushes found;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    found.clflushopt = (b & (1U << 23)) != 0;
    found.clwb = (b & (1U << 24)) != 0;
  }
  return found;
}

const CpuFlushes& cpu() noexcept {
  static const CpuFlushes found = detect();
  return found;
}

}  // namespace

bool cpu_has(FlushInstruction instruction) noexcept {
  switch (instruction) {
    case FlushInstruction::clwb:
      return cpu().clwb;
    case FlushInstruction::clflushopt:
      return cpu().clflushopt;
    case FlushInstruction::automatic:
    case FlushInstruction::clflush:       // part of SSE2, as
    case FlushInstruction::non_temporal:  // streaming stores are: every x86-64 has both
    case FlushInstruction::none:
      return true;
  }
  return false;
}

FlushInstruction best_flush() noexcept {
  if (cpu().clwb) return FlushInstruction::clwb;
  if (cpu().clflushopt) return FlushInstruction::clflushopt;
  return FlushInstruction::clflush;
}

}  // namespace sp3::emu

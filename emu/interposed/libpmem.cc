#include "emu/interposed/libpmem.h"

#include <libpmem.h>

#include "emu/interposed/next_symbol.h"
#include "emu/latency.h"

namespace sp3::emu {

namespace {

// The functions of libpmem that ours stand in front of.
struct Real {
  decltype(&::pmem_flush) flush = next_symbol<decltype(::pmem_flush)>("pmem_flush");
  decltype(&::pmem_drain) drain = next_symbol<decltype(::pmem_drain)>("pmem_drain");
  decltype(&::pmem_msync) msync = next_symbol<decltype(::pmem_msync)>("pmem_msync");
  decltype(&::pmem_memcpy) memcpy = next_symbol<decltype(::pmem_memcpy)>("pmem_memcpy");
  decltype(&::pmem_memmove) memmove = next_symbol<decltype(::pmem_memmove)>("pmem_memmove");
  decltype(&::pmem_memset) memset = next_symbol<decltype(::pmem_memset)>("pmem_memset");
  decltype(&::pmem_is_pmem) is_pmem = next_symbol<decltype(::pmem_is_pmem)>("pmem_is_pmem");
};

const Real& real() noexcept {
  static const Real functions;
  return functions;
}

constinit LatencyTicks latency;
constinit thread_local FlushCounts counts;
constinit thread_local int assumed = 0;

void count_lines(const void* address, std::size_t bytes) noexcept {
  const std::uint64_t lines = lines_of(reinterpret_cast<std::uintptr_t>(address), bytes);
  counts.add_lines(lines);
  if (latency.charges_lines()) {
    for (std::uint64_t i = 0; i < lines; ++i) latency.charge_line();
  }
}

void flush(const void* address, std::size_t bytes) noexcept {
  real().flush(address, bytes);
  count_lines(address, bytes);
}

void drain() noexcept {
  real().drain();
  if (counts.pending_lines == 0) return;
  if (latency.charges_fences()) latency.charge_fence(counts.pending_lines);
  counts.fence();
}

// The copies take flags: which stores to use, and whether to flush and to drain. The real one does
// all but drain.
template <class Function, class Source>
void* copy(Function* function, void* to, Source from, std::size_t bytes, unsigned flags) noexcept {
  void* const result = function(to, from, bytes, flags | PMEM_F_MEM_NODRAIN);
  if ((flags & PMEM_F_MEM_NOFLUSH) != 0) return result;
  count_lines(to, bytes);
  if ((flags & PMEM_F_MEM_NODRAIN) == 0) drain();
  return result;
}

}  // namespace

const FlushCounts& libpmem_counts() noexcept { return counts; }

void set_libpmem_latency(const Latency& wanted) noexcept { latency = LatencyTicks(wanted); }

AssumePersistent::AssumePersistent() noexcept { ++assumed; }
AssumePersistent::~AssumePersistent() { --assumed; }

}  // namespace sp3::emu

// libpmem's own functions call one another through the same names and so come by here as well; the
// ones below that do two things do them themselves, so that nothing is counted twice.
extern "C" {

void pmem_flush(const void* addr, size_t len) { sp3::emu::flush(addr, len); }

void pmem_drain(void) { sp3::emu::drain(); }

void pmem_persist(const void* addr, size_t len) {
  sp3::emu::flush(addr, len);
  sp3::emu::drain();
}

int pmem_msync(const void* addr, size_t len) {
  const int result = sp3::emu::real().msync(addr, len);
  sp3::emu::count_lines(addr, len);
  sp3::emu::counts.fence();
  return result;
}

void* pmem_memcpy(void* pmemdest, const void* src, size_t len, unsigned flags) {
  return sp3::emu::copy(sp3::emu::real().memcpy, pmemdest, src, len, flags);
}

void* pmem_memmove(void* pmemdest, const void* src, size_t len, unsigned flags) {
  return sp3::emu::copy(sp3::emu::real().memmove, pmemdest, src, len, flags);
}

void* pmem_memset(void* pmemdest, int c, size_t len, unsigned flags) {
  return sp3::emu::copy(sp3::emu::real().memset, pmemdest, c, len, flags);
}

int pmem_is_pmem(const void* addr, size_t len) {
  return sp3::emu::assumed != 0 ? 1 : sp3::emu::real().is_pmem(addr, len);
}

}  // extern "C"

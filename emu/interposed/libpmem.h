// Between libpmem and the libraries that use it (libpmemobj): counts what they flush and fence, and
// adds the emulated latency, so that a program which relies on libpmem is measured as sp3 is.
//
// A program that links sp3_interposed_libpmem defines pmem_flush, pmem_drain, pmem_persist,
// pmem_msync, pmem_memcpy, pmem_memmove, pmem_memset and pmem_is_pmem itself. The dynamic linker
// binds every library's calls to these; they do their work by libpmem's own functions of the same
// names. sp3 calls none of them, so all that is counted is the other library's.
//
// Thread safety: counts are per thread. set_libpmem_latency while no other thread is inside
// libpmem.
#pragma once

#include <sp3/options.h>

#include "emu/memory.h"

namespace sp3::emu {

// What this thread had libpmem flush since it started. A line counts each time it is flushed, by a
// flush or by a copy that flushes; a fence counts if lines were flushed since the one before, the
// rule that sp3's own counts follow. An msync counts its lines and one fence.
const FlushCounts& libpmem_counts() noexcept;

// What every flushed line or fence costs more from now on, in the whole process.
void set_libpmem_latency(const Latency& latency) noexcept;

// While one lives, libpmem says on this thread that all memory is persistent: a library that opens
// a file in DRAM flushes cache lines, as it would with persistent memory, instead of calling msync.
class AssumePersistent {
 public:
  AssumePersistent() noexcept;
  ~AssumePersistent();
  AssumePersistent(const AssumePersistent&) = delete;
  AssumePersistent& operator=(const AssumePersistent&) = delete;
};

}  // namespace sp3::emu

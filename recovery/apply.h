// Applying one write entry to its home.
//
// Thread safety: any thread; writes of one slot must be ordered by the caller.
// REQUIRES everywhere: SlabPlan::check() found the write good, and bitmaps are loaded.
#pragma once

#include "emu/memory.h"
#include "log/record_reader.h"
#include "recovery/slab_plan.h"

namespace sp3::recovery {

// Asks for the first lines of a write entry, and for what apply_write stores to.
inline void ask_for_log(const std::byte* at) {
  __builtin_prefetch(at);
  __builtin_prefetch(at + base::kCacheLine);
}
inline void ask_for_home(const emu::Memory& memory, const log::WriteView& write) {
  constexpr std::uint64_t kMost = 512;  // of a larger object the hardware fetches the rest in time
  const std::uint64_t bytes = write.payload.size() < kMost ? write.payload.size() : kMost;
  for (std::uint64_t i = 0; i < bytes; i += base::kCacheLine) memory.prefetch_store(write.slot + i);
}

// Stores the new bytes and notes what is allocated.
void apply_write(emu::Memory& memory, SlabPlan& plan, const log::WriteView& write) noexcept;

// Flushes what apply_write stored.
void flush_write(emu::Memory& memory, const log::WriteView& write,
                 emu::FlushCounts& counts) noexcept;

}  // namespace sp3::recovery

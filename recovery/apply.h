// Applying one write entry to its home.
//
// Thread safety: any thread; writes of one slot must be ordered by the caller.
// REQUIRES everywhere: SlabPlan::check() found the write good, and bitmaps are loaded.
#pragma once

#include "emu/memory.h"
#include "log/record_reader.h"
#include "recovery/slab_plan.h"

namespace sp3::recovery {

// Stores the new bytes and notes what is allocated.
void apply_write(emu::Memory& memory, SlabPlan& plan, const log::WriteView& write) noexcept;

// Flushes what apply_write stored.
void flush_write(emu::Memory& memory, const log::WriteView& write,
                 emu::FlushCounts& counts) noexcept;

}  // namespace sp3::recovery

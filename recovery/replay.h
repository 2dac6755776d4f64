// The two ways to replay. Both bring the homes to the same bytes and the plan to the same bitmaps:
// those that applying all kept records one by one in stamp order would give.
//
// Only the order of writes to one object matters for that, and of those only what later ones leave
// (later_writes.h). In both, the stores are flushed and fenced when the function returns ok.
// Errors: io_error as a status; std::bad_alloc, after which the next opening starts over.
#pragma once

#include <cstdint>
#include <functional>

#include "emu/executor.h"
#include "emu/memory.h"
#include "recovery/preparation.h"
#include "recovery/slab_plan.h"

namespace sp3::recovery {

struct ReplayContext {
  emu::Memory& memory;
  SlabPlan& plan;
  const Selection& selection;
  const Preparation& preparation;
  emu::Executor& executor;
  // How many writes are done, of all in the log, whether they show in the end or not; called by one
  // thread at a time.
  std::function<void(std::uint64_t done)> progress;
};

// Where the time went, in ticks.
struct ReplayTimes {
  std::uint64_t order = 0;
  std::uint64_t replay = 0;
  std::uint64_t flush = 0;
};

// Maps the pages of slabs that are written to all over, many at a time: a fault on each first store
// costs several times as much. Both strategies start with it.
void populate_homes(const ReplayContext& context);

// Each shard of the objects by one thread, which goes through its writes by their stamps.
emu::IoStatus replay_by_stamp(const ReplayContext& context, ReplayTimes& times);

// Each record when its predecessors are done, as the dependency DAG says.
// REQUIRES: fewer than 2^32 records, writes and dependencies together.
emu::IoStatus replay_by_dag(const ReplayContext& context, ReplayTimes& times);

}  // namespace sp3::recovery

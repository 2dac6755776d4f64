#include <algorithm>

#include "recovery/replay.h"

namespace sp3::recovery {
namespace {

// Mapping a page among many costs a fraction of a fault, so it pays when about a quarter of a
// slab's pages would be touched.
constexpr std::uint32_t kWritesWorth = 4;
constexpr std::uint32_t kSlabsPerTask = 16;

}  // namespace

void populate_homes(const ReplayContext& context) {
  const SlabPlan& plan = context.plan;
  const pool::Layout& layout = plan.layout();
  const std::size_t tasks = (plan.size() + kSlabsPerTask - 1) / kSlabsPerTask;
  context.executor.parallel_for(tasks, [&](std::size_t task) {
    const auto begin = static_cast<std::uint32_t>(task) * kSlabsPerTask;
    const std::uint32_t end = std::min(begin + kSlabsPerTask, plan.size());
    for (std::uint32_t slab = begin; slab < end; ++slab) {
      if (plan.writes(slab) * kWritesWorth < plan.pages_of_slab()) continue;
      context.memory.populate(layout.slab_offset(slab), layout.slab_size);
    }
  });
}

}  // namespace sp3::recovery

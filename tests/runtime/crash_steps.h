// The steps at which the tests of the runtime kill a process.
#pragma once

#include <vector>

#include "emu/step.h"

namespace sp3::test {

// Of commit and checkpoint.
inline const std::vector<emu::Step>& running_steps() {
  using emu::Step;
  static const std::vector<Step> steps{Step::entry_read,
                                       Step::epoch_pin,
                                       Step::commit_reserve,
                                       Step::commit_lock,
                                       Step::commit_announce,
                                       Step::commit_stamp,
                                       Step::commit_validate,
                                       Step::commit_publish,
                                       Step::commit_seal,
                                       Step::log_store,
                                       Step::log_flush,
                                       Step::log_fence,
                                       Step::commit_persisted,
                                       Step::commit_wait,
                                       Step::commit_committed,
                                       Step::checkpoint_floor,
                                       Step::checkpoint_collect,
                                       Step::checkpoint_capture,
                                       Step::checkpoint_home,
                                       Step::checkpoint_metadata_a,
                                       Step::checkpoint_superblock_a,
                                       Step::checkpoint_metadata_b,
                                       Step::checkpoint_superblock_b,
                                       Step::checkpoint_swing,
                                       Step::checkpoint_recycle};
  return steps;
}

inline const std::vector<emu::Step>& recovery_steps() {
  using emu::Step;
  static const std::vector<Step> steps{Step::recovery_scanned,    Step::recovery_log_flushed,
                                       Step::recovery_replay,     Step::recovery_homes_flushed,
                                       Step::recovery_metadata_a, Step::recovery_superblock_a,
                                       Step::recovery_metadata_b, Step::recovery_superblock_b};
  return steps;
}

}  // namespace sp3::test

// Steps: the named instants of the protocol at which another core could act or power could fail.
//
// Protocol code calls step() before each. Natively that is one predictable test of a flag; armed
// (tests and `sp3 crash-test`), the process kills itself with SIGKILL at the n-th time a step is
// reached. A simulated build makes every step a scheduling and crash point.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#ifdef SP3_SIMULATED
#include "emu/sim/machine.h"
#endif

namespace sp3::emu {

enum class Step : std::uint8_t {
  none = 0,
  // Reading and writing in a transaction.
  entry_read,
  epoch_pin,
  // The commit protocol (runtime/commit.cc).
  commit_reserve,
  commit_lock,
  commit_announce,
  commit_stamp,
  commit_validate,
  commit_publish,  // before each published entry
  commit_seal,
  log_store,
  log_flush,
  log_fence,
  commit_persisted,
  commit_wait,
  commit_committed,
  // Checkpoint (runtime/checkpoint.cc).
  checkpoint_floor,
  checkpoint_collect,
  checkpoint_capture,
  checkpoint_home,
  checkpoint_metadata_a,
  checkpoint_superblock_a,
  checkpoint_metadata_b,
  checkpoint_superblock_b,
  checkpoint_swing,
  checkpoint_recycle,
  // Recovery (recovery/).
  recovery_scanned,
  recovery_log_flushed,
  recovery_replay,
  recovery_homes_flushed,
  recovery_metadata_a,
  recovery_superblock_a,
  recovery_metadata_b,
  recovery_superblock_b,
  // Life of a pool (pool/).
  pool_create,
  pool_open,
  pool_close,
  count_,
};

// "commit_publish" and so on; "" for a value out of range.
std::string_view step_name(Step step) noexcept;

// Kills the process when `step` is reached for the `countdown`-th time from now (1: the next time).
// Any thread may reach it. Step::none disarms.
void arm_kill(Step step, std::uint64_t countdown) noexcept;

namespace detail {
inline std::atomic<std::uint8_t> armed_step{0};
void armed_step_reached() noexcept;  // counts down, kills at zero
}  // namespace detail

inline void step(Step at) noexcept {
#ifdef SP3_SIMULATED
  sim::machine().step(static_cast<std::uint8_t>(at));
#else
  // relaxed: arming happens before the run or at a random moment; either is a good test.
  if (detail::armed_step.load(std::memory_order_relaxed) == static_cast<std::uint8_t>(at))
      [[unlikely]] {
    detail::armed_step_reached();
  }
#endif
}

// The same for code that must not call a function. False: this is one for step(), and none yet.
inline bool try_step(Step at) noexcept {
#ifdef SP3_SIMULATED
  step(at);
  return true;
#else
  return detail::armed_step.load(std::memory_order_relaxed) != static_cast<std::uint8_t>(at);
#endif
}

}  // namespace sp3::emu

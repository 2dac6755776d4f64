#include "emu/step.h"

#include <array>
#include <cstddef>

#include <unistd.h>
#include <csignal>

namespace sp3::emu {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Step::count_)> kNames = {
    "none",
    "entry_read",
    "epoch_pin",
    "commit_reserve",
    "commit_lock",
    "commit_announce",
    "commit_stamp",
    "commit_validate",
    "commit_publish",
    "commit_seal",
    "log_store",
    "log_flush",
    "log_fence",
    "commit_persisted",
    "commit_wait",
    "commit_committed",
    "checkpoint_floor",
    "checkpoint_collect",
    "checkpoint_capture",
    "checkpoint_home",
    "checkpoint_metadata_a",
    "checkpoint_superblock_a",
    "checkpoint_metadata_b",
    "checkpoint_superblock_b",
    "checkpoint_swing",
    "checkpoint_recycle",
    "recovery_scanned",
    "recovery_log_flushed",
    "recovery_replay",
    "recovery_homes_flushed",
    "recovery_metadata_a",
    "recovery_superblock_a",
    "recovery_metadata_b",
    "recovery_superblock_b",
    "pool_create",
    "pool_open",
    "pool_close",
};
// A step added to the enum without a name here would leave the last entry empty.
static_assert(!kNames.back().empty());

std::atomic<std::uint64_t> reaches_left{0};

}  // namespace

std::string_view step_name(Step step) noexcept {
  const auto index = static_cast<std::size_t>(step);
  return index < kNames.size() ? kNames[index] : std::string_view{};
}

void arm_kill(Step step, std::uint64_t countdown) noexcept {
  // Disarmed while the countdown changes. (1) release pairs with (2): who sees the step sees its
  // countdown.
  detail::armed_step.store(0, std::memory_order_relaxed);
  reaches_left.store(countdown == 0 ? 1 : countdown, std::memory_order_relaxed);
  detail::armed_step.store(static_cast<std::uint8_t>(step), std::memory_order_release);
}

namespace detail {

void armed_step_reached() noexcept {
  // (2) acquire pairs with (1). Zero: step(Step::none) while nothing is armed.
  if (armed_step.load(std::memory_order_acquire) == 0) return;
  // relaxed: exactly one thread draws the last count; nothing else is read.
  if (reaches_left.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  (void)kill(getpid(), SIGKILL);
  for (;;) (void)pause();  // the signal may take a moment; nothing may happen in it
}

}  // namespace detail
}  // namespace sp3::emu

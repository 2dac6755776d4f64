// Mutants: faults that a simulated run can switch on in the runtime's own code, one at a time, to
// show that the simulator's checks find them.
//
// At the place of each fault the code asks mutant(). Natively the answer is a constant: nothing is
// left of the question. sim/mutants.h says what each mutant undoes and why it matters;
// docs/MUTANTS.md what finds it.
//
// Thread safety: simulated code has one OS thread.
#pragma once

#include <cstdint>

namespace sp3::base {

enum class Mutant : std::uint8_t {
  none,
  // Commit: waiting and depending (runtime/commit.cc, persister.cc, session_core.cc).
  committed_when_persisted,
  read_only_does_not_wait,
  own_reads_not_waited_for,
  exception_does_not_wait,
  dependencies_tracked_after_unlock,
  read_dependencies_left_out,
  write_dependencies_left_out,
  slot_reused_without_dependency,
  // Commit: stamps and validation.
  stamp_not_above_predecessors,
  stamp_not_above_floor,
  validation_ignores_versions,
  validation_ignores_locks,
  validation_trusts_own_locks,
  read_and_locked_unvalidated,
  lock_taken_on_any_version,
  // A session that is alone (runtime/company.h).
  lone_read_ignores_arrivals,
  lone_commit_ignores_arrivals,
  arrival_does_not_wait,
  lone_commit_ignores_carriers,
  carriers_do_not_wait,
  // Commit: persisting.
  helper_persists_before_fence,
  helper_trusts_streamed_flush,
  started_flush_is_forgotten,
  full_block_is_appended_to,
  log_block_not_locked,
  helper_flushes_unpinned,
  persisted_raised_before_lsn,
  withdrawn_before_publish,
  record_vouches_for_itself,
  watermark_above_durable,
  sync_joins_one_under_way,
  // Commit: telling.
  ticket_does_not_wait,
  session_flush_does_not_wait,
  // Reading.
  reads_miss_own_writes,
  reads_not_compared,
  publishers_not_counted,
  // Ranged objects (runtime/ranged.cc, commit.cc).
  patch_completed_as_seen,
  patch_logs_first_run_only,
  range_released_before_lock,
  // Reclamation.
  replaced_version_retired_as_seen,
  epoch_advances_past_readers,
  pinned_epoch_not_read_again,
  versions_freed_two_epochs_early,
  // Checkpoint.
  checkpoint_floor_not_stored,
  checkpoint_heads_not_stored,
  checkpoint_floor_not_awaited,
  floor_settled_before_awaited,
  checkpoint_lists_sessions_early,
  checkpoint_copies_uncommitted,
  checkpoint_writes_under_readers,
  checkpoint_skips_overwritten,
  checkpoint_swings_newer_versions,
  checkpoint_zeroes_stamps,
  checkpoint_writes_one_superblock,
  run_recycled_above_floor,
  slab_freed_above_floor,
  // Recovery.
  recovery_replays_not_closed,
  recovery_ignores_generation,
  recovery_ignores_checksum,
  recovery_ignores_header_checksum,
  recovery_ignores_lsn,
  recovery_hides_unread_headers,
  recovery_replays_unordered,
  recovery_takes_changes_for_values,
  recovery_allocates_as_first,
  recovery_dag_without_writers,
  recovery_dag_streams_all,
  recovery_applies_unflushed_log,
  recovery_trusts_equal_superblocks,
  recovery_does_not_settle_superblocks,
  opening_does_not_settle_superblocks,
  recovery_overwrites_current_copy,
  recovery_does_not_mend,
  recovery_trusts_mended_metadata,
  opening_does_not_mend,
  // A flush, fence or sync that fails is forgotten.
  failed_sync_is_forgotten,
  failed_checkpoint_fence_is_forgotten,
  failed_recovery_fence_is_forgotten,
  // Each flush and fence left out.
  no_flush_superblock_a,
  no_flush_superblock_b,
  no_flush_slab_bitmap,
  no_flush_slab_record,
  no_flush_own_record,
  no_flush_sealed_items,
  no_flush_items_before_gap,
  no_flush_by_helper,
  no_fence_own_record,
  no_fence_sealed_items,
  no_flush_home,
  no_fence_of_carriers,
  no_fence_checkpoint_metadata_a,
  no_fence_checkpoint_superblock_a,
  no_fence_checkpoint_metadata_b,
  no_fence_checkpoint_superblock_b,
  no_flush_found_log,
  no_fence_found_log,
  no_flush_replayed_object,
  no_flush_replayed_words,
  no_flush_replayed_last_words,
  no_flush_dirty_lines,
  no_fence_replay_by_stamp,
  no_fence_replay_by_dag,
  no_flush_found_superblocks,
  no_fence_found_superblocks,
  no_flush_mended_metadata,
  no_fence_mended_metadata,
  no_fence_recovered_metadata_first,
  no_fence_recovered_superblock_first,
  no_fence_recovered_metadata_second,
  no_fence_recovered_superblock_second,
  count_,
};

#ifdef SP3_SIMULATED

namespace detail {
inline Mutant switched_on = Mutant::none;
}

// Whether this fault is switched on.
inline bool mutant(Mutant fault) noexcept { return detail::switched_on == fault; }
// From now on this fault alone.
inline void switch_on(Mutant fault) noexcept { detail::switched_on = fault; }

#else

constexpr bool mutant(Mutant /*fault*/) noexcept { return false; }

#endif

}  // namespace sp3::base

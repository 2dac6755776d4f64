// One row for each mutant; the enumeration's order is checked as it is compiled.
#include "sim/mutants.h"

#include <array>
#include <cstddef>

namespace sp3::sim {
namespace {

using base::Mutant;

constexpr std::size_t kMutants = static_cast<std::size_t>(Mutant::count_) - 1;

// clang-format off
constexpr std::array<MutantInfo, kMutants> kTable = {{
  {Mutant::committed_when_persisted, "committed_when_persisted",
   "a persisted record counts as committed, whatever its predecessors", "step 5"},
  {Mutant::read_only_does_not_wait, "read_only_does_not_wait",
   "a transaction that only read returns at once", "step 5"},
  {Mutant::own_reads_not_waited_for, "own_reads_not_waited_for",
   "a transaction that only read its session's own asynchronous work returns at once", "step 5"},
  {Mutant::exception_does_not_wait, "exception_does_not_wait",
   "an exception leaves run() before what the body read is committed", "step 5"},
  {Mutant::dependencies_tracked_after_unlock, "dependencies_tracked_after_unlock",
   "predecessors are taken from what the entries say after publish", "step 1"},
  {Mutant::read_dependencies_left_out, "read_dependencies_left_out",
   "what was read and not written is no predecessor", "step 1"},
  {Mutant::write_dependencies_left_out, "write_dependencies_left_out",
   "what was overwritten is no predecessor", "step 1"},
  {Mutant::slot_reused_without_dependency, "slot_reused_without_dependency",
   "a new object does not depend on the one destroyed in its slot", "step 1"},
  {Mutant::stamp_not_above_predecessors, "stamp_not_above_predecessors",
   "the stamp is the clock's, however large those of the predecessors", "step 1"},
  {Mutant::stamp_not_above_floor, "stamp_not_above_floor",
   "the stamp is taken without a look at the checkpoint's floor", "step 1"},
  {Mutant::validation_ignores_versions, "validation_ignores_versions",
   "validation asks for locks only", "step 2"},
  {Mutant::validation_ignores_locks, "validation_ignores_locks",
   "validation asks for versions only", "step 2"},
  {Mutant::validation_trusts_own_locks, "validation_trusts_own_locks",
   "what this transaction has locked is valid whatever its version", "step 2"},
  {Mutant::read_and_locked_unvalidated, "read_and_locked_unvalidated",
   "the same, and a private copy is not compared with what was read before", "step 2"},
  {Mutant::lock_taken_on_any_version, "lock_taken_on_any_version",
   "the lock is taken whatever version the private copy was made of", "step 1"},
  {Mutant::helper_persists_before_fence, "helper_persists_before_fence",
   "persisted is raised before the fence of whoever flushes sealed items", "P1"},
  {Mutant::helper_trusts_streamed_flush, "helper_trusts_streamed_flush",
   "a helper persists records that their owner streamed", "P1"},
  {Mutant::started_flush_is_forgotten, "started_flush_is_forgotten",
   "a flush that was begun, and that a helper finished, stays begun", "P1"},
  {Mutant::full_block_is_appended_to, "full_block_is_appended_to",
   "a block that is being written out is appended to", "log blocks"},
  {Mutant::replaced_version_retired_as_seen, "replaced_version_retired_as_seen",
   "publish retires the version that was read, not the one it replaces", "reclamation"},
  {Mutant::epoch_advances_past_readers, "epoch_advances_past_readers",
   "the epoch advances whoever is pinned", "reclamation"},
  {Mutant::versions_freed_two_epochs_early, "versions_freed_two_epochs_early",
   "what is retired is freed in the same epoch", "reclamation"},
  {Mutant::checkpoint_floor_not_stored, "checkpoint_floor_not_stored",
   "the superblock keeps its old floor", "checkpoint"},
  {Mutant::checkpoint_heads_not_stored, "checkpoint_heads_not_stored",
   "the superblock keeps its old heads", "checkpoint"},
  {Mutant::checkpoint_floor_not_awaited, "checkpoint_floor_not_awaited",
   "transactions below the floor are not waited for", "checkpoint"},
  {Mutant::checkpoint_lists_sessions_early, "checkpoint_lists_sessions_early",
   "sessions are listed before the floor is published", "checkpoint"},
  {Mutant::checkpoint_copies_uncommitted, "checkpoint_copies_uncommitted",
   "versions go home before they are committed", "checkpoint"},
  {Mutant::checkpoint_writes_under_readers, "checkpoint_writes_under_readers",
   "homes are overwritten without a grace period", "checkpoint"},
  {Mutant::checkpoint_skips_overwritten, "checkpoint_skips_overwritten",
   "an object whose newest version is above the floor counts as home", "checkpoint"},
  {Mutant::checkpoint_swings_newer_versions, "checkpoint_swings_newer_versions",
   "an entry swings home whatever version it has by now", "checkpoint"},
  {Mutant::checkpoint_zeroes_stamps, "checkpoint_zeroes_stamps",
   "an entry that swings home loses its stamp", "checkpoint"},
  {Mutant::checkpoint_writes_one_superblock, "checkpoint_writes_one_superblock",
   "the log is recycled with superblock A alone", "P5"},
  {Mutant::slab_freed_above_floor, "slab_freed_above_floor",
   "an empty slab changes its type though records above the floor name it", "checkpoint"},
  {Mutant::recovery_replays_not_closed, "recovery_replays_not_closed",
   "records are replayed though predecessors are missing", "cut"},
  {Mutant::recovery_ignores_generation, "recovery_ignores_generation",
   "records carry no generation", "scan"},
  {Mutant::recovery_ignores_checksum, "recovery_ignores_checksum",
   "a record's checksum is not compared", "scan"},
  {Mutant::recovery_ignores_header_checksum, "recovery_ignores_header_checksum",
   "a segment header's checksum is not compared", "scan"},
  {Mutant::recovery_ignores_lsn, "recovery_ignores_lsn",
   "a record may have any LSN", "scan"},
  {Mutant::recovery_replays_unordered, "recovery_replays_unordered",
   "the merge of the sessions' logs does not look at stamps", "replay"},
  {Mutant::recovery_dag_without_writers, "recovery_dag_without_writers",
   "replay by DAG without the edges between writers of an object", "replay"},
  {Mutant::recovery_applies_unflushed_log, "recovery_applies_unflushed_log",
   "the log that was found is not made durable", "P6"},
  {Mutant::recovery_trusts_equal_superblocks, "recovery_trusts_equal_superblocks",
   "equal superblocks count as equal metadata", "P8"},
  {Mutant::recovery_does_not_settle_superblocks, "recovery_does_not_settle_superblocks",
   "the superblocks that were found are not made durable", "P12"},
  {Mutant::no_flush_pool_directory, "no_flush_pool_directory",
   "flush of the slab directory of a new pool", "create"},
  {Mutant::no_flush_superblock_a, "no_flush_superblock_a",
   "flush of superblock A", "P3, P9, P11"},
  {Mutant::no_flush_superblock_b, "no_flush_superblock_b",
   "flush of superblock B", "P5, P9, P11"},
  {Mutant::no_flush_slab_bitmap, "no_flush_slab_bitmap",
   "flush of a slab's bitmap", "P2, P4, P8, P10"},
  {Mutant::no_flush_slab_record, "no_flush_slab_record",
   "flush of a slab's directory record", "P2, P4, P8, P10"},
  {Mutant::no_fence_pool_created, "no_fence_pool_created",
   "fence of a new pool's metadata", "create"},
  {Mutant::no_flush_own_record, "no_flush_own_record",
   "flush of the record just sealed", "P1"},
  {Mutant::no_flush_sealed_items, "no_flush_sealed_items",
   "flush of sealed records, by owner or helper", "P1"},
  {Mutant::no_fence_own_record, "no_fence_own_record",
   "fence of the record just sealed", "P1"},
  {Mutant::no_fence_sealed_items, "no_fence_sealed_items",
   "fence of sealed records", "P1"},
  {Mutant::no_flush_home, "no_flush_home",
   "flush of a home by the checkpoint", "P2"},
  {Mutant::no_fence_checkpoint_metadata_a, "no_fence_checkpoint_metadata_a",
   "fence of homes and metadata A", "P2"},
  {Mutant::no_fence_checkpoint_superblock_a, "no_fence_checkpoint_superblock_a",
   "fence of superblock A", "P3"},
  {Mutant::no_fence_checkpoint_metadata_b, "no_fence_checkpoint_metadata_b",
   "fence of metadata B", "P4"},
  {Mutant::no_fence_checkpoint_superblock_b, "no_fence_checkpoint_superblock_b",
   "fence of superblock B", "P5"},
  {Mutant::no_flush_found_log, "no_flush_found_log",
   "flush of the log that was found", "P6"},
  {Mutant::no_fence_found_log, "no_fence_found_log",
   "fence of the log that was found", "P6"},
  {Mutant::no_flush_replayed_object, "no_flush_replayed_object",
   "flush of an object that replay stored whole", "P7"},
  {Mutant::no_flush_replayed_words, "no_flush_replayed_words",
   "flush of changed words that replay stored, but for the last", "P7"},
  {Mutant::no_flush_replayed_last_words, "no_flush_replayed_last_words",
   "flush of the last changed words that replay stored", "P7"},
  {Mutant::no_fence_replay_by_stamp, "no_fence_replay_by_stamp",
   "fence at the end of a shard's replay", "P7"},
  {Mutant::no_fence_replay_by_dag, "no_fence_replay_by_dag",
   "fence of a shard after replay along the DAG", "P7"},
  {Mutant::no_flush_found_superblocks, "no_flush_found_superblocks",
   "flush of the superblocks that were found", "P12"},
  {Mutant::no_fence_found_superblocks, "no_fence_found_superblocks",
   "fence of the superblocks that were found", "P12"},
  {Mutant::no_fence_recovered_metadata_first, "no_fence_recovered_metadata_first",
   "fence of the metadata of the copy that is not current", "P8"},
  {Mutant::no_fence_recovered_superblock_first, "no_fence_recovered_superblock_first",
   "fence of its superblock", "P9"},
  {Mutant::no_fence_recovered_metadata_second, "no_fence_recovered_metadata_second",
   "fence of the metadata of the other copy", "P10"},
  {Mutant::no_fence_recovered_superblock_second, "no_fence_recovered_superblock_second",
   "fence of its superblock", "P11"},
}};
// clang-format on

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].mutant) != i + 1) return false;
  }
  return true;
}
static_assert(is_in_order());

}  // namespace

std::span<const MutantInfo> all_mutants() noexcept { return kTable; }

const MutantInfo& info_of(Mutant mutant) noexcept {
  return kTable[static_cast<std::size_t>(mutant) - 1];
}

}  // namespace sp3::sim

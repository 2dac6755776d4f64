// The commit protocol: one function that reads as the paper's steps, and the steps.
//
//   0  reserve log space          no waiting and no failing after step 3
//   1  lock, track, stamp         predecessors and a number larger than all of theirs
//   2  validate                   everything read is still current and in nobody else's hands
//   3  publish                    the new versions become visible; locks are released
//   4  persist                    the record becomes durable: one flush of its lines, one fence
//   5  wait                       until every predecessor is committed; then so are we
//
// CommitPolicy: `conservative` does 4 before 3; `ideal` skips locks and validation; `volatile_only`
// skips 0, 4 and 5. docs/COMMIT_PROTOCOL.md argues why each step is where it is.
#include <algorithm>
#include <mutex>
#include <numeric>

#include <sp3/error.h>

#include "base/mutant.h"
#include "base/plain_access.h"
#include "base/replace.h"
#include "emu/spin.h"
#include "emu/spin_lock.h"
#include "emu/step.h"
#include "emu/touch.h"
#include "runtime/flusher.h"
#include "runtime/pool_core.h"
#include "runtime/ranged.h"
#include "runtime/session_core.h"

namespace sp3::runtime {

using base::Mutant;
using base::mutant;

bool SessionCore::commit(Durability durability, base::Stamp* ticket) {
  if (!reading_) return true;               // it touched nothing
  if (pool_->was_inherited()) [[unlikely]]  // the body has forked, and this is the child
    refuse_in_child();
  const WriteSummary writes = look_over_writes();
  if (!writes.change_something) return commit_read_only(durability, ticket);
  versions_.prepare_to_retire(writes_.size());  // after publish nothing may fail
  announce();
  if (!goes_on_lone()) return false;
  if (logs_ && !reserve_log(writes)) return false;  // step 0
  if (uses_ranges_ && mutant(Mutant::range_released_before_lock)) ranged_->release();
  if (policy_ != CommitPolicy::ideal && !lock_write_set()) return false;
  if (uses_ranges_ && !ranged_->note_patched_versions()) return false;
  collect_predecessors();
  const base::Stamp stamp = take_stamp();                           // step 1
  if (policy_ != CommitPolicy::ideal && !validate()) return false;  // step 2
  if (writes.have_padding) clear_padding();
  if (uses_ranges_) ranged_->complete_patches();
  counters_.writing_commits.add(1);  // not behind the fence
  switch (policy_) {
    case CommitPolicy::speculative:
    case CommitPolicy::ideal:
      publish(stamp);  // step 3
      compose_record();
      end_reading();
      collect_versions();
      seal(stamp, durability, /*published=*/true);
      forget_writes(writes);
      contention_.leave_gate();          // what is left concerns nobody's progress but ours
      finish_commit(stamp, durability);  // steps 4 and 5
      break;
    case CommitPolicy::conservative:
      compose_record();
      seal(stamp, durability, /*published=*/false);
      persist_own();  // step 4
      if (mutant(Mutant::withdrawn_before_publish)) release_sealed();
      publish(stamp);  // step 3
      if (!mutant(Mutant::withdrawn_before_publish)) release_sealed();
      end_reading();
      collect_versions();
      forget_writes(writes);
      finish_commit(stamp, durability);  // step 5
      break;
    case CommitPolicy::volatile_only:
      publish(stamp);
      withdraw();
      end_reading();
      collect_versions();
      forget_writes(writes);
      break;
  }
  *ticket = logs_ ? stamp : 0;
  return true;
}

// The pool is the parent's, and so is the memory that we would write to.
[[gnu::cold]] void SessionCore::refuse_in_child() {
  abort();
  pool_->throw_if_unusable();
}

// In one pass, what the steps would else find out in several.
[[gnu::always_inline]] inline SessionCore::WriteSummary SessionCore::look_over_writes() const {
  WriteSummary sum;
  for (const WriteEntry& w : writes_.entries()) {
    sum.have_padding |= w.clear_padding != nullptr;
    sum.change_something |= w.mode != WriteMode::nothing;
    switch (w.mode) {
      case WriteMode::update:
        sum.record_bytes += log::RecordBuilder::update_bytes(w.size8);
        break;
      case WriteMode::patch:
        sum.record_bytes += ranged_->patch_bytes(w);
        break;
      case WriteMode::make:
        sum.record_bytes += log::RecordBuilder::make_bytes(w.size8);
        break;
      case WriteMode::destroy:
        sum.record_bytes += log::RecordBuilder::destroy_bytes();
        sum.free_slots = true;
        break;
      case WriteMode::nothing:
        sum.free_slots = true;
        break;
    }
  }
  return sum;
}

[[gnu::always_inline]] inline std::uint64_t SessionCore::record_bound(
    const WriteSummary& writes) const {
  // Everything that track() looks at.
  const std::size_t reads =
      mutant(Mutant::dependencies_tracked_after_unlock) ? reads_.size() : reads_.unsettled().size();
  const std::uint64_t seen =
      reads + writes_.size() + (uses_ranges_ ? ranged_->unvalidated().size() : std::size_t{0});
  const std::uint64_t dependencies = std::min<std::uint64_t>(pool_->layout().max_sessions, seen);
  return log::RecordBuilder::max_record_bytes(writes.record_bytes, dependencies);
}

// After publish nothing may fail: memory is taken now, like log space.
[[gnu::always_inline]] inline bool SessionCore::reserve_log(const WriteSummary& writes) {
  emu::step(emu::Step::commit_reserve);
  const std::uint64_t bytes = record_bound(writes);
  if (!shared_->log.has_room(bytes)) [[unlikely]]
    return reserve_in_new_run(bytes);
  record_.reserve(bytes);
  return true;
}

bool SessionCore::reserve_in_new_run(std::uint64_t bytes) {
  if (!shared_->log.could_ever_hold(bytes)) {
    throw Error(
        ErrorCode::transaction_too_large,
        "the transaction's record could become larger than the log: what is made, and all of what "
        "write() has opened, counts",
        {.path = pool_->path(),
         .wanted = std::to_string(bytes) + " bytes",
         .found = "a log of " + std::to_string(pool_->layout().log_bytes) + " bytes"});
  }
  record_.reserve(bytes);
  if (take_log_space(bytes)) return true;
  log_bytes_needed_ = bytes;
  note_conflict(Conflict::log_full);
  return false;
}

// Of a lone session: whether it is alone to the end of its commit. If so, nothing that it has read
// can change. REQUIRES: announced.
[[gnu::always_inline]] inline bool SessionCore::goes_on_lone() {
  if (!is_lone()) {
    base::replace(locks_alone_, false);
    return true;
  }
  locks_alone_ = !company_.has_carriers() || mutant(Mutant::lone_commit_ignores_carriers);
  if (company_.look() == lone_ || mutant(Mutant::lone_commit_ignores_arrivals)) [[likely]]
    return true;
  note_conflict(Conflict::changed);
  return false;
}

// REQUIRES: announced.
bool SessionCore::take_log_space(std::uint64_t bytes) {
  // relaxed: any number the superblock has had will do.
  const auto reserved =
      shared_->log.reserve(bytes, pool_->checkpoint_number.load(std::memory_order_relaxed));
  if (reserved == log::SessionLog::Reserved::in_new_run) pool_->note_log_growth();
  return reserved != log::SessionLog::Reserved::no;
}

// In address order, so that committers wait for each other without deadlock.
[[gnu::always_inline]] inline bool SessionCore::lock_write_set() {
  base::ReusedList<WriteEntry>& entries = writes_.entries();
  if (locks_alone_) {  // and so waits for nobody else who waits
    return std::all_of(entries.begin(), entries.end(), [&](WriteEntry& w) { return lock_one(w); });
  }
  if (entries.size() == 1) return lock_one(entries[0]);
  if (entries.size() == 2) {
    const bool ascending = entries[0].offset < entries[1].offset;
    return lock_one(entries[ascending ? 0 : 1]) && lock_one(entries[ascending ? 1 : 0]);
  }
  return lock_many();
}

bool SessionCore::lock_many() {
  base::ReusedList<WriteEntry>& entries = writes_.entries();
  lock_order_.resize(entries.size());
  std::iota(lock_order_.begin(), lock_order_.end(), 0U);
  std::sort(lock_order_.begin(), lock_order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return entries[a].offset < entries[b].offset;
  });
  return std::all_of(lock_order_.begin(), lock_order_.end(),
                     [&](std::uint32_t i) { return lock_one(entries[i]); });
}

// The lock is taken on the very version the private copy was made from, which validates it.
[[gnu::always_inline]] inline bool SessionCore::lock_one(WriteEntry& entry) {
  if (entry.locked) return true;  // since the write, or since it was made
  emu::step(emu::Step::commit_lock);
  if (locks_alone_ && entry.entry().try_lock_alone(entry.seen.word0)) {
    emu::touch(emu::Line::entry, entry.offset, emu::Access::store);
    entry.locked = true;
    return true;
  }
  const std::optional<Conflict> met = try_lock(entry);
  if (!met) return true;
  note_conflict(*met);
  return false;
}

[[gnu::always_inline]] inline void SessionCore::collect_predecessors() {
  predecessors_.clear();
  if (is_calm()) return;
  if (!logs_) {
    for (const WriteEntry& write : writes_.entries()) predecessors_.add_stamp_only(write.seen);
    return;
  }
  // What was settled when it was read is committed, and older than any stamp to be taken.
  const auto add_read = [this](const index::Seen& seen) {
    if (!left_out(Mutant::read_dependencies_left_out, seen)) predecessors_.add(seen);
  };
  for (const index::Seen& seen : reads_.unsettled()) add_read(seen);
  if (uses_ranges_) {
    for (const index::Seen& seen : ranged_->unvalidated()) add_read(seen);
  }
  for (const WriteEntry& write : writes_.entries()) {
    if (left_out(Mutant::write_dependencies_left_out, write.seen)) continue;
    if (write.mode == WriteMode::make &&
        left_out(Mutant::slot_reused_without_dependency, write.seen)) {
      continue;
    }
    predecessors_.add(write.seen);
  }
}

void SessionCore::track() { collect_predecessors(); }

[[gnu::always_inline]] inline base::Stamp SessionCore::take_stamp() {
  emu::step(emu::Step::commit_stamp);
  emu::touch(emu::Line::floor, 0, emu::Access::load);
  base::Stamp above = mutant(Mutant::stamp_not_above_predecessors) ? 0 : predecessors_.newest();
  if (is_lone()) {
    above = std::max(above, company_.left_behind());
    // Who comes has seen the announced stamp, hence the locks, before its first snapshot.
    return owner_.take_stamp(pool_->clock().now(), pool_->floor, above);
  }
  // A reader takes versions below its snapshot for whole: it has to see the locks of whoever has a
  // smaller stamp.
  return owner_.take_stamp(pool_->clock().now_after_loads(), pool_->floor, above);
}

[[gnu::always_inline]] inline bool SessionCore::validate() {
  emu::step(emu::Step::commit_validate);
  if (is_lone() || reads_.empty() || reads_still_hold()) return true;
  note_conflict(Conflict::changed);
  return false;
}

// Before anyone else, or the log, sees the copies.
[[gnu::always_inline]] inline void SessionCore::clear_padding() {
  for (WriteEntry& w : writes_.entries()) {
    if (w.clear_padding != nullptr && w.copy != nullptr) w.clear_padding(w.copy);
  }
}

[[gnu::always_inline]] inline void SessionCore::publish(base::Stamp stamp) {
  // acq_rel: pairs with revalidate_by_count(). After all locks are taken, before anything is seen.
  if (!pool_->clock().is_synchronised() && !mutant(Mutant::publishers_not_counted)) [[unlikely]] {
    pool_->publishers.fetch_add(1, std::memory_order_acq_rel);
  }
  for (WriteEntry& entry : writes_.entries()) {
    emu::step(emu::Step::commit_publish);
    publish_entry(entry, stamp);
  }
  if (uses_ranges_) ranged_->release();
}

[[gnu::always_inline]] inline void SessionCore::publish_entry(WriteEntry& w, base::Stamp stamp) {
  if (w.mode == WriteMode::nothing) {
    w.entry().unlock(w.seen.word0);
    w.locked = false;
    return;
  }
  const std::uint64_t pointer =
      w.mode == WriteMode::destroy ? index::kTombstone : reinterpret_cast<std::uint64_t>(w.copy);
  emu::touch(emu::Line::version, w.offset, emu::Access::store, w.size8);
  if (w.copy != nullptr) base::plain_write(w.copy, w.size8);
  emu::touch(emu::Line::entry, w.offset, emu::Access::store);
  const std::uint64_t word0 = index::pack_word0(stamp);
  const std::uint64_t word1 = index::pack_word1(id_, pointer);
  index::Seen old;
  old.word1 = policy_ == CommitPolicy::ideal ? w.entry().publish_unlocked(word0, word1)
                                             : w.entry().publish(word0, word1);
  if (mutant(Mutant::replaced_version_retired_as_seen)) old.word1 = w.seen.word1;
  w.locked = false;
  if (!old.at_home() && !old.destroyed()) {
    versions_.retire(old.version(), w.size8, epochs_.retirement_epoch_of(actor_.participant));
  }
}

// REQUIRES: pinned, so that the replaced versions are still there to compare with.
[[gnu::always_inline]] inline void SessionCore::compose_record() {
  if (mutant(Mutant::dependencies_tracked_after_unlock)) {
    reads_.forget_unsettled();
    for (const ReadEntry& read : reads_) {
      if (index::Seen now; read.entry->try_read(now)) reads_.note_unsettled(now);
    }
    for (WriteEntry& write : writes_.entries()) write.entry().try_read(write.seen);
    track();
  }
  record_.reset();
  for (const WriteEntry& w : writes_.entries()) {
    if (w.copy != nullptr) base::plain_read(w.copy, w.size8);
    switch (w.mode) {
      case WriteMode::update:
        if (w.base == nullptr) {
          record_.add_image(w.offset, w.copy, w.size8);
        } else {
          record_.add_update(w.offset, w.base, w.copy, w.size8);
        }
        break;
      case WriteMode::patch:
        ranged_->add_to_record(w, record_);
        break;
      case WriteMode::make:
        record_.add_make(w.offset,
                         {w.place.slab->type, w.place.slab->type_size, w.place.slab->slot_size},
                         w.copy, w.size8);
        break;
      case WriteMode::destroy:
        record_.add_destroy(w.offset);
        break;
      case WriteMode::nothing:
        break;
    }
  }
  for (const base::Tid& tid : predecessors_.others())
    record_.add_dependency(tid.session, tid.stamp);
}

[[gnu::always_inline]] inline void SessionCore::push_item(const log::PendingItem& item,
                                                          bool published) {
  emu::touch(emu::Line::session_ring, id_, emu::Access::store);
  owner_.put(item, predecessors_.others());
  emu::touch(emu::Line::session_sealed, id_, emu::Access::store);
  owner_.seal(published);
}

[[gnu::always_inline]] inline void SessionCore::seal(base::Stamp stamp, Durability durability,
                                                     bool published) {
  emu::step(emu::Step::commit_seal);
  SessionShared& s = *shared_;
  const bool synchronous = durability == Durability::synchronous;
  const bool streamed =
      synchronous && memory_.flush_instruction() == FlushInstruction::non_temporal;
  // relaxed: a lower number than the true one is still true.
  const base::Lsn durable = mutant(Mutant::record_vouches_for_itself)
                                ? s.log.next_lsn() - 1
                                : s.persisted_lsn.load(std::memory_order_relaxed);
  record_.seal(s.log.next_lsn(), stamp, durable, s.log.seed());
  // About to flush it ourselves: helpers had better not start the moment they see it.
  if (synchronous) s.flushing.store(true, std::memory_order_relaxed);
  std::unique_lock<emu::SpinLock> blocks(s.log.block_lock(), std::defer_lock);
  if (memory_.writes_blocks() && !mutant(Mutant::log_block_not_locked)) blocks.lock();
  emu::step(emu::Step::log_store);
  const log::SessionLog::Appended appended =
      s.log.append(record_.data(), static_cast<std::uint32_t>(record_.size()), stamp, streamed);
  if (synchronous) start_flush(appended, streamed);
  push_item({.stamp = stamp,
             .lsn = s.log.next_lsn() - 1,
             .offset = appended.offset,
             .bytes = appended.bytes,
             .streamed = streamed},
            published);
  if (blocks.owns_lock()) blocks.unlock();
  if (published) withdraw();
  counters_.log_bytes.add(appended.bytes);
}

// Lines take a while to reach the media: with nothing older to flush, let them start now, while we
// tidy up, and only fence later. Blocks are written when their fence is due.
[[gnu::always_inline]] inline void SessionCore::start_flush(
    const log::SessionLog::Appended& appended, bool streamed) {
  SessionShared& s = *shared_;
  // relaxed: sealed is ours, and persisted only grows towards it.
  if (memory_.writes_blocks() ||
      s.persisted.load(std::memory_order_relaxed) != s.sealed.load(std::memory_order_relaxed)) {
    return;
  }
  const emu::FlushCounts before = actor_.counts;
  const emu::IoStatus status =
      mutant(Mutant::no_flush_own_record)
          ? emu::IoStatus{}
          : memory_.log_flush(appended.offset, appended.bytes, streamed, actor_.counts);
  counters_.lines.add(actor_.counts.lines - before.lines);
  if (status.ok()) {
    flush_started_ = true;
  } else {
    persister_.poison(status.error);
  }
}

// After publish: what was destroyed is free for the next object of its type.
[[gnu::always_inline]] inline void SessionCore::forget_writes(const WriteSummary& writes) noexcept {
  if (writes.free_slots) free_slots();
  writes_.clear();
}

// Not between a record's flush and its fence: a locked instruction would wait for the flush.
[[gnu::always_inline]] inline void SessionCore::collect_versions() {
  if (versions_.collect()) [[unlikely]]
    epochs_.rest_at_current(actor_.participant);
}

void SessionCore::free_slots() noexcept {
  for (WriteEntry& w : writes_.entries()) {
    if (w.mode != WriteMode::destroy && w.mode != WriteMode::nothing) continue;
    if (w.copy != nullptr) versions_.free(w.copy, w.size8);
    slots_.put(w.place);
  }
}

// conservative: the record is durable, and visible as of now.
void SessionCore::release_sealed() {
  owner_.publish_last();
  withdraw();
}

// The flush was started: only the fence is missing.
[[gnu::always_inline]] inline void SessionCore::fence_own() {
  const emu::FlushCounts before = actor_.counts;
  flush_started_ = false;
  persister_.fence_last(*shared_, actor_);
  note_persisted(before);
}

void SessionCore::persist_own() {
  if (flush_started_) return fence_own();
  const emu::FlushCounts before = actor_.counts;
  persister_.flush(*shared_, actor_, /*owner=*/true);
  note_persisted(before);
}

// What was sealed is persisted, at the cost counted since `before`; a new group begins.
[[gnu::always_inline]] inline void SessionCore::note_persisted(const emu::FlushCounts& before) {
  emu::step(emu::Step::commit_persisted);
  // Stores are few behind a fence: docs/adr/0022.
  if (const std::uint64_t lines = actor_.counts.lines - before.lines; lines != 0)
    counters_.lines.add(lines);
  counters_.fences.add(actor_.counts.fences - before.fences);
  if (group_records_ != 0) begin_group();
}

[[gnu::always_inline]] inline void SessionCore::finish_commit(base::Stamp stamp,
                                                              Durability durability) {
  if (durability == Durability::asynchronous) {
    const AsyncOptions& async = pool_->options().async;
    // relaxed: a helper may have flushed what we counted; then a new group begins with this record.
    if (shared_->persisted.load(std::memory_order_relaxed) + 1 >=
        shared_->sealed.load(std::memory_order_relaxed)) {
      begin_group();
    }
    group_bytes_ += record_.size();
    if (++group_records_ >= async.group_records || group_bytes_ >= async.group_bytes) {
      persist_own();
      if (persister_.advance(*shared_).end == Persister::Advanced::everything) return;
    }
    pool_->flusher().expect_group(*shared_);  // who looks again when what it waits for is committed
    return;
  }
  // relaxed: our own item is among them, or already persisted by us (conservative) or by a helper.
  // A flush that was started is finished even then: its fence must never vouch for a later record.
  if (flush_started_ && !mutant(Mutant::started_flush_is_forgotten)) [[likely]] {
    fence_own();
  } else if (shared_->persisted.load(std::memory_order_relaxed) <
             shared_->sealed.load(std::memory_order_relaxed)) {
    persist_own();
  } else {
    shared_->flushing.store(false, std::memory_order_relaxed);  // relaxed: a hint
  }
  if (persister_.commit_last(*shared_, stamp, predecessors_.others())) return;
  if (persister_.advance(*shared_).end == Persister::Advanced::everything) {
    persister_.throw_if_poisoned();
    return;
  }
  counters_.waits.add(1);
  wait_helping({stamp, id_});
}

void SessionCore::wait_helping(base::Tid tid) {
  const Actor before = actor_;
  persister_.wait(tid, actor_);
  const std::uint64_t own_lines = actor_.own_lines - before.own_lines;
  const std::uint64_t own_fences = actor_.own_fences - before.own_fences;
  counters_.lines.add(own_lines);
  counters_.fences.add(own_fences);
  counters_.helped_lines.add(actor_.counts.lines - before.counts.lines - own_lines);
  counters_.helped_fences.add(actor_.counts.fences - before.counts.fences - own_fences);
}

// A read-only transaction writes no record, but what it read must not be undone by a crash.
[[gnu::always_inline]] inline bool SessionCore::commit_read_only(Durability durability,
                                                                 base::Stamp* ticket) {
  // What is settled was committed before the transaction began. All of it was current then too: a
  // version that came between would be a newer one, and was not there when we looked.
  if (reads_.unsettled().empty() && writes_.empty() && !uses_ranges_) {
    end_reading();
    return true;
  }
  // One version alone was current when it was read, and that instant is the transaction's; so is
  // that of the last version, where all others were found unchanged after it was read, or nobody
  // else was there.
  if (!is_lone() && reads_.size() > 1 && compared_ != reads_.size() + writes_.size() &&
      policy_ != CommitPolicy::ideal && !validate())
    return false;
  collect_predecessors();
  if (!writes_.empty()) abandon_writes();  // made and destroyed by the same transaction
  end_reading();
  if (predecessors_.all_committed()) return true;
  if (mutant(Mutant::read_only_does_not_wait)) return true;
  if (durability == Durability::asynchronous) {
    *ticket = seal_mark();
  } else {
    wait_for_seen();
  }
  return true;
}

// The mark of a read-only transaction among the session's items: committed when everything before
// it, and what it read, is. Nothing of it goes to the log.
base::Stamp SessionCore::seal_mark() {
  const base::Stamp stamp = owner_.take_mark_stamp();
  push_item({.stamp = stamp, .lsn = shared_->log.next_lsn() - 1}, /*published=*/true);
  pool_->flusher().expect_group(*shared_);
  return stamp;
}

// Step 5 for what was read, by a transaction that leaves no record.
void SessionCore::wait_for_seen() {
  if (predecessors_.own() != 0) wait_helping({predecessors_.own(), id_});
  for (const base::Tid& tid : predecessors_.others()) wait_helping(tid);
}

}  // namespace sp3::runtime

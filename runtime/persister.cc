// How records become durable and transactions committed.
//
// The order that everything rests on (P1 below; recovery case "torn tail"):
//
//   log bytes stored -> sealed raised -> bytes flushed -> fence -> persisted raised -> committed
//   raised
//
// A helper reads `sealed`, then flushes bytes that another core stored. The stores are visible to
// it, but nothing orders a clwb behind an earlier load, so it executes a locked RMW (the exchange
// on `flushing`) between the two: the flush cannot run ahead of the knowledge that there is
// something to flush.
//
// Non-temporal stores of another core may still sit in its write-combining buffers, where no flush
// of ours reaches them: a helper stops at an item that was streamed.
#include "runtime/persister.h"

#include <cstring>
#include <mutex>
#include <utility>

#include <sp3/error.h>

#include "base/atomic.h"
#include "base/mutant.h"
#include "base/scaled.h"
#include "emu/spin.h"
#include "emu/step.h"
#include "emu/touch.h"

namespace sp3::runtime {

using base::Mutant;
using base::mutant;

namespace {

// Looks at a predecessor before a waiter offers its core: longer than a fence takes, as a rule, and
// no longer, since with more threads than cores the predecessor's owner may want that core.
constexpr std::uint32_t kWaitingRounds = 32;

void raise_to(base::Atomic<std::uint64_t>& number, std::uint64_t to) noexcept {
  std::uint64_t now = number.load(std::memory_order_relaxed);
  // release: what the number stands for happened before it.
  while (now < to && !number.compare_exchange_weak(now, to, std::memory_order_acq_rel)) {
  }
}

}  // namespace

void Persister::poison(int error, std::exception_ptr cause) noexcept {
  const std::lock_guard guard(poisoning_);
  if (is_poisoned()) return;
  cause_ = std::move(cause);
  // release: who sees it sees the cause.
  poisoned_.store(error, std::memory_order_release);
}

void Persister::throw_if_poisoned() const {
  if (const int error = poisoned_.load(std::memory_order_acquire)) [[unlikely]]
    throw_cause(error);
}

void Persister::throw_cause(int error) const {
  try {
    if (!cause_) throw failure(std::strerror(error));
    try {
      std::rethrow_exception(cause_);
    } catch (const std::exception& cause) {
      throw failure(cause.what());
    }
  } catch (const std::bad_alloc&) {
    std::rethrow_exception(without_memory_);
  }
}

Error Persister::failure(const char* found) const {
  return {ErrorCode::outcome_unknown,
          "making a transaction durable failed; reopen the pool to recover what is",
          {.path = path_, .found = found}};
}

// Flushes the bytes of items (from, upto], adjacent ones together.
Persister::Flushed Persister::flush_items(SessionShared& session, std::uint64_t from,
                                          std::uint64_t upto, bool owner, Actor& actor) {
  Flushed flushed{.status = {}, .upto = from, .lsn = 0};
  const std::uint64_t gap = memory_.writes_blocks() ? log::kFileBlock : 1;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool streamed = false;
  const auto flush_range = [&](Mutant left_out) -> emu::IoStatus {
    if (begin == end) return {};
    if (mutant(left_out) || (!owner && mutant(Mutant::no_flush_by_helper))) return {};
    return memory_.log_flush(begin, end - begin, streamed, actor.counts);
  };
  for (std::uint64_t n = from + 1; n <= upto; ++n) {
    const log::PendingItem item = session.ring.read(n);
    // Already persisted by someone else: its slot, and what we just read, may be a later item's.
    if (session.persisted.load(std::memory_order_acquire) >= n) continue;
    if (item.streamed && !owner && !mutant(Mutant::helper_trusts_streamed_flush)) break;
    flushed.upto = n;
    if (item.bytes == 0) continue;
    flushed.lsn = item.lsn;
    const bool joins = item.offset >= end && item.offset - end < gap && item.streamed == streamed;
    if (!joins || begin == end) {
      flushed.status = flush_range(Mutant::no_flush_items_before_gap);
      if (!flushed.status.ok()) return flushed;
      begin = item.offset;
      streamed = item.streamed;
    }
    end = item.offset + item.bytes;
  }
  flushed.status = flush_range(Mutant::no_flush_sealed_items);
  return flushed;
}

// File memory: what is sealed, and its owner appends no more to the last block of it. All up to
// `from` is persisted.
std::uint64_t Persister::take_blocks(SessionShared& session, std::uint64_t from) {
  const std::lock_guard guard(session.log.block_lock());
  const std::uint64_t sealed = session.sealed.load(std::memory_order_acquire);
  for (std::uint64_t n = sealed; n > from; --n) {
    const log::PendingItem last = session.ring.read(n);
    // Persisted by somebody else meanwhile, who has closed its block: what we read may be a later
    // item's.
    if (session.persisted.load(std::memory_order_acquire) >= n) break;
    if (last.bytes == 0) continue;
    if (!mutant(Mutant::full_block_is_appended_to)) {
      session.log.close_blocks(last.offset + last.bytes);
    }
    break;
  }
  return sealed;
}

void Persister::flush(SessionShared& session, Actor& actor, bool owner) {
  if (is_poisoned()) return;
  // Pinned, no segment we are about to write can be recycled and reused; the owner's own flushes of
  // mapped lines are harmless then, so the common case does without.
  // (A conservative owner is still pinned by its transaction.)
  const bool pin = (!owner || memory_.writes_blocks()) && !epochs_.is_pinned(actor.participant) &&
                   !mutant(Mutant::helper_flushes_unpinned);
  if (pin) epochs_.pin(actor.participant);
  const std::uint64_t from = session.persisted.load(std::memory_order_acquire);
  const std::uint64_t upto = memory_.writes_blocks()
                                 ? take_blocks(session, from)
                                 : session.sealed.load(std::memory_order_acquire);
  session.flushing.exchange(true, std::memory_order_seq_cst);  // the locked RMW of the essay above
  emu::step(emu::Step::log_flush);
  const Flushed flushed = flush_items(session, from, upto, owner, actor);
  if (flushed.status.ok()) {
    raise_persisted(session, flushed.upto, flushed.lsn, actor);
  } else {
    poison(flushed.status.error);
  }
  session.flushing.store(false, std::memory_order_release);
  if (pin) epochs_.unpin(actor.participant);
}

// Items up to `number`, the last record among them `lsn` (0: marks only), have been flushed.
void Persister::raise_persisted(SessionShared& session, std::uint64_t number, base::Lsn lsn,
                                Actor& actor) {
  emu::step(emu::Step::log_fence);
  if (lsn != 0) {
    // (P1) The record is durable before anyone is told: recovery may then call its absence damage.
    if (mutant(Mutant::helper_persists_before_fence)) {
      raise_to(session.persisted_lsn, lsn);
      raise_to(session.persisted, number);
    }
    const emu::IoStatus status =
        mutant(Mutant::no_fence_sealed_items) ? emu::IoStatus{} : memory_.fence(actor.counts);
    if (!status.ok() && !mutant(Mutant::failed_sync_is_forgotten)) {
      poison(status.error);
      return;
    }
    if (mutant(Mutant::persisted_raised_before_lsn)) {
      raise_to(session.persisted, number);
      emu::interleave();
    }
    raise_to(session.persisted_lsn, lsn);
  }
  emu::touch(emu::Line::session_persisted, session.id, emu::Access::exchange);
  raise_to(session.persisted, number);
}

// What the item after `done` waits for, if anything. Means nothing if the item itself is committed
// by now.
std::optional<base::Tid> Persister::uncommitted_predecessor(const SessionShared& session,
                                                            const log::PendingItem& item,
                                                            std::uint64_t done) const {
  if (mutant(Mutant::committed_when_persisted)) return std::nullopt;
  for (std::uint32_t i = 0; i < item.dependencies; ++i) {
    const base::Tid tid = session.ring.dependency(item.first_dependency + i);
    // Checked before the dependency is used: what we read is the item's only while that waits.
    if (session.committed.load(std::memory_order_acquire) != done) return std::nullopt;
    if (tid.session != session.id && !is_committed(tid)) return tid;
  }
  return std::nullopt;
}

// Which of the items after `done` can be committed. `end` says why no more, unless `done` is not
// where the session is any more.
Persister::Ahead Persister::look_ahead(const SessionShared& session, std::uint64_t done) const {
  Ahead ahead{.upto = done, .stamp = 0, .end = {}};
  while (true) {
    const std::uint64_t next = ahead.upto + 1;
    const auto is_beyond = [&](const base::Atomic<std::uint64_t>& reached) {
      return next > reached.load(std::memory_order_acquire);
    };
    if (is_beyond(session.sealed)) {
      ahead.end = Progress{Advanced::everything, {}};
      return ahead;
    }
    if (is_beyond(session.persisted)) {
      ahead.end = Progress{Advanced::not_persisted, {}};
      return ahead;
    }
    if (is_beyond(session.published)) {
      ahead.end = Progress{Advanced::everything, {}};
      return ahead;
    }
    emu::touch(emu::Line::session_ring, session.id, emu::Access::load);
    const log::PendingItem item = session.ring.read(next);
    const std::optional<base::Tid> predecessor = uncommitted_predecessor(session, item, done);
    // What we read is item `next`'s only while it waits.
    if (session.committed.load(std::memory_order_acquire) != done) return ahead;
    if (predecessor) {
      ahead.end = Progress{Advanced::blocked, *predecessor};
      return ahead;
    }
    ahead.upto = next;
    ahead.stamp = item.stamp;
  }
}

Persister::Progress Persister::advance(SessionShared& session) {
  while (true) {
    std::uint64_t done = session.committed.load(std::memory_order_acquire);
    // All that can be committed at once, so that a group tells the others once.
    const Ahead ahead = look_ahead(session, done);
    if (ahead.upto != done) {
      emu::step(emu::Step::commit_committed);
      // Stamp before number: who sees the number may reuse the slot, and must then find the stamp
      // raised.
      emu::touch(emu::Line::session_committed, session.id, emu::Access::exchange);
      raise_to(session.mark.committed_stamp, ahead.stamp);
      emu::interleave();
      session.committed.compare_exchange_strong(done, ahead.upto, std::memory_order_acq_rel);
    }
    if (ahead.end) return *ahead.end;
  }
}

// Moves the chain of predecessors that `tid` waits for on by at least one step, if that can be
// done.
void Persister::help_once(base::Tid tid, Actor& actor, bool patient) {
  // Stamps fall along the chain, so it ends; a few links at a time are enough.
  for (int link = 0; link < base::scaled(64, 64, 1); ++link) {
    SessionShared* session = this->session(tid.session);
    const Progress progress = advance(*session);
    switch (progress.end) {
      case Advanced::everything:
        return;
      case Advanced::not_persisted:
        // Somebody at it is usually done sooner than we would be; unless it has lost its core.
        if (patient && session->flushing.load(std::memory_order_relaxed)) return;
        help_flush(*session, actor);
        return;
      case Advanced::blocked:
        tid = progress.blocked_on;
    }
  }
}

// What it waits for may depend on what is its own, and sealed asynchronously.
void Persister::help_flush(SessionShared& session, Actor& actor) {
  const emu::FlushCounts before = actor.counts;
  flush(session, actor, false);
  if (&session != actor.own) return;
  actor.own_lines += actor.counts.lines - before.lines;
  actor.own_fences += actor.counts.fences - before.fences;
}

void Persister::wait(base::Tid tid, Actor& actor) {
  emu::Spin spin;
  while (!is_committed(tid)) {
    emu::touch(emu::Line::session_committed, tid.session, emu::Access::load);
    throw_if_poisoned();
    help_once(tid, actor, !spin.is_long());
    if (is_committed(tid)) return;
    emu::step(emu::Step::commit_wait);
    spin.pause_or_offer(kWaitingRounds);
  }
}

}  // namespace sp3::runtime

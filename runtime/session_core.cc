// The loop around an attempt: entering, retrying, leaving.
#include "runtime/session_core.h"

#include <algorithm>
#include <utility>

#include <sp3/error.h>

#include "base/fence.h"
#include "base/mutant.h"
#include "base/replace.h"
#include "base/scope_exit.h"
#include "runtime/pool_core.h"
#include "runtime/ranged.h"

namespace sp3::runtime {

using base::Mutant;
using base::mutant;

namespace {

// A transaction that fails this often in a row, inside another's body, fails because of that.
constexpr std::uint32_t kManyFailures = 64;

// A transaction waits for slabs this often in a row without any being freed, and without getting
// further than it ever came: what is freed may be what its own last attempt had taken.
constexpr std::uint32_t kMostVainSlabWaits = 2;
constexpr std::uint32_t kMostSlabWaits = 4;

}  // namespace

SessionCore::SessionCore(std::shared_ptr<PoolCore> pool, SessionShared& shared)
    : pool_(std::move(pool)),
      shared_(&shared),
      owner_(shared),
      persister_(pool_->persister()),
      memory_(pool_->memory()),
      epochs_(pool_->epochs()),
      slabs_(pool_->slabs()),
      company_(pool_->company),
      view_(memory_.view()),
      id_(shared_->id),
      policy_(pool_->options().policy),
      logs_(pool_->logs()),
      locks_at_commit_(pool_->options().locks == LockTiming::commit),
      predecessors_(persister_, shared, pool_->layout().max_sessions),
      contention_(pool_->serial_gate, id_, pool_->options()),
      slots_(slabs_),
      versions_(pool_->versions(), epochs_) {
  actor_.participant = pool_->participant_of(id_);
  actor_.own = shared_;
}

SessionCore::~SessionCore() {
  SP3_ASSERT(!reading_);
  // closed, the pool has inherited them; else (after a fork) nobody reads them
  versions_.free_all();
}

[[gnu::cold]] void SessionCore::refuse_to_enter() const {
  if (pool_->was_inherited()) pool_->throw_if_unusable();
  const bool nested = runs_here();
  throw Error(nested ? ErrorCode::nested_transaction : ErrorCode::session_busy,
              nested ? "the session is inside a transaction of its own"
                     : "the session is running a transaction on another thread",
              {.path = pool_->path(), .found = "session " + std::to_string(id_)});
}

[[gnu::always_inline]] inline void SessionCore::enter() {
  // relaxed: misuse is detected where it can be; a race between two threads is a race all the same.
  // Before it is asked whether the pool has failed: who hears of that may close the session.
  if (running_.load(std::memory_order_relaxed)) [[unlikely]]
    refuse_to_enter();
  pool_->throw_if_unusable();
  if (const emu::ThreadId here = emu::this_thread_id();
      runner_.load(std::memory_order_relaxed) != here) {
    runner_.store(here, std::memory_order_relaxed);
  }
  // release: who sees it running sees by whom, and not who ran it last (runs_here).
  running_.store(true, std::memory_order_release);
  base::light_fence();  // pairs with the heavy one of who claims our slots
  slots_.answer_if_asked();
}

base::Stamp SessionCore::run(detail::Body body, Durability durability) {
  enter();
  const base::ScopeExit done([this] {
    contention_.leave_gate();
    if (log_bytes_needed_ != 0) [[unlikely]] {
      log_bytes_needed_ = 0;
      shared_->log.forgo();
    }
    leave();
  });
  contention_.begin();
  if (slab_waits_.any) [[unlikely]]
    slab_waits_ = {};
  base::Stamp ticket = 0;
  while (attempt(body, durability, &ticket) == Outcome::retry) {
    contention_.note_failure();
    counters_.aborts.add(1);
    pool_->throw_if_unusable();
    slots_.answer_if_asked();
    if (contention_.failures() % kManyFailures == 0) [[unlikely]] {
      pool_->throw_if_inside_body(
          this, "a transaction inside the body of another wants what that one has");
      emu::Spin::let_all_run();
    }
    if (doomed_ && doom_ == Conflict::pool_full) {
      free_empty_slabs();
    } else {
      contention_.back_off();
    }
  }
  counters_.commits.add(1);
  contention_.note_commit();
  return ticket;
}

[[gnu::always_inline]] inline SessionCore::Outcome SessionCore::attempt(detail::Body body,
                                                                        Durability durability,
                                                                        base::Stamp* ticket) {
  begin_attempt();
  try {
    try {
      body.call(body.context, transaction_);
      if (!doomed_ && commit(durability, ticket)) return Outcome::committed;
    } catch (const ConflictSignal& signal) {
      if (signal.of != this) throw;  // to the outer transaction whose it is, like any exception
    }
    // Whatever of it the body swallowed.
    if (doomed_ && doom_ == Conflict::refused) {
      std::rethrow_exception(std::exchange(refusal_, nullptr));
    }
  } catch (...) {
    return finish_exception();
  }
  if (doomed_) note_conflict(doom_);
  abort();
  return Outcome::retry;
}

// An exception of the user's (or an error of ours) leaves run() only if it comes from a consistent
// and durable view; REQUIRES: inside its handler.
SessionCore::Outcome SessionCore::finish_exception() {
  exceptions_.add(1);
  // The body has forked, and there is nothing to wait for in the child; or its thread is ended, by
  // what is no exception of the language, and must go on being so.
  if (pool_->was_inherited() || std::current_exception() == nullptr) {
    abort();
    throw;
  }
  const bool published = !reading_ && writes_.empty();  // it came from step 4 or 5
  if (!published) {
    const bool lost = doomed_ && doom_ != Conflict::refused;
    if (lost || (reading_ && !reads_still_hold())) {
      note_conflict(lost ? doom_ : Conflict::changed);
      abort();
      return Outcome::retry;
    }
    try {
      track();
    } catch (...) {  // no memory to say what it depends on
      abort();
      throw;
    }
    abort();
    if (logs_ && !mutant(Mutant::exception_does_not_wait)) wait_for_seen();
  }
  throw;
}

[[gnu::always_inline]] inline void SessionCore::begin_attempt() {
  base::replace(doomed_, false);
  reads_.clear();
  SP3_ASSERT(writes_.empty() && !reading_);
  // Whoever runs alone may want our slots.
  if (contention_.pass_gate([this] { slots_.answer_if_asked(); })) [[unlikely]]
    counters_.serial_transactions.add(1);
  if (!logs_) return;
  // relaxed: our own number, and one that can only have grown since.
  if (!shared_->ring.has_room(shared_->sealed.load(std::memory_order_relaxed),
                              shared_->committed.load(std::memory_order_acquire),
                              pool_->layout().max_sessions)) [[unlikely]] {
    make_room_for_items();
  }
  if (log_bytes_needed_ != 0) [[unlikely]]
    reserve_before_body();
}

// Too many asynchronous items in flight: make them durable before adding more.
void SessionCore::make_room_for_items() {
  persist_own();
  // Of the last item: attempts that failed have taken larger stamps and sealed nothing.
  const std::uint64_t last = shared_->sealed.load(std::memory_order_relaxed);  // relaxed: our own
  wait_helping({shared_->ring.read(last).stamp, id_});
}

// The last attempt found the log full: get the space it measured before running the body again.
void SessionCore::reserve_before_body() {
  emu::Spin spin;
  while (true) {
    {
      announce();
      const base::ScopeExit withdrawn([this] { withdraw(); });
      if (take_log_space(log_bytes_needed_)) break;
    }
    if (shared_->log.yields()) {
      // No checkpoint of ours would help: there may be room for us, but not before it is the
      // other's.
      spin.rest();
      slots_.answer_if_asked();
    } else {
      pool_->wait_for_log_space(*this);
    }
    pool_->throw_if_unusable();
  }
  log_bytes_needed_ = 0;
}

// No slab is left for a new object. What was destroyed since the last checkpoint may leave some
// empty, and so may slots that sessions keep for later. Others may be faster to take what becomes
// free, so we try again while there is more to come: after the usual number of failures, alone.
void SessionCore::free_empty_slabs() {
  ++slab_waits_.since_furthest;
  slots_.give_back_all();
  switch (pool_->wait_for_slabs(*this, /*patient=*/slab_waits_.in_vain != 0, slab_waits_.freed)) {
    case PoolCore::Slabs::freed:
      slab_waits_.in_vain = 0;
      break;
    case PoolCore::Slabs::none_yet:
      ++slab_waits_.in_vain;
      break;
    case PoolCore::Slabs::none:
      slab_waits_.in_vain = kMostVainSlabWaits;
      break;
  }
}

// The second checkpoint in a row that frees nothing began after all that the first one left behind.
bool SessionCore::pool_is_full() const noexcept {
  return slab_waits_.in_vain >= kMostVainSlabWaits || slab_waits_.since_furthest >= kMostSlabWaits;
}

void SessionCore::end_ranged_attempt() noexcept {
  ranged_->end_attempt();
  uses_ranges_ = false;
}

void SessionCore::unlock_writes() noexcept {
  for (WriteEntry& w : writes_.entries()) {
    if (!w.locked) continue;
    w.entry().unlock(w.seen.word0);
    w.locked = false;
  }
}

// Undoes what the write set holds: locks, private copies, slots taken.
void SessionCore::abandon_writes() noexcept {
  unlock_writes();
  for (WriteEntry& w : writes_.entries()) {
    if (w.copy != nullptr) versions_.free(w.copy, w.size8);
    if (w.mode == WriteMode::make || w.mode == WriteMode::nothing) slots_.put(w.place);
  }
  writes_.clear();
}

void SessionCore::abort() noexcept {
  if (pool_->was_inherited()) [[unlikely]] {
    // The body has forked, and this is the child. What it holds is the parent's; and who had locked
    // what giving it back wants lives there.
    writes_.clear();
    reading_ = false;
    if (uses_ranges_) ranged_->void_views();
    return;
  }
  withdraw();
  abandon_writes();
  end_reading();
}

void SessionCore::stop_doomed() const {
  if (!is_running()) fail_outside_body();  // the attempt ended by an error, and is long over
  throw ConflictSignal{this};
}

void SessionCore::conflict(Conflict reason) {
  // Nothing of it will be published, and unwinding takes longer than anyone waits for a lock.
  unlock_writes();
  doomed_ = true;
  doom_ = reason;
  throw ConflictSignal{this};
}

// The attempt must not go on, whatever the body catches: what asked for room, a container, say, may
// have done half of its work.
void SessionCore::refuse(std::exception_ptr why) noexcept {
  doomed_ = true;
  doom_ = Conflict::refused;
  refusal_ = std::move(why);
}
void SessionCore::refuse() noexcept { refuse(std::current_exception()); }

void SessionCore::cancel() {
  if (!is_running()) fail_outside_body();
  if (doomed_) stop_doomed();  // it is not for what was read, which did not hold, to decide
  refuse(std::make_exception_ptr(Cancelled()));
  std::rethrow_exception(refusal_);
}

// What the pool holds, has room for or was opened to do is nobody's fault, so a container cannot
// have foreseen it. An attempt that has changed nothing yet may go on, but not in a full pool.
[[gnu::cold]] void SessionCore::refuse_after(const Error& error) noexcept {
  switch (error.code()) {
    case ErrorCode::pool_full:
      return refuse();
    case ErrorCode::damaged_metadata:
    case ErrorCode::io_error:
    case ErrorCode::object_too_large:
    case ErrorCode::unsupported:
      if (!writes_.empty()) refuse();
      return;
    default:  // of the caller's making
      return;
  }
}

void SessionCore::note_conflict(Conflict reason) noexcept {
  switch (reason) {
    case Conflict::locked:
      counters_.aborts_locked.add(1);
      break;
    case Conflict::changed:
      counters_.aborts_validation.add(1);
      break;
    case Conflict::log_full:
      counters_.aborts_log_full.add(1);
      break;
    case Conflict::pool_full:
      counters_.aborts_pool_full.add(1);
      break;
    case Conflict::refused:  // leaves run() as an error
      break;
  }
}

void SessionCore::flush() {
  enter();
  const base::ScopeExit done([this] { leave(); });
  if (!logs_ || mutant(Mutant::session_flush_does_not_wait)) return;
  // relaxed: our own numbers.
  if (shared_->committed.load(std::memory_order_relaxed) ==
      shared_->sealed.load(std::memory_order_relaxed)) {
    return;
  }
  make_room_for_items();
}

void SessionCore::close() {
  std::exception_ptr error;
  try {
    flush();
  } catch (const Error& e) {
    // A busy session is not closed under its user's feet, and an inherited one is not ours to
    // close.
    if (e.code() != ErrorCode::outcome_unknown) throw;
    error = std::current_exception();
  }
  ranged_.reset();  // before another session has the number, and so an owner of ranges more
  pool_->session_closed(*this);
  slots_.give_back_all();  // nobody else may claim them any more
  if (error) std::rethrow_exception(error);
}

}  // namespace sp3::runtime

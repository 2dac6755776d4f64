// SessionCore: a session at work: the attempt in progress and the way from body to commit.
//
// An attempt goes: reading (lazily: pinned at its first read or write) -> body -> commit() or
// abort(). runtime/transaction.cc has the read phase, runtime/commit.cc the five steps,
// runtime/session_core.cc the loop around them.
//
// Thread safety: one thread at a time.
// Invariants:
//   1. Pinned exactly from the first read or write to the end of publish (or abort).
//   2. Locks are held only between lock_write_set() and publish()/abort(); under
//      LockTiming::encounter, and for objects being made (unless it is alone), from the write on.
//      None while a body that met a conflict unwinds.
//   3. Nothing waits for a checkpoint, a predecessor or another session while pinned or holding a
//      lock.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sp3/detail/core.h>
#include <sp3/transaction.h>

#include "base/atomic.h"
#include "base/mutant.h"
#include "base/plain_access.h"
#include "emu/spin.h"
#include "emu/step.h"
#include "emu/threads.h"
#include "emu/touch.h"
#include "log/record_builder.h"
#include "runtime/company.h"
#include "runtime/contention.h"
#include "runtime/owner_side.h"
#include "runtime/persister.h"
#include "runtime/predecessors.h"
#include "runtime/session_counters.h"
#include "runtime/slot_cache.h"
#include "runtime/version_pool.h"
#include "runtime/write_set.h"

namespace sp3::runtime {

class PoolCore;
class RangedAccess;

// What an object's private copy has to begin with: the bytes of the version it replaces, or none,
// since the caller stores all of them.
enum class Content : std::uint8_t { same, replaced };

class SessionCore {
 public:
  enum class Durability : std::uint8_t { synchronous, asynchronous };

  SessionCore(std::shared_ptr<PoolCore> pool, SessionShared& shared);
  ~SessionCore();
  SessionCore(const SessionCore&) = delete;
  SessionCore& operator=(const SessionCore&) = delete;

  // Runs the body until it commits. Returns the stamp a ticket must wait for, 0 for none.
  base::Stamp run(detail::Body body, Durability durability);
  void flush();
  // Commits everything and leaves the pool. Errors: outcome_unknown (the session is closed all the
  // same).
  void close();

  // The transaction's operations; called inside a body only. What users call, inline in
  // transaction.cc (make_object: in make_destroy.cc) alone, and the same as functions for the
  // library's own use.
  std::uint64_t make_object(const detail::TypeInfo& type, void** storage);
  const void* version_to_read(std::uint64_t offset, const detail::TypeInfo& type);
  template <Content kContent>
  void* copy_to_write(std::uint64_t offset, const detail::TypeInfo& type);
  const void* read(std::uint64_t offset, const detail::TypeInfo& type);
  void* write(std::uint64_t offset, const detail::TypeInfo& type);
  void prefetch(std::uint64_t offset, std::uint64_t bytes, bool for_write) noexcept;
  std::uint64_t make(const detail::TypeInfo& type, void** storage);
  void destroy(std::uint64_t offset, const detail::TypeInfo& type);
  std::uint64_t root(std::string_view name, const detail::TypeInfo& type);
  std::vector<std::string> root_names();
  void set_root(std::string_view name, std::uint64_t offset, const detail::TypeInfo& type);
  [[noreturn]] void report_damage(std::uint64_t offset, const char* message,
                                  const std::string& wanted, const std::string& found);

  // For another session that finds the pool full.
  [[nodiscard]] SlotCache& slots() noexcept { return slots_; }
  [[nodiscard]] bool is_idle() const noexcept { return !running_.load(std::memory_order_acquire); }
  // Whether this thread is inside one of its bodies.
  [[nodiscard]] bool runs_here() const noexcept {
    return running_.load(std::memory_order_acquire) &&
           runner_.load(std::memory_order_relaxed) == emu::this_thread_id();
  }
  [[nodiscard]] SessionShared& shared() const noexcept { return *shared_; }
  [[nodiscard]] PoolCore& pool() noexcept { return *pool_; }
  [[nodiscard]] SessionStatistics statistics() const noexcept { return counters_.read(); }
  // Grows with every attempt that ends, of committed transactions or not.
  [[nodiscard]] std::uint64_t attempts() const noexcept {
    return counters_.commits.get() + counters_.aborts.get() + exceptions_.get();
  }
  VersionPool& versions() noexcept { return versions_; }
  // The transaction's work with ranged objects (runtime/ranged.h).
  RangedAccess& ranged() {
    if (ranged_ == nullptr) [[unlikely]]
      make_ranged();
    return *ranged_;
  }
  // What all operations of users go through: one for which there was no memory, or that the pool
  // let down half-way, ends the attempt, whatever the body catches.
  template <class Operation>
  [[gnu::always_inline]] decltype(auto) operate(Operation&& operation) {
    try {
      return operation();
    } catch (const std::bad_alloc&) {
      refuse();
      throw;
    } catch (const Error& error) {
      refuse_after(error);
      throw;
    }
  }
  // What Transaction::cancel() does.
  [[noreturn]] void cancel();

 private:
  friend class RangedAccess;

  // refused: for lack of room or memory, or at the body's own wish, with an exception that leaves
  // run() whatever the body catches.
  enum class Conflict : std::uint8_t { locked, changed, log_full, pool_full, refused };
  // Unwinds a body in mid-flight. Not a std::exception, so that user code is unlikely to catch it.
  // `of`: whose. A body within the body of another transaction may use that one as well.
  struct ConflictSignal {
    const SessionCore* of;
  };
  enum class Outcome : std::uint8_t { committed, retry };
  static constexpr std::uint64_t kNeverCompared = ~std::uint64_t{0};

  // The loop (session_core.cc).
  void enter();
  [[noreturn]] void refuse_to_enter() const;
  // release: what we leave behind is seen by who finds us idle.
  void leave() noexcept { running_.store(false, std::memory_order_release); }
  void begin_attempt();
  Outcome attempt(detail::Body body, Durability durability, base::Stamp* ticket);
  Outcome finish_exception();
  void refuse() noexcept;  // REQUIRES: inside a handler
  void refuse(std::exception_ptr why) noexcept;
  void refuse_after(const Error& error) noexcept;
  void abort() noexcept;
  void unlock_writes() noexcept;
  void abandon_writes() noexcept;  // unlocks, frees copies and slots
  // Unpins.
  void end_reading() noexcept {
    if (!reading_) return;
    reading_ = false;
    emu::touch(emu::Line::epoch_slot, actor_.participant, emu::Access::store);
    base::end_long_reads();
    epochs_.rest(actor_.participant);
    if (uses_ranges_) [[unlikely]]
      end_ranged_attempt();
  }
  void end_ranged_attempt() noexcept;
  void make_room_for_items();
  void reserve_before_body();
  void free_empty_slabs();
  [[nodiscard]] bool pool_is_full() const noexcept;
  void note_conflict(Conflict reason) noexcept;

  // The read phase (transaction.cc).
  // relaxed: for the thread that runs it.
  [[nodiscard]] bool is_running() const noexcept {
    return running_.load(std::memory_order_relaxed);
  }
  // What every operation does first. A doomed attempt gets no further, even if its body swallowed
  // the signal.
  void begin_operation() {
    if (doomed_) [[unlikely]]
      stop_doomed();
    if (!reading_) start_reading();
  }
  [[noreturn, gnu::cold]] void stop_doomed() const;
  void start_reading();
  void see_who_is_there();
  [[noreturn]] void fail_outside_body() const;
  // What an operation found when nothing was in its way.
  struct Found {
    index::Place place;
    index::Seen seen;
    const std::byte* bytes = nullptr;
  };
  bool find_unhindered(std::uint64_t offset, const detail::TypeInfo& type, Found& found) noexcept;
  [[gnu::noinline]] const void* read_first(std::uint64_t offset, const detail::TypeInfo& type);
  template <Content kContent>
  [[gnu::noinline]] void* write_first(std::uint64_t offset, const detail::TypeInfo& type);
  [[gnu::cold]] const void* read_closely(std::uint64_t offset, const detail::TypeInfo& type);
  [[gnu::noinline]] const void* find_version(std::uint64_t offset, const detail::TypeInfo& type);
  [[gnu::cold]] void* write_closely(std::uint64_t offset, const detail::TypeInfo& type,
                                    Content content);
  [[gnu::noinline]] void* make_copy(std::uint64_t offset, const detail::TypeInfo& type,
                                    Content content);
  static void* begin_copy(const WriteEntry& entry) noexcept;
  std::byte* own_copy(std::uint64_t offset, const detail::TypeInfo& type);
  void check_own(const WriteEntry& own, const detail::TypeInfo& type);
  void require_locks() const {
    if (policy_ == CommitPolicy::ideal) [[unlikely]]
      fail_without_locks();
  }
  [[noreturn]] void fail_without_locks() const;
  void claim(WriteEntry& entry);
  [[noreturn]] void conflict(Conflict reason);
  [[noreturn]] void fail(ErrorCode code, const char* message, std::uint64_t offset,
                         const std::string& wanted, const std::string& found);
  template <class F>
  void walk_roots(F&& visit);
  [[noreturn]] void fail_to_locate(index::Place place, std::uint64_t offset,
                                   const detail::TypeInfo& type);
  [[noreturn]] void fail_on_free_slot(index::Entry& entry, index::Seen seen, std::uint64_t offset);
  index::Place locate(std::uint64_t offset, const detail::TypeInfo& type);
  index::Seen observe(index::Place place, std::uint64_t offset);
  index::Seen observe_patiently(const index::Entry& entry);
  [[nodiscard]] bool is_settled(const index::Seen& seen) const noexcept {
    return seen.stamp() < settled_;
  }
  // A version of something that is in the read or write set already, and so is validated with the
  // rest.
  void admit(const index::Seen& seen) {
    if (!is_settled(seen)) [[unlikely]]
      admit_newer(seen);
  }
  // Whether the attempt takes the session for the pool's only one, and so notes no reads.
  [[nodiscard]] bool is_lone() const noexcept { return lone_ != Company::kOthers; }
  // Whether all that the attempt can have read is committed, with stamps up to what the session and
  // those that have gone have taken.
  [[nodiscard]] bool is_calm() const noexcept { return calm_ != Company::kOthers; }
  // Whether it is lone, and what it has read is still as nobody else has seen it.
  [[nodiscard]] bool is_still_lone() const noexcept {
    return company_.look() == lone_ ||
           (base::mutant(base::Mutant::lone_read_ignores_arrivals) && is_lone());
  }
  void start_over_in_company() {
    if (is_lone() && !is_still_lone()) [[unlikely]]
      conflict(Conflict::changed);
  }
  void admit_newer(const index::Seen& seen);
  void admit_newer_read(const index::Seen& seen);
  // The words one by one: whole, they would go through memory.
  [[gnu::noinline]] const std::byte* read_newer(std::uint64_t word0, std::uint64_t word1,
                                                const std::byte* bytes);
  [[gnu::noinline]] const std::byte* read_in_flight(std::uint64_t word0, std::uint64_t word1,
                                                    const std::byte* bytes);
  [[gnu::noinline]] void* write_newer(const WriteEntry& entry);
  void revalidate();
  void revalidate_by_count();
  static void touch_version(index::Place place, index::Seen seen, std::uint64_t offset) noexcept;
  // The body may read the version until the attempt ends.
  static void tell_of_reading(index::Place place, const std::byte* bytes) noexcept {
    base::long_read(place.slab, base::kCacheLine);
    base::long_read(bytes, place.slab->type_size);
  }
  const std::byte* find_bytes(index::Place place, index::Seen seen,
                              std::uint64_t offset) const noexcept;
  const std::byte* bytes_of(index::Place place, index::Seen seen, std::uint64_t offset);
  [[gnu::noinline]] void prefetch_first(std::uint64_t offset, std::uint64_t bytes,
                                        bool for_write) noexcept;
  WriteEntry& open_for_write(std::uint64_t offset, const detail::TypeInfo& type, WriteMode mode);
  // Ahead of locking. Not where others are at the same entry: many who ask for its line as writers
  // take it from the one who holds the lock, and nobody gets on.
  void ask_for_lock(const index::Entry& entry, std::uint64_t offset) noexcept {
    if (contention_.meets_others()) return;
    emu::prefetch(emu::Line::entry, offset, true);
    entry.prefetch_for_lock();
  }
  std::optional<Conflict> try_lock(WriteEntry& entry) {
    emu::touch(emu::Line::entry, entry.offset, emu::Access::exchange);
    std::uint64_t found = 0;
    if (base::mutant(base::Mutant::lock_taken_on_any_version)) {
      entry.seen.word0 = entry.entry().word0() & ~index::kLock;
    }
    if (!entry.entry().try_lock(entry.seen.word0, &found)) [[unlikely]]
      return try_lock_patiently(entry);
    entry.locked = true;
    return std::nullopt;
  }
  std::optional<Conflict> try_lock_patiently(WriteEntry& entry);
  bool reads_still_hold() noexcept;
  bool is_overlooked(const ReadEntry& read, std::uint64_t word0) noexcept;
  std::vector<index::Place>& find_slots(const detail::TypeInfo& type);
  // For ranged objects.
  void make_ranged();
  void begin_ranged_operation();
  const std::byte* read_newest(std::uint64_t offset, const detail::TypeInfo& type);
  const std::byte* read_held(std::uint64_t offset, const detail::TypeInfo& type, index::Seen& seen);
  WriteEntry& open_patch(std::uint64_t offset, const detail::TypeInfo& type);

  // The five steps (commit.cc).
  bool commit(Durability durability, base::Stamp* ticket);
  bool commit_read_only(Durability durability, base::Stamp* ticket);
  void refuse_in_child();
  // Tells the checkpointer that a stamp is about to be taken (runtime/owner_side.h), and who comes
  // to a lone session that it is at its objects.
  void announce() {
    emu::step(emu::Step::commit_announce);
    emu::touch(emu::Line::session_announced, id_, emu::Access::store);
    emu::Spin spin;
    while (!owner_.try_announce()) spin.pause();
  }
  void withdraw() noexcept {
    if (!owner_.is_announced()) return;
    emu::touch(emu::Line::session_announced, id_, emu::Access::store);
    owner_.withdraw();
  }
  bool goes_on_lone();
  bool take_log_space(std::uint64_t bytes);
  bool reserve_in_new_run(std::uint64_t bytes);
  bool lock_write_set();
  bool lock_many();
  bool lock_one(WriteEntry& entry);
  // The same, inline in commit.cc alone and as a function.
  void collect_predecessors();
  void track();
  // Whether a mutant forgets this predecessor, all but its stamp.
  bool left_out(base::Mutant fault, const index::Seen& seen) noexcept {
    if (!base::mutant(fault)) return false;
    predecessors_.add_stamp_only(seen);
    return true;
  }
  base::Stamp take_stamp();
  bool validate();
  void clear_padding();
  void publish(base::Stamp stamp);
  void publish_entry(WriteEntry& entry, base::Stamp stamp);
  void compose_record();
  void seal(base::Stamp stamp, Durability durability, bool published);
  void start_flush(const log::SessionLog::Appended& appended, bool streamed);
  void push_item(const log::PendingItem& item, bool published);
  base::Stamp seal_mark();
  void release_sealed();
  void fence_own();
  void persist_own();
  void note_persisted(const emu::FlushCounts& before);
  void begin_group() noexcept {
    group_records_ = 0;
    group_bytes_ = 0;
  }
  void finish_commit(base::Stamp stamp, Durability durability);
  void wait_helping(base::Tid tid);
  void wait_for_seen();
  // What a transaction's writes come to.
  struct WriteSummary {
    std::uint64_t record_bytes = 0;  // of their entries in the record, at most
    bool change_something = false;
    bool have_padding = false;
    bool free_slots = false;  // of objects destroyed
  };
  [[nodiscard]] WriteSummary look_over_writes() const;
  [[nodiscard]] std::uint64_t record_bound(const WriteSummary& writes) const;
  bool reserve_log(const WriteSummary& writes);
  void forget_writes(const WriteSummary& writes) noexcept;
  void collect_versions();
  void free_slots() noexcept;

  std::shared_ptr<PoolCore> pool_;
  SessionShared* const shared_;
  OwnerSide owner_;
  Persister& persister_;
  emu::Memory& memory_;
  base::EpochDomain& epochs_;
  index::SlabTable& slabs_;
  const Company& company_;
  const std::byte* const view_;  // of the pool's memory
  const base::SessionId id_;
  const CommitPolicy policy_;
  const bool logs_;
  const bool locks_at_commit_;
  Transaction transaction_{*this};

  // The attempt.
  bool reading_ = false;      // pinned
  bool uses_ranges_ = false;  // it has used a ranged object
  bool doomed_ = false;       // something was signalled; whatever the body does, it will not commit
  Conflict doom_ = Conflict::changed;
  std::exception_ptr refusal_;  // what refused means
  // As the company was when the attempt began, if the session was alone then.
  Company::Word lone_ = Company::kOthers;
  Company::Word calm_ = Company::kOthers;  // the same, if it had nothing in flight either
  bool locks_alone_ = false;  // of a commit: nobody else locks objects while it is announced
  // Versions with smaller stamps need no comparison: they were settled when the attempt began.
  base::Stamp settled_ = 0;
  // Nor do those below this reading of the clock, taken once more than a few objects are read, if
  // clocks agree; else 0.
  base::Stamp snapshot_ = 0;
  std::size_t compared_ = 0;  // so many objects were seen when all were last found unchanged
  // If clocks disagree: as PoolCore::publishers was when everything read was last compared.
  std::uint64_t compared_at_ = kNeverCompared;
  ReadSet reads_;
  WriteSet writes_;
  std::vector<std::uint32_t> lock_order_;
  Predecessors predecessors_;

  // Across attempts.
  Contention contention_;
  SlotCache slots_;
  std::uint64_t log_bytes_needed_ = 0;  // reserved before the body when the last attempt ran short
  // Of this transaction.
  struct SlabWaits {
    bool any = false;                    // it has found the pool full
    std::size_t furthest = 0;            // the most writes it had then
    std::uint32_t since_furthest = 0;    // how often slabs were waited for
    std::uint32_t in_vain = 0;           // the same, since any were freed
    std::optional<std::uint64_t> freed;  // how many had been, by whomever, before this attempt
  };
  SlabWaits slab_waits_;
  bool flush_started_ = false;  // of the record just sealed; only the fence is missing

  base::Atomic<bool> running_{false};
  base::Atomic<emu::ThreadId> runner_{};

  log::RecordBuilder record_;
  VersionPool versions_;
  std::unique_ptr<RangedAccess> ranged_;  // null until it is needed
  Actor actor_;
  std::uint32_t group_records_ = 0;  // sealed asynchronously and not flushed by us
  std::uint64_t group_bytes_ = 0;
  SessionCounters counters_;
  base::Counter exceptions_;  // that came out of attempts
};

}  // namespace sp3::runtime

// PoolCore: an open pool: everything its sessions share.
//
// Thread safety: session ids, closing and roots under a mutex; the members by their own rules.
// Lifetime: from PoolCore::create or open to close() (or destruction, which abandons the pool as a
//   crash would: the next opening recovers).
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <sp3/options.h>
#include <sp3/report.h>
#include <sp3/statistics.h>

#include "base/atomic.h"
#include "base/epoch.h"
#include "base/process.h"
#include "emu/threads.h"
#include "index/slab_table.h"
#include "log/segment_pool.h"
#include "pool/pool_file.h"
#include "runtime/clock.h"
#include "runtime/company.h"
#include "runtime/contention.h"
#include "runtime/persister.h"
#include "runtime/ranged_locks.h"
#include "runtime/session_counters.h"
#include "runtime/session_shared.h"
#include "runtime/version_pool.h"

namespace sp3::runtime {

class Checkpointer;
class Flusher;
class SessionCore;

class PoolCore : public std::enable_shared_from_this<PoolCore> {
 public:
  static std::shared_ptr<PoolCore> create(const std::filesystem::path& path, std::uint64_t size,
                                          const Options& options);
  static std::shared_ptr<PoolCore> open(const std::filesystem::path& path, const Options& options);
  ~PoolCore();

  std::unique_ptr<SessionCore> open_session();
  void session_closed(SessionCore& session) noexcept;
  void checkpoint();
  void close();
  // Whether close() has begun, after which there is no way back.
  [[nodiscard]] bool is_closing() const;

  [[nodiscard]] PoolInfo info() const;
  [[nodiscard]] PoolStatistics statistics() const;
  [[nodiscard]] const RecoveryReport& recovery_report() const noexcept { return recovery_; }

  // Errors: forked, outcome_unknown.
  void throw_if_unusable() const {
    if (was_inherited() || persister_.is_poisoned()) [[unlikely]]
      throw_unusable();
  }
  // Whether this process got the pool through fork(): it may look at nothing but this.
  [[nodiscard]] bool was_inherited() const noexcept {
    return base::fork_generation() != fork_generation_;
  }

  // Returns when segments may be free: makes or awaits a checkpoint. REQUIRES: not pinned, nothing
  // locked.
  // Errors: nested_transaction if `waiter` is used inside the body of another session's
  // transaction, whose end the checkpoint would wait for.
  void wait_for_log_space(const SessionCore& waiter);
  // The same for slabs that a checkpoint finds empty. none_yet: some may be by the next checkpoint,
  // since others were at work during this one. `patient`: gives those time to hand in free slots.
  // `freed`: how many had been freed when the waiter last looked; what others freed since counts.
  enum class Slabs : std::uint8_t { freed, none_yet, none };
  Slabs wait_for_slabs(SessionCore& waiter, bool patient, std::optional<std::uint64_t>& freed);
  // Asks for a checkpoint if the log has filled up beyond CheckpointOptions::log_percent.
  void note_log_growth() noexcept;
  // Whether a stamp was taken since the last checkpoint's floor.
  [[nodiscard]] bool has_news() const;

  // Participants of the epoch domain: the checkpointer's first carrier, the flusher, guests (ticket
  // holders), the checkpointer's other carriers, sessions.
  static constexpr std::size_t kFlusherParticipant = 1;
  static constexpr std::size_t kFirstGuest = 2;
  static constexpr std::size_t kGuests = 14;
  static constexpr std::size_t kSecondCarrier = kFirstGuest + kGuests;
  [[nodiscard]] static std::size_t participant_of_carrier(std::size_t number) noexcept {
    return number == 0 ? 0 : kSecondCarrier + number - 1;
  }
  [[nodiscard]] std::size_t participant_of(base::SessionId id) const noexcept {
    return participant_of_carrier(checkpoint_threads_) + id;
  }
  // How many threads carry objects home, at least one.
  [[nodiscard]] std::size_t checkpoint_threads() const noexcept { return checkpoint_threads_; }
  // Returns when everyone pinned now has unpinned. REQUIRES: not pinned.
  void wait_for_grace();
  // A guest's place among the participants, or 0 if all are taken.
  std::size_t enter_guest() noexcept;
  void leave_guest(const Actor& guest) noexcept;

  // The session the library itself writes watermarks with.
  static constexpr base::SessionId kOwnSession = 0;
  static_assert(pool::kOwnSessions == 1);

  // Fixed at opening, and without what recovery calls.
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] const pool::Layout& layout() const noexcept { return file_->layout(); }
  [[nodiscard]] const std::string& path() const noexcept { return file_->path(); }
  [[nodiscard]] emu::Memory& memory() noexcept { return file_->memory(); }
  [[nodiscard]] std::uint64_t root_offset() const noexcept { return root_offset_; }
  [[nodiscard]] bool logs() const noexcept {
    return options_.policy != CommitPolicy::volatile_only;
  }

  base::EpochDomain& epochs() noexcept { return epochs_; }
  StampClock& clock() noexcept { return clock_; }
  Persister& persister() noexcept { return persister_; }
  index::SlabTable& slabs() noexcept { return slabs_; }
  log::SegmentPool& segments() noexcept { return segments_; }
  VersionDepot& versions() noexcept { return depot_; }
  Flusher& flusher() noexcept { return *flusher_; }
  // The range locks of ranged objects, made on first use.
  RangedLocks& ranged_locks() {
    // acquire pairs with the release in make_ranged_locks().
    RangedLocks* locks = ranged_locks_.load(std::memory_order_acquire);
    return locks != nullptr ? *locks : make_ranged_locks();
  }
  // The shared part of session `id`, made on first use.
  SessionShared& shared(base::SessionId id);
  // All shared parts that exist. Takes the mutex.
  std::vector<SessionShared*> all_shared() const;

  // Calls visit(SessionCore&) for every open session, under the mutex.
  template <class Visitor>
  void for_each_session(Visitor&& visit) {
    const std::lock_guard guard(mutex_);
    for (SessionCore* session : sessions_) visit(*session);
  }

  SerialGate serial_gate;
  // Only where clocks disagree: how many transactions have begun to publish, locks in hand.
  alignas(base::kCacheLine) base::Atomic<std::uint64_t> publishers{0};
  // No stamp up to this one is in flight any more, or will be taken.
  alignas(base::kCacheLine) base::Atomic<base::Stamp> floor;
  // Every transaction with a stamp up to this one is visible and committed: the last floor that a
  // checkpoint has waited for.
  base::Atomic<base::Stamp> settled;
  base::Atomic<std::uint64_t> checkpoint_number;  // of the durable superblock
  base::Atomic<base::Stamp> checkpoint_floor;     // of the same
  Company company;

  // Returns when every commit announced before now has locked what it writes. Who comes to a lone
  // session waits so, having been counted. Errors: std::bad_alloc.
  void await_commits_under_way() const;

  // Errors: nested_transaction, with this message, if this thread runs a body of a session other
  // than `except`.
  void throw_if_inside_body(const SessionCore* except, const char* message);

 private:
  friend class Checkpointer;

  PoolCore(std::shared_ptr<pool::PoolFile> file, const Options& options, RecoveryReport recovery,
           pool::SuperblockImage superblock);
  [[noreturn]] void throw_unusable() const;
  void start();
  void ensure_root();
  void stop_background() noexcept;
  void free_versions() noexcept;
  RangedLocks& make_ranged_locks();
  bool collect_slots(const SessionCore& waiter, bool again);

  const Options options_;
  const std::shared_ptr<pool::PoolFile> file_;
  const RecoveryReport recovery_;
  const int fork_generation_;
  const std::size_t checkpoint_threads_;
  std::uint64_t root_offset_ = 0;

  base::EpochDomain epochs_;
  StampClock clock_;
  Persister persister_;
  index::SlabTable slabs_;
  log::SegmentPool segments_;
  VersionDepot depot_;
  std::unique_ptr<RangedLocks> owned_ranged_locks_;  // guarded by mutex_
  base::Atomic<RangedLocks*> ranged_locks_{nullptr};
  const std::uint64_t generation_;
  pool::SuperblockImage superblock_;       // in force; the checkpointer's after start()
  base::Atomic<std::uint32_t> guests_{0};  // bit i: guest i is in
  std::atomic<std::uint64_t> guest_lines_{0};
  std::atomic<std::uint64_t> guest_fences_{0};

  mutable emu::Mutex mutex_;
  std::vector<std::unique_ptr<SessionShared>> shared_;  // by id; guarded by mutex_
  std::vector<bool> session_open_;                      // by id; guarded by mutex_
  std::vector<SessionCore*> sessions_;                  // open ones; guarded by mutex_
  SessionStatistics closed_sessions_;                   // guarded by mutex_
  bool closing_ = false;                                // guarded by mutex_

  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<Flusher> flusher_;
};

}  // namespace sp3::runtime

// Persister: steps 4 and 5 of the commit protocol for any session, by whoever needs them done.
//
// flush() makes a session's sealed records durable; advance() commits what is durable and whose
// predecessors are committed; wait() does both, for a session and for those it depends on, until a
// stamp is committed.
//
// Thread safety: any thread, each with its own Actor. Helping is lock-free: several may flush the
// same records; every one of them raises `persisted` only after its own fence, and only to what it
// flushed.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <sp3/error.h>

#include "base/atomic.h"
#include "base/counter.h"
#include "base/epoch.h"
#include "base/mutant.h"
#include "emu/memory.h"
#include "emu/step.h"
#include "emu/threads.h"
#include "emu/touch.h"
#include "runtime/session_shared.h"

namespace sp3::runtime {

// Who flushes and waits. REQUIRES: not pinned when it enters wait().
struct Actor {
  std::size_t participant = 0;  // in the epoch domain
  emu::FlushCounts counts;
  // A session's: which, and how much of `counts` went to its own records while it waited.
  const SessionShared* own = nullptr;
  std::uint64_t own_lines = 0;
  std::uint64_t own_fences = 0;
};

class Persister {
 public:
  Persister(emu::Memory& memory, base::EpochDomain& epochs, const std::string& path,
            std::size_t sessions)
      : memory_(memory),
        epochs_(epochs),
        path_(path),
        without_memory_(std::make_exception_ptr(failure("no memory to say what failed"))),
        sessions_(std::make_unique<base::Atomic<SessionShared*>[]>(sessions)) {}

  void add(SessionShared& session) {
    sessions_[session.id].store(&session, std::memory_order_release);
  }
  // The session, or null if it was never opened in this generation.
  [[nodiscard]] SessionShared* session(base::SessionId id) const noexcept {
    return sessions_[id].load(std::memory_order_acquire);
  }

  // Everything of the session up to this stamp is committed.
  [[nodiscard]] base::Stamp committed_stamp(base::SessionId id) const noexcept {
    // acquire: what the transaction wrote is durable before we say so to anyone.
    return session(id)->mark.committed_stamp.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool is_committed(base::Tid tid) const noexcept {
    return committed_stamp(tid.session) >= tid.stamp;
  }

  // Flushes everything `session` has sealed so far. An owner that is about to flush a record of its
  // own raises session.flushing before it seals, so that helpers leave it alone.
  // A failure poisons the pool.
  void flush(SessionShared& session, Actor& actor, bool owner);

  // The owner's, after it has flushed the last item itself: fences, and raises persisted to it.
  // REQUIRES: everything before the last item is persisted.
  void fence_last(SessionShared& session, Actor& actor);

  // The owner's: commits the last item if nothing stands in its way any more. REQUIRES: it is
  // published, has this stamp and these predecessors.
  bool commit_last(SessionShared& session, base::Stamp stamp,
                   std::span<const base::Tid> dependencies);

  // Commits as many of the session's items as can be, and says why no more.
  enum class Advanced : std::uint8_t { everything, not_persisted, blocked };
  struct Progress {
    Advanced end;
    base::Tid blocked_on;  // a predecessor that is not committed, if it is blocked
  };
  Progress advance(SessionShared& session);

  // Returns when `tid` is committed. Errors: outcome_unknown.
  void wait(base::Tid tid, Actor& actor);

  // After a failed flush or fence nothing more can be known durable. Of several failures the first
  // is told to everybody: by its `cause` if there is one, or else by its errno.
  void poison(int error, std::exception_ptr cause = nullptr) noexcept;
  [[nodiscard]] bool is_poisoned() const noexcept {
    return poisoned_.load(std::memory_order_relaxed) != 0;  // relaxed: seen soon enough
  }
  // Errors: outcome_unknown if the pool is poisoned.
  void throw_if_poisoned() const;

 private:
  void raise_persisted(SessionShared& session, std::uint64_t number, base::Lsn lsn, Actor& actor);
  struct Flushed {
    emu::IoStatus status;
    std::uint64_t upto;  // the last item that needs no more flushing
    base::Lsn lsn;       // of the last record among those flushed, 0 if there is none
  };
  std::uint64_t take_blocks(SessionShared& session, std::uint64_t from);
  Flushed flush_items(SessionShared& session, std::uint64_t from, std::uint64_t upto, bool owner,
                      Actor& actor);
  struct Ahead {
    std::uint64_t upto;           // the last item that can be committed
    base::Stamp stamp;            // its stamp
    std::optional<Progress> end;  // why no more
  };
  Ahead look_ahead(const SessionShared& session, std::uint64_t done) const;
  std::optional<base::Tid> uncommitted_predecessor(const SessionShared& session,
                                                   const log::PendingItem& item,
                                                   std::uint64_t done) const;
  void help_once(base::Tid tid, Actor& actor, bool patient);
  void help_flush(SessionShared& session, Actor& actor);
  [[noreturn]] void throw_cause(int error) const;
  [[nodiscard]] Error failure(const char* found) const;

  emu::Memory& memory_;
  base::EpochDomain& epochs_;
  const std::string& path_;
  // Of a transaction that others may have seen nobody may hear std::bad_alloc, as if it had not
  // been.
  const std::exception_ptr without_memory_;
  std::unique_ptr<base::Atomic<SessionShared*>[]> sessions_;
  emu::Mutex poisoning_;
  std::exception_ptr cause_;       // written before poisoned_, and never again
  base::Atomic<int> poisoned_{0};  // errno
};

// The last steps of a commit that meets nobody.

[[gnu::always_inline]] inline void Persister::fence_last(SessionShared& session, Actor& actor) {
  emu::step(emu::Step::log_fence);
  // (P1) as in raise_persisted().
  const emu::IoStatus status = base::mutant(base::Mutant::no_fence_own_record)
                                   ? emu::IoStatus{}
                                   : memory_.fence(actor.counts);
  if (status.ok() || base::mutant(base::Mutant::failed_sync_is_forgotten)) {
    // Plain stores: nobody can have raised the numbers beyond the owner's last item.
    emu::touch(emu::Line::session_persisted, session.id, emu::Access::store);
    session.persisted_lsn.store(session.log.next_lsn() - 1, std::memory_order_release);
    // relaxed: the owner's own.
    session.persisted.store(session.sealed.load(std::memory_order_relaxed),
                            std::memory_order_release);
  } else {
    poison(status.error);
  }
  session.flushing.store(false, std::memory_order_release);
}

[[gnu::always_inline]] inline bool Persister::commit_last(SessionShared& session, base::Stamp stamp,
                                                          std::span<const base::Tid> dependencies) {
  // relaxed: only the owner seals, and the others only raise towards what it has sealed.
  const std::uint64_t last = session.sealed.load(std::memory_order_relaxed);
  if (session.persisted.load(std::memory_order_relaxed) != last) return false;
  // acquire: as in advance().
  if (session.committed.load(std::memory_order_acquire) + 1 < last) return false;
  for (const base::Tid& tid : dependencies) {
    if (!is_committed(tid) && !base::mutant(base::Mutant::committed_when_persisted)) return false;
  }
  emu::step(emu::Step::commit_committed);
  // Stamp before number, as in advance(); plain stores, as in fence_last().
  emu::touch(emu::Line::session_committed, session.id, emu::Access::store);
  session.mark.committed_stamp.store(stamp, std::memory_order_release);
  emu::interleave();
  session.committed.store(last, std::memory_order_release);
  return true;
}

}  // namespace sp3::runtime

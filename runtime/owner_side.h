// OwnerSide: what only a session's owner does to its shared part: it announces a transaction to the
// checkpointer, takes its stamp, puts its item into the ring.
//
//   try_announce -> take_stamp -> the record is stored in the log -> put -> seal -> withdraw
//
// Two ask of each other, and each stores before it looks (Dekker): the owner, whether a checkpoint
// has a floor that its stamp must exceed; the checkpointer, whether a stamp up to it is in flight.
// Commits are many and checkpoints few, so the fences are of unequal cost (base/fence.h).
//
//   owner                                        Checkpointer::raise_floor
//   (1) announced: idle -> pending               (2) floor = f
//       light fence                                  heavy fence
//   (3) loads floor                              (4) loads announced
//
// Either (3) sees f, and the stamp is larger; or (4) sees the announcement, and the checkpointer
// waits until a stamp above f is announced or the announcement is withdrawn. Withdrawing is a
// release, which (4) acquires: the record, if there is one, is in the log before that is read.
//
// Two more look in the same way whether somebody is announced: the checkpointer when it takes a
// session's last run away, having set `held`, and who comes to a lone session (runtime/company.h).
//
// Thread safety: one thread at a time: the user's for SessionCore's, the flusher's for the session
// of the library's own. What of it other cores wait for, SessionCore tells the simulated machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/fence.h"
#include "base/mutant.h"
#include "base/tid.h"
#include "emu/touch.h"
#include "runtime/session_shared.h"

namespace sp3::runtime {

class OwnerSide {
 public:
  explicit OwnerSide(SessionShared& shared) noexcept : shared_(shared) {}

  // (1) False for the instant in which the checkpointer takes the session's last run away.
  bool try_announce() noexcept {
    SP3_ASSERT(!announced_);
    // relaxed: the fence orders it.
    shared_.announced.store(kPending, std::memory_order_relaxed);
    base::light_fence();
    emu::interleave();
    announced_ = true;
    // acquire: what it did to the log is done.
    if (!shared_.held.load(std::memory_order_acquire)) [[likely]]
      return true;
    withdraw();
    return false;
  }
  [[nodiscard]] bool is_announced() const noexcept { return announced_; }

  // REQUIRES: is_announced().
  void withdraw() noexcept {
    SP3_ASSERT(announced_);
    announced_ = false;
    shared_.announced.store(kIdle, std::memory_order_release);
  }

  // A stamp that is not below `now`, a reading of the clock, and larger than the session's last,
  // `above` and, if it is announced, every floor that was raised without waiting for it.
  base::Stamp take_stamp(base::Stamp now, const base::Atomic<base::Stamp>& floor,
                         base::Stamp above) noexcept;
  // The stamp of a mark, an item that leaves nothing in the log. It neither asks for the floor nor
  // is announced: no object carries it and no record has it, so a checkpoint whose floor is above
  // it misses nothing. It is larger than the session's last because items commit in stamp order.
  base::Stamp take_mark_stamp() noexcept {
    const base::Stamp stamp = last_stamp() + 1;
    shared_.last_stamp.store(stamp, std::memory_order_relaxed);
    return stamp;
  }

  // The next item. REQUIRES: the ring has room; the record is stored.
  void put(const log::PendingItem& item, std::span<const base::Tid> dependencies) noexcept {
    shared_.ring.push(sealed() + 1, item, dependencies);
  }
  // Tells of the item that was put. `published`: its versions are visible, or it has none.
  void seal(bool published) noexcept {
    const std::uint64_t number = sealed() + 1;
    // release, both: who sees the number sees the item, its record and its versions.
    if (published) shared_.published.store(number, std::memory_order_release);
    shared_.sealed.store(number, std::memory_order_release);
  }
  // The versions of the last item are visible as of now.
  void publish_last() noexcept { shared_.published.store(sealed(), std::memory_order_release); }

 private:
  // relaxed, both: only the owner stores them. The checkpointer waits for a session whose last
  // stamp it sees too late.
  [[nodiscard]] base::Stamp last_stamp() const noexcept {
    return shared_.last_stamp.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t sealed() const noexcept {
    return shared_.sealed.load(std::memory_order_relaxed);
  }

  SessionShared& shared_;
  bool announced_ = false;
};

inline base::Stamp OwnerSide::take_stamp(base::Stamp now, const base::Atomic<base::Stamp>& floor,
                                         base::Stamp above) noexcept {
  using base::Mutant;
  const base::Stamp raised = floor.load(std::memory_order_acquire);  // (3)
  const base::Stamp stamp =
      std::max({now, last_stamp() + 1, above + 1,
                base::mutant(Mutant::stamp_not_above_floor) ? 0 : raised + 1});
  SP3_CHECK(stamp <= base::kMaxStamp);
  shared_.last_stamp.store(stamp, std::memory_order_relaxed);
  // release: as for withdrawing; the checkpointer goes on when it sees a stamp above its floor, and
  // who comes to a lone session when it sees any: the locks are taken.
  if (announced_) shared_.announced.store(stamp, std::memory_order_release);
  return stamp;
}

}  // namespace sp3::runtime

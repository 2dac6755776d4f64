// SessionShared: the part of a session that other sessions and the checkpointer see.
//
// It lives as long as the pool is open, so its numbers only grow, even when sessions are closed and
// their id is used again.
//
// Progress of the session's items (log/pending_ring.h):
//
//     committed <= published, committed <= persisted <= sealed
//
//   sealed     the owner has stored the record in the log
//   published  the owner has made its versions visible (before sealed, unless conservative)
//   persisted  its bytes are durable: raised by the owner or a helper, after a fence
//   committed  and so is everything it depends on: the only thing that may be acknowledged
//
// Stamps announced to the checkpointer:
//
//     0 idle --owner--> 1 pending --owner--> stamp --owner--> 0
#pragma once

#include <cstdint>
#include <optional>

#include "base/align.h"
#include "base/atomic.h"
#include "base/scaled.h"
#include "base/tid.h"
#include "log/pending_ring.h"
#include "log/session_log.h"
#include "runtime/commit_mark.h"

namespace sp3::runtime {

class PoolCore;

inline constexpr base::Stamp kIdle = 0;
inline constexpr base::Stamp kPending = 1;
inline constexpr base::Stamp kFirstStamp = 8;  // real stamps are larger than the markers above

struct SessionShared {
  // Items in flight at most: enough for a few asynchronous groups. Simulated programs are short,
  // and are to use each slot of the ring again.
  static constexpr std::uint32_t kItems = 1024;
  static std::uint32_t items() noexcept { return base::scaled(kItems, 8U, 4U); }

  SessionShared(PoolCore& pool, base::SessionId session, emu::Memory& memory,
                const pool::Layout& layout, log::SegmentPool& segments, std::uint64_t generation,
                std::uint32_t seed)
      : core(&pool),
        id(session),
        ring(items(), items() + 4 * layout.max_sessions),
        log(memory, layout, segments, session, generation, seed),
        mark(CommitMark::take(*this)) {}
  // relaxed: the pool's threads are gone.
  ~SessionShared() {
    mark.retire(committed.load(std::memory_order_relaxed) ==
                sealed.load(std::memory_order_relaxed));
  }
  SessionShared(const SessionShared&) = delete;
  SessionShared& operator=(const SessionShared&) = delete;

  // The LSN of the last record with a stamp up to `floor`, 0 if there is none; nothing if the ring
  // has forgotten it, as so many items came after it. REQUIRES: no record up to the floor is still
  // to come.
  [[nodiscard]] std::optional<base::Lsn> last_sealed_up_to(base::Stamp floor) const noexcept;

  alignas(base::kCacheLine) base::Atomic<std::uint64_t> committed{0};

  alignas(base::kCacheLine) base::Atomic<std::uint64_t> sealed{0};
  base::Atomic<std::uint64_t> published{0};
  // The last item whose transaction did not wait for it: others may have to flush it.
  base::Atomic<std::uint64_t> left_to_group{0};

  alignas(base::kCacheLine) base::Atomic<std::uint64_t> persisted{0};
  base::Atomic<base::Lsn> persisted_lsn{0};
  // A hint that somebody is flushing. Who looks for something to flush sets it by a locked RMW
  // (persister.cc); an owner that is about to seal, and knows, by a plain store.
  base::Atomic<bool> flushing{false};

  // The first record that recovery still needs, by the superblock in force; the checkpointer's.
  base::Atomic<base::Lsn> head{1};

  alignas(base::kCacheLine) base::Atomic<base::Stamp> announced{kIdle};
  base::Atomic<bool> held{false};  // by the checkpointer: the owner may not announce itself
  base::Atomic<base::Stamp> last_stamp{kFirstStamp};  // the largest this session has taken

  PoolCore* const core;
  const base::SessionId id;
  log::PendingRing ring;
  log::SessionLog log;
  // The stamp up to which everything is committed. Last: who has taken one must give it back.
  CommitMark& mark;
};

inline std::optional<base::Lsn> SessionShared::last_sealed_up_to(base::Stamp floor) const noexcept {
  for (std::uint64_t n = sealed.load(std::memory_order_acquire); n != 0; --n) {
    const log::PendingItem item = ring.read(n);
    // Its slot may hold a later item by now, or one that is being pushed: then those before that
    // one are sealed, and we see it, since the slot's fields were loaded with acquire.
    if (sealed.load(std::memory_order_acquire) + 1 >= n + ring.capacity()) return std::nullopt;
    if (item.stamp <= floor) return item.lsn;
  }
  return 0;
}

}  // namespace sp3::runtime

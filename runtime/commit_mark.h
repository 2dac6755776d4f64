// CommitMark: how far a session's transactions are committed, for those who depend on them and for
// the holders of tickets.
//
// Never freed: a ticket points here without counting references, and may outlive its session and
// its pool. When a pool is closed with everything durable its marks are used again, in a new
// generation, and a ticket of an older one knows that its transaction is durable. The marks of a
// pool that went away otherwise are kept for their tickets alone.
//
// Thread safety: take() and retire() lock-free by any thread; retire() once, after the session's
// last commit.
#pragma once

#include <cstdint>

#include "base/align.h"
#include "base/atomic.h"
#include "base/tid.h"

namespace sp3::runtime {

struct SessionShared;

struct alignas(base::kCacheLine) CommitMark {
  // Read by everybody who depends on the session.
  base::Atomic<base::Stamp> committed_stamp{0};
  base::Atomic<std::uint64_t> generation{0};
  base::Atomic<SessionShared*> session{nullptr};  // null once the pool is gone

  // Whether a transaction of the session is durable. It stays so.
  [[nodiscard]] bool covers(base::Stamp stamp, std::uint64_t of_generation) const noexcept {
    // acquire: whoever learns that it is durable may act on it. A mark that is used again meanwhile
    // belonged to a pool in which everything was durable, so either order of the two will do.
    return committed_stamp.load(std::memory_order_acquire) >= stamp ||
           generation.load(std::memory_order_acquire) != of_generation;
  }

  static CommitMark& take(SessionShared& session);
  // The session's pool goes away. `all_durable`: nothing it sealed is uncommitted.
  void retire(bool all_durable) noexcept;

 private:
  static void push(base::Atomic<CommitMark*>& list, CommitMark* first, CommitMark* last) noexcept;

  CommitMark* next_ = nullptr;  // in one of the lists below

  static base::Atomic<CommitMark*> spare_;
  // Reachable, so that leak checkers see that they are meant.
  static base::Atomic<CommitMark*> lost_;
};

}  // namespace sp3::runtime

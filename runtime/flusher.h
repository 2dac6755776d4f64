// Flusher: the background thread that bounds how long a sealed record stays unflushed, and how long
// a durable one stays without a durable watermark.
//
// - An asynchronous group that does not fill is flushed one to two times
//   AsyncOptions::group_microseconds after it was begun. Where all transactions are synchronous it
//   sleeps: whoever wakes up in the middle of them takes a core from one.
// - One to two times Options::watermark_ms after a session has gone idle, a watermark record in the
//   library's own session says how far its log is durable. From then on a damaged record of it is
//   damage, not a torn tail. A busy session gets one for each run of its log and after each
//   checkpoint, so that a run whose header is damaged is missed.
// - A transaction that stays open beyond Options::long_transaction_ms is counted, by looking from
//   outside, so that short ones pay nothing for it.
//
// Thread safety: expect_group() by any thread; start and stop by one.
#pragma once

#include <cstdint>
#include <vector>

#include "base/atomic.h"
#include "base/fence.h"
#include "emu/threads.h"
#include "log/record_builder.h"
#include "runtime/owner_side.h"
#include "runtime/persister.h"

namespace sp3::runtime {

class PoolCore;

class Flusher {
 public:
  explicit Flusher(PoolCore& pool);
  ~Flusher();  // stops

  void start();
  void stop() noexcept;

  // Of the session's owner, who has sealed something it will not flush now.
  void expect_group(SessionShared& session) noexcept {
    // relaxed, both: the owner's own; the fence orders them.
    session.left_to_group.store(session.sealed.load(std::memory_order_relaxed),
                                std::memory_order_relaxed);
    // Between what was left and the look at the flag: see look_for_groups().
    base::light_fence();
    if (!group_expected_.load(std::memory_order_relaxed)) [[unlikely]]
      wake();
  }

  [[nodiscard]] std::uint64_t lines() const noexcept { return lines_.get(); }
  [[nodiscard]] std::uint64_t fences() const noexcept { return fences_.get(); }
  // Of watermarks.
  [[nodiscard]] std::uint64_t log_bytes() const noexcept { return log_bytes_.get(); }
  [[nodiscard]] std::uint64_t long_transactions() const noexcept {
    return long_transactions_.get();
  }
  [[nodiscard]] base::SessionId long_transaction_session() const noexcept {
    return long_session_.load(std::memory_order_relaxed);  // relaxed: a hint for people
  }

 private:
  // Per session, what the last look found.
  struct Look {
    std::uint64_t sealed = 0;                     // at the last look for groups
    std::uint64_t sealed_at_watermarks = 0;       // when they were last written
    base::Lsn watermark = 0;                      // covered by a durable watermark
    std::uint64_t round = 0;                      // of looks for long transactions
    std::uint64_t attempts = 0;                   // by then
    emu::SteadyClock::time_point attempt_seen{};  // when this attempt was first met
    bool counted = false;                         // as a long one
  };

  void wake() noexcept;
  void work();
  void look_for_groups(bool expected);
  bool flush_groups();
  void write_watermarks();
  void look_for_long_transactions();
  bool seal_watermark(const std::vector<base::Tid>& marks, base::Stamp newest);

  PoolCore& pool_;
  SessionShared& own_;
  OwnerSide owner_;  // of own_
  Actor actor_;
  log::RecordBuilder record_;
  std::vector<Look> looks_;
  std::uint64_t round_ = 1;  // so that the first one knows of none before
  const emu::SteadyClock::duration group_period_;
  emu::SteadyClock::time_point next_look_{};  // for groups
  int quiet_looks_ = 0;                       // in a row, which have found none
  base::Counter lines_;
  base::Counter fences_;
  base::Counter log_bytes_;
  base::Counter long_transactions_;
  base::Atomic<base::SessionId> long_session_{0};

  base::Atomic<bool> group_expected_{false};
  emu::Mutex mutex_;
  emu::ConditionVariable wake_up_;
  bool stopping_ = false;  // guarded by mutex_
  emu::Thread thread_;
};

}  // namespace sp3::runtime

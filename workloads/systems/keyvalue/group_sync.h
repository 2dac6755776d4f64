// GroupSync: gives a store whose commits are not durable by themselves the loss window of sp3's
// asynchronous commit, by the same rules. What a client committed is synced when it has put as many
// records or bytes as AsyncOptions says, by itself. Each time that as much time has passed, a
// thread of GroupSync's own syncs what had been committed the last time and is not durable yet
// (runtime/flusher.cc). Whoever syncs, a client's next record after its last durable one begins a
// new group.
//
// Thread safety: all members by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>

#include <sp3/options.h>

#include "emu/shared_sync.h"
#include "emu/threads.h"

namespace sp3::workloads::keyvalue {

class GroupSync {
 public:
  // `sync` makes everything committed before it durable.
  GroupSync(const AsyncOptions& window, std::function<void()> sync);
  ~GroupSync();
  GroupSync(const GroupSync&) = delete;
  GroupSync& operator=(const GroupSync&) = delete;

  // What one client committed since the last sync it waited for.
  struct Pending {
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;
    std::uint64_t newest = 0;  // of its commits, by commits_
  };

  // After each commit of a record of `bytes`.
  void committed(Pending& pending, std::uint64_t bytes);
  // Everything the client committed is durable when it returns. One sync serves all who wait.
  void flush(Pending& pending);

  // Syncs that the own thread asked for; each is one call of `sync`, or less if it was shared.
  [[nodiscard]] std::uint64_t timed_syncs() const;

 private:
  void sync_by_time();
  void sync_once();

  const AsyncOptions window_;
  const std::function<void()> sync_;
  emu::SharedSync shared_;

  // relaxed: a commit that the thread overlooks is found a window later.
  std::atomic<std::uint64_t> commits_{0};
  std::atomic<std::uint64_t> durable_{0};  // of them; at least
  std::atomic<std::uint64_t> timed_syncs_{0};
  mutable emu::Mutex mutex_;  // guards stopping_ and failure_
  emu::ConditionVariable wake_;
  bool stopping_ = false;
  std::exception_ptr failure_;
  emu::Thread thread_;
};

}  // namespace sp3::workloads::keyvalue

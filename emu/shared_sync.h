// SharedSync: one fdatasync for all threads that wait for one.
//
// Thread safety: all members by any thread.
// Invariants:
//   1. At most one sync runs at a time; they are numbered from 1 in the order they start.
//   2. wait() returns 0 only if a sync that started after the call succeeded, and none before it
//      failed.
//   3. The first failure is final: every sync from then on is reported as failed, because after a
//      failed fdatasync nobody knows which dirty pages the kernel has dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "emu/threads.h"

namespace sp3::emu {

class SharedSync {
 public:
  // `sync` returns 0 or an errno.
  explicit SharedSync(std::function<int()> sync) : sync_(std::move(sync)) {}

  // Everything written before the call is durable when this returns 0; else the errno of the sync.
  // Blocks for at most two syncs: the one under way and the next.
  [[nodiscard]] int wait();

  // Syncs started so far.
  [[nodiscard]] std::uint64_t syncs() const;

 private:
  const std::function<int()> sync_;
  mutable Mutex mutex_;  // guards all below
  ConditionVariable finished_one_;
  std::uint64_t started_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t first_failed_ = ~std::uint64_t{0};
  int error_ = 0;  // of sync number first_failed_
};

}  // namespace sp3::emu

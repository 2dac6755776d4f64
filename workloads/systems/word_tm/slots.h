// What clients of the re-implemented peers have in common: one of the places of their store, and
// what they count.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>

#include <sp3/error.h>

#include "emu/memory.h"
#include "emu/threads.h"
#include "workloads/system.h"

namespace sp3::workloads::word_tm {

// Which places are taken. Thread safety: any thread.
template <std::size_t count>
class Slots {
 public:
  // The first free one; `prepare` is called with it by one thread at a time. Errors:
  // too_many_sessions.
  template <class Prepare>
  std::size_t take(const Prepare& prepare) {
    const std::lock_guard guard(mutex_);
    const auto free = std::ranges::find(taken_, false);
    if (free == taken_.end()) {
      throw Error(ErrorCode::too_many_sessions, "every slot of the store is taken");
    }
    *free = true;
    const auto slot = static_cast<std::size_t>(free - taken_.begin());
    prepare(slot);
    return slot;
  }

  void give_back(std::size_t slot) noexcept {
    const std::lock_guard guard(mutex_);
    taken_[slot] = false;
  }

 private:
  emu::Mutex mutex_;  // guards what follows
  std::array<bool, count> taken_{};
};

// Thread safety: one thread.
template <std::size_t count>
class SlotClient {
 public:
  // Errors: too_many_sessions.
  template <class Prepare>
  SlotClient(Slots<count>& slots, const Prepare& prepare)
      : slots_(slots), slot_(slots.take(prepare)) {}
  ~SlotClient() { slots_.give_back(slot_); }
  SlotClient(const SlotClient&) = delete;
  SlotClient& operator=(const SlotClient&) = delete;

  [[nodiscard]] ClientCounters counters() const {
    ClientCounters all = counters_;
    all.lines = flushes_.lines;
    all.fences = flushes_.fences;
    return all;
  }

 private:
  Slots<count>& slots_;

 protected:
  std::size_t slot_;
  ClientCounters counters_;
  emu::FlushCounts flushes_;
};

}  // namespace sp3::workloads::word_tm

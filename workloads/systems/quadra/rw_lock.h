// WriterPreferenceLock: a reader-writer lock whose readers do not meet.
//
// Every reader announces itself in a slot of its own line; a writer takes one flag and waits until
// no slot is set. Readers that find the flag step back, so writers come first. Readers and the
// writer use the pattern of Dekker: each stores its own word, then loads the other's, all seq_cst.
//
// Thread safety: a slot belongs to one thread at a time, and is counted by use_slot before.
// Progress: blocking; a reader may starve while writers keep coming.
// Source: C-RW-WP of Calciu, Dice, Lev, Luchangco, Marathe and Shavit, "NUMA-Aware Reader-Writer
// Locks", PPoPP 2013, with a plain flag as the writers' lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "emu/spin.h"
#include "workloads/systems/word_tm/waiting.h"

namespace sp3::workloads::quadra {

class WriterPreferenceLock {
 public:
  static constexpr std::size_t kSlots = 1024;

  // From now on writers look at `slot`. REQUIRES: slot < kSlots; one caller at a time.
  void use_slot(std::size_t slot) noexcept {
    // relaxed: only callers change it.
    if (slot >= slots_in_use_.load(std::memory_order_relaxed)) {
      slots_in_use_.store(slot + 1, std::memory_order_seq_cst);  // before any lock_shared
    }
  }
  // Slots below this have been used.
  [[nodiscard]] std::size_t slots_in_use() const noexcept {
    return slots_in_use_.load(std::memory_order_seq_cst);
  }

  void lock_shared(std::size_t slot) noexcept {
    std::atomic<bool>& reading = slots_[slot].reading;
    for (;;) {
      reading.store(true, std::memory_order_seq_cst);  // Dekker with try_lock
      if (!writing_.load(std::memory_order_seq_cst)) return;
      reading.store(false, std::memory_order_release);
      // relaxed: only a hint; the next round looks again.
      for (emu::Spin spin; writing_.load(std::memory_order_relaxed);) {
        spin.pause_or_offer(word_tm::kWaitingRounds);
      }
    }
  }

  // (1) release pairs with (2): the next writer sees that the reads are done.
  void unlock_shared(std::size_t slot) noexcept {
    slots_[slot].reading.store(false, std::memory_order_release);
  }

  // Fails if there is another writer; else waits for the readers to leave.
  bool try_lock() noexcept {
    // relaxed: only a hint that saves the exchange.
    if (writing_.load(std::memory_order_relaxed)) return false;
    if (writing_.exchange(true, std::memory_order_seq_cst)) return false;  // Dekker, (4)
    // After the exchange: a reader in a slot that is not counted yet will see the flag.
    const std::size_t slots = slots_in_use();
    for (std::size_t i = 0; i < slots; ++i) {
      // (2) acquire pairs with (1), inside seq_cst.
      for (emu::Spin spin; slots_[i].reading.load(std::memory_order_seq_cst);) {
        spin.pause_or_offer(word_tm::kWaitingRounds);
      }
    }
    return true;
  }

  // (3) release pairs with (4) and with the readers' load.
  void unlock() noexcept { writing_.store(false, std::memory_order_release); }

 private:
  struct alignas(128) Slot {
    std::atomic<bool> reading{false};
  };

  alignas(128) std::atomic<bool> writing_{false};
  alignas(128) std::atomic<std::size_t> slots_in_use_{0};
  std::array<Slot, kSlots> slots_;
};

}  // namespace sp3::workloads::quadra

// SpinLock: a lock for a few instructions.
//
// It looks before it tries again (test and test-and-set), so that those who wait do not take the
// line from each other. Whoever waits long offers its core (emu/spin.h).
//
// Thread safety: any thread; lock(), try_lock() and unlock() as of a std::mutex, but any thread may
// unlock what another has locked.
#pragma once

#include "base/atomic.h"
#include "emu/spin.h"

namespace sp3::emu {

class SpinLock {
 public:
  void lock() noexcept {
    for (Spin spin; !try_lock();) {
      // relaxed: try_lock() decides.
      while (locked_.load(std::memory_order_relaxed)) spin.pause();
    }
  }
  // Never fails for no reason.
  bool try_lock() noexcept {
    // acquire pairs with the release in unlock.
    return !locked_.exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  base::Atomic<bool> locked_{false};
};

}  // namespace sp3::emu

// Entry: the 16 bytes of DRAM that stand for one object.
//
//     63                                                                    1 0
//    +------------------------------------------------------------------------+-+
//    |                              stamp                                     |L|  word0
//    +----------------+-----------------------------------------------------------+
//    |    session     |            pointer to the newest version              |   word1
//    +----------------+-----------------------------------------------------------+
//     63            48 47                                                       0
//
// - All zero: at home, committed long ago.
// - <stamp, session> names the transaction that wrote the newest version; it is the version. Stamps
//   of one object only grow, so equal word0 means equal version.
// - L: locked by a committing transaction, or for an instant by the checkpointer.
// - pointer 0: the newest version is the home copy, if the slab's home bitmap says there is one;
//   kTombstone: the object is destroyed.
//
// A reader takes word0, word1, word0; a writer locks, stores word1, then stores word0 unlocked.
// The pairs: (1) word1's release store is read by (2) an acquire load, after which the reader's
// second load of word0 must see the lock or something newer.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include "base/assert.h"
#include "base/atomic.h"
#include "base/prefetch.h"
#include "base/tid.h"
#include "emu/touch.h"

namespace sp3::index {

inline constexpr std::uint64_t kLock = 1;
inline constexpr std::uint64_t kPointerMask = (std::uint64_t{1} << 48) - 1;
inline constexpr std::uint64_t kTombstone = 1;

// The two words as they were at one instant.
struct Seen {
  std::uint64_t word0 = 0;
  std::uint64_t word1 = 0;

  [[nodiscard]] bool locked() const { return (word0 & kLock) != 0; }
  [[nodiscard]] base::Stamp stamp() const { return word0 >> 1; }
  [[nodiscard]] base::SessionId session() const {
    return static_cast<base::SessionId>(word1 >> 48);
  }
  [[nodiscard]] std::uint64_t pointer() const { return word1 & kPointerMask; }
  [[nodiscard]] bool at_home() const { return pointer() == 0; }
  [[nodiscard]] bool destroyed() const { return pointer() == kTombstone; }
  // The version in DRAM. REQUIRES: !at_home() && !destroyed().
  [[nodiscard]] std::byte* version() const { return reinterpret_cast<std::byte*>(pointer()); }
};

constexpr std::uint64_t pack_word0(base::Stamp stamp) { return stamp << 1; }
constexpr std::uint64_t pack_word1(base::SessionId session, std::uint64_t pointer) {
  return static_cast<std::uint64_t>(session) << 48 | pointer;
}

class alignas(2 * sizeof(std::uint64_t)) Entry {
 public:
  // A consistent, unlocked pair; false if it is locked or changed under our eyes.
  bool try_read(Seen& seen) const noexcept {
    seen.word0 = word0_.load(std::memory_order_acquire);
    if (seen.locked()) return false;
    emu::interleave();
    seen.word1 = word1_.load(std::memory_order_acquire);  // (2)
    // relaxed: (2) orders it; equal stamps mean that word1 belongs to them.
    return word0_.load(std::memory_order_relaxed) == seen.word0;
  }

  [[nodiscard]] std::uint64_t word0() const noexcept {
    return word0_.load(std::memory_order_acquire);
  }

  // Whether the newest published version is the home copy; a version may be published as we look.
  [[nodiscard]] bool points_home() const noexcept {
    // acquire: pairs with (1), so that what follows sees the version.
    return (word1_.load(std::memory_order_acquire) & kPointerMask) == 0;
  }

  // Asks for the line as a writer, so that locking it after reading need not ask again.
  void prefetch_for_lock() const noexcept { base::prefetch_for_write(this); }

  // Where the newest version seems to be, for a prefetch; null for the home copy.
  [[nodiscard]] const std::byte* newest_version() const noexcept {
    // relaxed: nothing is read through it.
    return reinterpret_cast<const std::byte*>(word1_.load(std::memory_order_relaxed) &
                                              kPointerMask);
  }

  // Locks the entry if word0 is still `unlocked`. On failure *found is what it was.
  // acquire: what the previous writer published is ours to read. seq_cst, store buffering: a commit
  // locks what it writes, then looks whether what it has read still holds. Of two that have each
  // read what the other writes, one must see the other's lock.
  bool try_lock(std::uint64_t unlocked, std::uint64_t* found) noexcept {
    SP3_ASSERT((unlocked & kLock) == 0);
    std::uint64_t expected = unlocked;
    if (word0_.compare_exchange_strong(expected, unlocked | kLock, std::memory_order_seq_cst))
      return true;
    *found = expected;
    return false;
  }

  // The same where nobody else locks entries: plain stores wait for none before them.
  bool try_lock_alone(std::uint64_t unlocked) noexcept {
    // relaxed, both: only the caller's own stores; publish() and unlock() release.
    if (word0_.load(std::memory_order_relaxed) != unlocked) return false;
    emu::interleave();
    word0_.store(unlocked | kLock, std::memory_order_relaxed);
    return true;
  }

  // The words of the version that is locked. REQUIRES: locked by the caller.
  [[nodiscard]] Seen locked_version() const noexcept {
    // relaxed: ours while locked; try_lock has synchronised with whoever published it.
    return {word0_.load(std::memory_order_relaxed) & ~kLock,
            word1_.load(std::memory_order_relaxed)};
  }

  // Undoes try_lock without a change. REQUIRES: locked by the caller.
  void unlock(std::uint64_t unlocked) noexcept {
    SP3_ASSERT(word0_.load(std::memory_order_relaxed) == (unlocked | kLock));
    word0_.store(unlocked, std::memory_order_release);
  }

  // Installs a new version and releases the lock; returns the word1 it replaced. That may differ
  // from what was read with the same stamp: the checkpointer swings a version home, and retires its
  // DRAM copy, without changing the stamp. REQUIRES: locked by the caller.
  std::uint64_t publish(std::uint64_t word0, std::uint64_t word1) noexcept {
    SP3_ASSERT((word0_.load(std::memory_order_relaxed) & kLock) != 0);
    const std::uint64_t old = word1_.load(std::memory_order_relaxed);  // relaxed: ours while locked
    word1_.store(word1, std::memory_order_release);                    // (1)
    emu::interleave();
    word0_.store(word0, std::memory_order_release);
    return old;
  }

  // Installs a version without a lock, for CommitPolicy::ideal only; returns the word1 replaced, so
  // that each version is retired once even when two sessions race. Both words at once: the stamp of
  // one session beside the number of another would name a transaction that never was, and whoever
  // depends on it would wait for ever.
  std::uint64_t publish_unlocked(std::uint64_t word0, std::uint64_t word1) noexcept {
    std::uint64_t old0 = word0_.load(std::memory_order_relaxed);  // relaxed: only guesses
    std::uint64_t old1 = word1_.load(std::memory_order_relaxed);
    bool done = false;
#ifdef __SANITIZE_THREAD__  // it does not see the instruction, which releases what came before
    __tsan_release(&word0_);
    __tsan_release(&word1_);
#endif
    while (!done) {  // NOLINT(bugprone-infinite-loop): the instruction sets it
      asm volatile("lock cmpxchg16b %[entry]"
                   : "=@ccz"(done), [entry] "+m"(*this), "+a"(old0), "+d"(old1)
                   : "b"(word0), "c"(word1)
                   : "memory");
    }
    return old1;
  }

 private:
  base::Atomic<std::uint64_t> word0_{0};
  base::Atomic<std::uint64_t> word1_{0};
};
static_assert(sizeof(Entry) == 16);

}  // namespace sp3::index

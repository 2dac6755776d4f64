// EpochDomain: epoch-based reclamation for versions, slabs and log segments.
//
// A participant pins before it follows a shared pointer and unpins when it holds none. The epoch
// advances only when every pinned participant has seen the current one, so while someone is pinned
// at epoch p, current() <= p + 1.
//
// Something is made unreachable, given a retirement epoch e, and freed when current() >= e + 2.
// Whoever still holds it met it before that store was visible. So e must be at least the largest
// epoch r that was current at any moment before then: the holder is pinned at most at r, and keeps
// current() at most at r + 1.
//
// - retirement_epoch() fences, and so reads an epoch that is current after the store is visible.
// - retirement_epoch_of(who) is for a participant that is pinned, at p, and stays pinned behind its
//   stores: until they are visible current() is at most p + 1. Reading the epoch without a fence
//   would not do: the load may pass the store.
//
// Thread safety: a participant number belongs to one thread at a time; everything else by any
// thread.
// Progress: pin and unpin are wait-free (pin announces itself three times at most); try_advance
// fails while someone is pinned at an older epoch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/align.h"
#include "base/announcements.h"
#include "base/assert.h"
#include "base/mutant.h"

namespace sp3::base {

class EpochDomain {
 public:
  using Epoch = std::uint64_t;

  explicit EpochDomain(std::size_t participants) : announced_(participants) {}

  // From now on `who` may pin.
  void admit(std::size_t who) noexcept { announced_.admit(who); }

  // REQUIRES: who is admitted and not pinned.
  void pin(std::size_t who) noexcept { pin_at(who, global_.load(std::memory_order_acquire)); }

  // The same for one that has read the epoch before; it may have lost its core since.
  void pin_at(std::size_t who, Epoch epoch) noexcept {
    SP3_ASSERT(announced_.is_admitted(who) && !is_pinned(who));
    while (true) {
      // (1) seq_cst, store buffering: our announcement is visible before we read any shared
      // pointer, or try_advance (2) would miss us.
      announced_.of(who).exchange(epoch, std::memory_order_seq_cst);
      // A stale epoch holds back all advances but one that had passed us already. But then we are
      // not pinned at an epoch that bounds the current one, and retirement_epoch_of would be too
      // old.
      const Epoch now = global_.load(std::memory_order_seq_cst);
      if (now == epoch || mutant(Mutant::pinned_epoch_not_read_again)) [[likely]]
        return;
      epoch = now;
    }
  }

  void unpin(std::size_t who) noexcept {
    // release: what we read through shared pointers is read before (2) sees us gone.
    announced_.of(who).store(kUnpinned, std::memory_order_release);
  }

  [[nodiscard]] bool is_pinned(std::size_t who) const noexcept {
    return announced_.of(who).load(std::memory_order_relaxed) != kUnpinned;
  }

  [[nodiscard]] Epoch current() const noexcept { return global_.load(std::memory_order_seq_cst); }

  // The epoch to remember with something just made unreachable.
  [[nodiscard]] Epoch retirement_epoch() const noexcept {
    // A locked instruction rather than std::atomic_thread_fence, which ThreadSanitizer does not
    // know.
    std::atomic<int> any{0};
    any.exchange(1, std::memory_order_seq_cst);
    return current();
  }
  // REQUIRES: who is pinned, and stays so to the end of its stores.
  [[nodiscard]] Epoch retirement_epoch_of(std::size_t who) const noexcept {
    SP3_ASSERT(is_pinned(who));
    return announced_.of(who).load(std::memory_order_relaxed) + 1;  // relaxed: our own store
  }
  [[nodiscard]] static bool may_free(Epoch retired, Epoch current) noexcept {
    return current >= retired + (mutant(Mutant::versions_freed_two_epochs_early) ? 0 : 2);
  }

  // Advances the epoch if every pinned participant has seen the current one.
  bool try_advance() noexcept {
    Epoch now = global_.load(std::memory_order_seq_cst);
    // (2) pairs with (1).
    const bool is_held_back = announced_.any_of([now](Epoch seen) {
      return seen != kUnpinned && seen != now && !mutant(Mutant::epoch_advances_past_readers);
    });
    if (is_held_back) return false;
    return global_.compare_exchange_strong(now, now + 1, std::memory_order_seq_cst);
  }

 private:
  static constexpr Epoch kUnpinned = Announcements::kNothing;

  alignas(kCacheLine) std::atomic<Epoch> global_{1};
  Announcements announced_;
};

}  // namespace sp3::base

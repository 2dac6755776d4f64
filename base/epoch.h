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
// A participant that will soon pin again rests instead of unpinning: its word keeps the epoch, and
// says that it reads nothing. To pin again at the same epoch takes no locked instruction, which
// would wait for every store before it, those behind a commit's fence included: it stores that it
// reads, and looks whether the epoch still is the one it rested at. The two may pass each other
// (store buffering), so who would advance past a participant that rests at an older epoch makes a
// heavy fence, and looks again: either it sees that the participant reads, or that one sees the
// newer epoch and announces itself as usual. Then it unpins the participant, so that one who stays
// away costs one such fence. A participant that this happens to does without resting for a while.
//
// Thread safety: a participant number belongs to one thread at a time; everything else by any
// thread.
// Progress: pin, rest and unpin are wait-free (pin announces itself three times at most);
// try_advance fails while someone is pinned at an older epoch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/align.h"
#include "base/announcements.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/fence.h"
#include "base/mutant.h"
#include "base/replace.h"
#include "base/scaled.h"

namespace sp3::base {

class EpochDomain {
 public:
  using Epoch = std::uint64_t;

  explicit EpochDomain(std::size_t participants)
      : announced_(participants), habits_(std::make_unique<Habit[]>(participants)) {}

  // From now on `who` may pin.
  void admit(std::size_t who) noexcept { announced_.admit(who); }

  // REQUIRES: who is admitted and not pinned.
  void pin(std::size_t who) noexcept { pin_at(who, global_.load(std::memory_order_acquire)); }

  // The same for one that has read the epoch before; it may have lost its core since.
  void pin_at(std::size_t who, Epoch epoch) noexcept {
    SP3_ASSERT(announced_.is_admitted(who) && !is_pinned(who));
    Announcements::Word& word = announced_.of(who);
    if (rests_at(who, epoch)) {
      // (1a) The fences order it, or the newer epoch is seen. release: who sees only this has not
      // met what rest() released, and goes on past us if the epoch is the current one.
      word.store(epoch, std::memory_order_release);
      light_fence();
      if (is_current(epoch)) [[likely]]
        return;
      epoch = current();
    } else if (habits_[who].rests && word.load(std::memory_order_relaxed) == kUnpinned) {
      habits_[who] = {.rests = false, .unpins = unpins_when_roused()};
    }
    while (true) {
      // (1) seq_cst, store buffering: our announcement is visible before we read any shared
      // pointer, or try_advance (2) would miss us.
      word.exchange(epoch, std::memory_order_seq_cst);
      // A stale epoch holds back all advances but one that had passed us already. But then we are
      // not pinned at an epoch that bounds the current one, and retirement_epoch_of would be too
      // old.
      if (is_current(epoch)) [[likely]]
        return;
      epoch = current();
    }
  }

  // release, both: what we read through shared pointers is read before (2) sees us gone.
  void unpin(std::size_t who) noexcept {
    habits_[who].rests = false;
    announced_.of(who).store(kUnpinned, std::memory_order_release);
  }
  // For one that will soon pin again.
  void rest(std::size_t who) noexcept {
    SP3_ASSERT(is_pinned(who));
    Habit& habit = habits_[who];
    if (habit.unpins != 0) [[unlikely]] {
      --habit.unpins;
      return unpin(who);
    }
    replace(habit.rests, true);
    Announcements::Word& word = announced_.of(who);
    word.store(word.load(std::memory_order_relaxed) | kResting, std::memory_order_release);
  }

  // One that rests at an epoch that is past would pin by a locked instruction; this takes that now.
  void rest_at_current(std::size_t who) noexcept {
    Announcements::Word& word = announced_.of(who);
    const std::uint64_t said = word.load(std::memory_order_relaxed);
    const Epoch now = current();
    // Not one that somebody has unpinned, who had waited for it.
    if (rests_before(said, now)) word.exchange(now | kResting, std::memory_order_seq_cst);
  }

  [[nodiscard]] bool is_pinned(std::size_t who) const noexcept {
    return reads(announced_.of(who).load(std::memory_order_relaxed));
  }
  // Whether pinning at that epoch takes no locked instruction.
  [[nodiscard]] bool rests_at(std::size_t who, Epoch epoch) const noexcept {
    return announced_.of(who).load(std::memory_order_relaxed) == (epoch | kResting);
  }

  [[nodiscard]] Epoch current() const noexcept { return global_.load(std::memory_order_seq_cst); }

  // The epoch to remember with something just made unreachable.
  [[nodiscard]] Epoch retirement_epoch() const noexcept {
    // A locked instruction rather than std::atomic_thread_fence, which ThreadSanitizer does not
    // know.
    Atomic<int> any{0};
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
    bool some_rest = false;
    // (2) pairs with (1).
    const bool is_held_back = announced_.any_of([now, &some_rest](std::uint64_t said) {
      some_rest |= rests_before(said, now);
      return holds_back(said, now);
    });
    if (is_held_back || (some_rest && !may_pass_resting(now))) return false;
    if (hindered_.load(std::memory_order_relaxed) != 0)
      hindered_.store(0, std::memory_order_relaxed);
    return global_.compare_exchange_strong(now, now + 1, std::memory_order_seq_cst);
  }

 private:
  static constexpr Epoch kUnpinned = Announcements::kNothing;
  static constexpr std::uint64_t kResting = std::uint64_t{1} << 63;
  // So often a participant unpins that was unpinned by another while it rested: one heavy fence for
  // so many pins is not worth mentioning.
  static std::uint32_t unpins_when_roused() noexcept { return scaled<std::uint32_t>(1000, 2); }
  // So many attempts to advance wait for those who rest. Between two transactions one soon pins
  // again, and then at the current epoch: most often there is nobody left to rouse.
  static std::uint32_t patience() noexcept { return scaled<std::uint32_t>(16, 1); }

  // The owner's.
  struct alignas(kCacheLine) Habit {
    bool rests = false;  // since it last pinned, unless somebody has unpinned it
    std::uint32_t unpins = 0;
  };

  // What the word of a participant says.
  static bool reads(std::uint64_t said) noexcept {
    return said != kUnpinned && (said & kResting) == 0;
  }
  static bool rests_before(std::uint64_t said, Epoch epoch) noexcept {
    return (said & kResting) != 0 && (said & ~kResting) < epoch;
  }
  static bool holds_back(std::uint64_t said, Epoch epoch) noexcept {
    return reads(said) && said != epoch && !mutant(Mutant::epoch_advances_past_readers);
  }

  [[nodiscard]] bool is_current(Epoch epoch) const noexcept {
    return current() == epoch || mutant(Mutant::pinned_epoch_not_read_again);
  }

  bool may_pass_resting(Epoch now) noexcept {
    // relaxed, both: how many more or less does not matter.
    if (hindered_.fetch_add(1, std::memory_order_relaxed) < patience()) return false;
    return rouse_resting(now);
  }

  // Unpins who rests at an older epoch than `now`; false if one of them reads after all. Not one
  // that rests at a newer: `now` may be long past, and then the fence does not keep that one from
  // pinning at its epoch, by a store that is not visible yet, while we take its word away.
  bool rouse_resting(Epoch now) noexcept {
    heavy_fence();  // pairs with the light one behind (1a)
    return !announced_.any_word_of([now](Announcements::Word& word) {
      std::uint64_t said = word.load(std::memory_order_seq_cst);
      // Where it fails the participant has announced itself, at the current epoch or on its way to
      // it; or it has seen the newer one, and overwrites what we store.
      return holds_back(said, now) ||
             (rests_before(said, now) &&
              !word.compare_exchange_strong(said, kUnpinned, std::memory_order_seq_cst) &&
              holds_back(said, now));
    });
  }

  alignas(kCacheLine) Atomic<Epoch> global_{1};
  // Attempts since the last advance, by those who rest. Not beside what every pin looks at.
  alignas(kCacheLine) Atomic<std::uint32_t> hindered_{0};
  Announcements announced_;
  const std::unique_ptr<Habit[]> habits_;
};

}  // namespace sp3::base

// Announcements: a word for each participant of a reclamation scheme, in which it says what others
// must keep for it. Each in a line of its own, since it is written all the time.
//
// A participant that will soon say the same again rests instead of saying nothing: its word keeps
// what it said, and says that it reads nothing. To say it again takes no locked instruction, which
// would wait for every store before it: it stores the word without the rest, and looks whether what
// it said still holds, an epoch or an era being current. The two may pass each other (store
// buffering). So who would not wait for a participant that rests at something older makes a heavy
// fence, and looks again: either it sees that the participant reads, or that one sees what is newer
// and announces that as usual. Then it takes the word away (rouse), so that one who stays away costs
// one such fence.
//
// Thread safety: a participant number belongs to one thread at a time, which alone stores into its
// word, but for rouse(); everything else by any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/align.h"
#include "base/assert.h"
#include "base/fence.h"

namespace sp3::base {

class Announcements {
 public:
  static constexpr std::uint64_t kNothing = 0;  // what a participant says that holds nothing
  using Word = std::atomic<std::uint64_t>;
  // In a word whose participant rests; of no use for anything else. Newer things are greater words.
  static constexpr std::uint64_t kResting = std::uint64_t{1} << 63;

  static bool rests(std::uint64_t said) noexcept { return (said & kResting) != 0; }
  static bool rests_before(std::uint64_t said, std::uint64_t now) noexcept {
    return rests(said) && (said & ~kResting) < now;
  }

  explicit Announcements(std::size_t participants)
      : slots_(std::make_unique<Slot[]>(participants)), participants_(participants) {}

  // From now on `who` may announce something. Participants below the highest one admitted are
  // looked at, so number them densely.
  void admit(std::size_t who) noexcept {
    SP3_CHECK(who < participants_);
    std::size_t limit = limit_.load(std::memory_order_relaxed);
    // seq_cst: before the first announcement of `who`, so that any_of cannot miss it.
    while (limit <= who &&
           !limit_.compare_exchange_weak(limit, who + 1, std::memory_order_seq_cst)) {
    }
  }
  [[nodiscard]] bool is_admitted(std::size_t who) const noexcept {
    return who < limit_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] Word& of(std::size_t who) noexcept { return slots_[who].word; }
  [[nodiscard]] const Word& of(std::size_t who) const noexcept { return slots_[who].word; }

  // Whether the condition holds of what any participant says; not asked about those that come
  // behind one of which it does. seq_cst, store buffering: whoever has made something unreachable
  // before sees the word of each participant that may still have met it.
  template <class Condition>
  bool any_of(Condition&& condition) const noexcept {
    return any_word_of(
        [&](const Word& word) { return condition(word.load(std::memory_order_seq_cst)); });
  }
  // The same for the words themselves.
  template <class Condition>
  bool any_word_of(Condition&& condition) const noexcept {
    const std::size_t limit = limit_.load(std::memory_order_seq_cst);
    return std::any_of(slots_.get(), slots_.get() + limit,
                       [&](Slot& slot) { return condition(slot.word); });
  }

  // From now on those who rest at something older than `now` say nothing; but if one of them reads
  // after all, its word says so. Not one that rests at something newer: `now` may be long past, and
  // then the fence does not keep that one from saying it again, by a store that is not visible yet,
  // while we take its word away. Says whether there were any; without, it makes no fence.
  bool rouse(std::uint64_t now) noexcept {
    const auto any_rests = [now](std::uint64_t said) { return rests_before(said, now); };
    if (!any_of(any_rests)) return false;
    heavy_fence();  // pairs with the light one in announce_again()
    any_word_of([now](Word& word) {
      std::uint64_t said = word.load(std::memory_order_seq_cst);
      // Where it fails the participant has announced something newer or is on its way to it; or it
      // has seen that there is, and overwrites what we store.
      if (rests_before(said, now))
        word.compare_exchange_strong(said, kNothing, std::memory_order_seq_cst);
      return false;
    });
    return true;
  }
  // For a participant that has found its word at rest: says again what that keeps. That may be past,
  // and the participant be roused meanwhile; it has to look whether it is, and to announce itself
  // anew by an exchange then.
  static void announce_again(Word& word, std::uint64_t what) noexcept {
    // release: what was read before the rest is read before who finds this goes on.
    word.store(what, std::memory_order_release);
    light_fence();
  }

 private:
  struct alignas(kCacheLine) Slot {
    Word word{kNothing};
  };

  std::unique_ptr<Slot[]> slots_;
  const std::size_t participants_;
  std::atomic<std::size_t> limit_{0};
};

}  // namespace sp3::base

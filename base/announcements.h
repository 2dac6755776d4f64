// Announcements: a word for each participant of a reclamation scheme, in which it says what others
// must keep for it. Each in a line of its own, since it is written all the time.
//
// Thread safety: a participant number belongs to one thread at a time, which alone stores into its
// word; everything else by any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/align.h"
#include "base/assert.h"
#include "base/atomic.h"

namespace sp3::base {

class Announcements {
 public:
  static constexpr std::uint64_t kNothing = 0;  // what a participant says that holds nothing
  using Word = Atomic<std::uint64_t>;

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

 private:
  struct alignas(kCacheLine) Slot {
    Word word{kNothing};
  };

  std::unique_ptr<Slot[]> slots_;
  const std::size_t participants_;
  Atomic<std::size_t> limit_{0};
};

}  // namespace sp3::base

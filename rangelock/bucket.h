// Bucket: a cache line of the grid, with room for four narrow ranges (grid_core.h).
//
//   byte  0  begin[0..3]     of the range in the slot
//        32  length[0..3]
//        48  holder[0..3]    the owner's number; above it a bit: whether the range is held shared
//        56  slots[0..3]     0 if free, else the tag of the granule that the range touches
//        60  overflow        narrow ranges of this bucket that found no free slot: in the lists;
//                            above them a bit, shown: whether the bucket's summary bit is set
//        62  inside          a spin lock, mostly for about twenty instructions
//
// The last eight bytes are one word, the state, to whoever enters, and parts of it to whoever
// leaves or unlocks. Who enters adds one to `inside` and is told the rest: he is inside if it was
// 0, and otherwise waits until it is and tries again. Who leaves stores 0, whoever has tried
// meanwhile; who unlocks stores a byte. So a narrow acquisition loads nothing of the bucket's line
// unless a slot has its granule's tag: a load of a line that another core has costs a pair 20 ns
// with two threads, before or after the addition, which waits for what was stored before it anyway
// and for the line beside that (docs/adr/0024).
//
// Ranges that overlap share a granule, so they have the same tag in its bucket. Of the granules
// that share a bucket one in 128 has the tag of another.
//
// The C++ memory model knows no accesses of several sizes to one atomic object; x86-64 does: all
// are ordered as their lines change hands (Linux' queued spinlock is unlocked by a byte of its word
// in the same way). ThreadSanitizer and the simulator's weak memory know them by their addresses, so
// for their eyes each access is one of the whole word.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <sp3/range_lock.h>

#include "base/align.h"
#include "base/atomic.h"
#include "emu/spin.h"
#include "rangelock/domain.h"

namespace sp3::rangelock {

inline constexpr unsigned kSlots = 4;

class BucketState {
 public:
  // What tells apart the granules of a bucket: seven bits of their hash, below the bit that says
  // that the slot is taken.
  using Tag = std::uint8_t;
  static constexpr unsigned kTagBits = 7;
  static constexpr Tag tag_of(std::uint64_t hash) noexcept {  // its lowest bits
    return static_cast<Tag>(hash | 1U << kTagBits);
  }

  // What the state was at some instant.
  class Seen {
   public:
    Seen() = default;
    explicit Seen(std::uint64_t word) noexcept : word_(word) {}

    // Whether it has no range at all, and is shown.
    [[nodiscard]] bool is_idle() const noexcept { return word_ == kShownBit; }
    [[nodiscard]] bool is_shown() const noexcept { return (word_ & kShownBit) != 0; }
    [[nodiscard]] bool has_overflow() const noexcept { return (word_ & kOverflowMask) != 0; }
    // The slots that are taken, or free: a bit for each, for first_of() and without_first().
    using Slots = std::uint32_t;
    [[nodiscard]] Slots taken() const noexcept { return tags() & kEachTaken; }
    [[nodiscard]] Slots free() const noexcept { return ~tags() & kEachTaken; }
    static unsigned first_of(Slots slots) noexcept {  // REQUIRES: there is one
      return static_cast<unsigned>(std::countr_zero(slots)) / 8;
    }
    static Slots without_first(Slots slots) noexcept { return slots & (slots - 1); }

    // Whether a slot has the tag.
    [[nodiscard]] bool has(Tag tag) const noexcept {
      // A byte of `unlike` is 0 where it is the tag. Only if there is one does taking one from each
      // byte set the upper bit of any that has not set it.
      const Slots unlike = tags() ^ tag * kEachOne;
      return ((unlike - kEachOne) & ~unlike & kEachTaken) != 0;
    }

   private:
    friend class BucketState;
    static constexpr Slots kEachOne = 0x01010101;
    static constexpr Slots kEachTaken = kEachOne << kTagBits;

    [[nodiscard]] Slots tags() const noexcept { return static_cast<Slots>(word_); }

    std::uint64_t word_;
  };

  // Enters if nobody is inside, and says what it has entered; otherwise the next to leave makes
  // good for it.
  [[nodiscard]] bool try_enter(Seen& seen) noexcept {
    // (7) acquire: pairs with (6), and with (8) for slots that are free. seq_cst, store buffering:
    // before lists_matter looks. Those who try while somebody is inside do so twice at most, by a
    // simple attempt and by enter(), and are fewer than half of what `inside` counts
    // (Domain::kMaxOwners).
    seen = Seen(word().fetch_add(kInsideOne, std::memory_order_seq_cst));
    return seen.word_ >> kInsideShift == 0;
  }
  Seen enter() noexcept {
    Seen seen;
    for (emu::Spin spin; !try_enter(seen);) {
      do {
        spin.pause();
      } while (word().load(std::memory_order_relaxed) >> kInsideShift != 0);
    }
    return seen;
  }

  // REQUIRES, here and of the next three: inside.
  void leave() noexcept {
    // (6) release: the slots are written before the next one inside (7) reads them.
    clear_inside();
  }
  void fill(unsigned slot, Tag tag) noexcept {
    set(place_of(slot), tag);  // relaxed: see (6)
  }
  void show() noexcept { word().fetch_or(kShownBit, std::memory_order_relaxed); }
  void hide() noexcept { word().fetch_and(~kShownBit, std::memory_order_relaxed); }

  // Names the slot, for free(): an address within the state.
  [[nodiscard]] std::uintptr_t place_of(unsigned slot) noexcept {
    static_assert(std::endian::native == std::endian::little);
    return reinterpret_cast<std::uintptr_t>(&word_) + slot;
  }
  static void free(std::uintptr_t place) noexcept {
    // (8) release: the critical section happens before whoever finds the slot free (7).
    clear(place);
  }

  // As of now. acquire: pairs with (6) and (8).
  [[nodiscard]] Seen look() const noexcept {
    return Seen(const_cast<BucketState*>(this)->word().load(std::memory_order_acquire));
  }

  // One range more or less in the lists. At its largest the count stays for good: from then on the
  // lists are searched whether they have anything or not.
  void count_overflow() noexcept {
    // relaxed: inside; see lists_matter. It hands on what was released with (10), like every
    // read-modify-write.
    change_overflow(kOverflowOne, std::memory_order_relaxed);
  }
  void uncount_overflow() noexcept {
    // (10) release: the critical section happens before whoever does not search the lists, because
    // nothing is counted any more (7).
    change_overflow(~kOverflowOne + 1, std::memory_order_release);
  }

 private:
  // Slots are bytes 0 to 3.
  static constexpr unsigned kOverflowShift = 32;
  static constexpr unsigned kShownShift = 47;
  static constexpr unsigned kInsideShift = 48;
  static constexpr std::uint64_t kShownBit = std::uint64_t{1} << kShownShift;
  static constexpr std::uint64_t kOverflowOne = std::uint64_t{1} << kOverflowShift;
  static constexpr std::uint64_t kOverflowMask = kShownBit - kOverflowOne;
  static constexpr std::uint64_t kInsideOne = std::uint64_t{1} << kInsideShift;

  [[nodiscard]] base::AtomicRef<std::uint64_t> word() noexcept {
    return base::AtomicRef<std::uint64_t>(word_);
  }
#if defined(__SANITIZE_THREAD__) || defined(SP3_SIMULATED)
  static base::AtomicRef<std::uint64_t> word_around(std::uintptr_t address) noexcept {
    return base::AtomicRef<std::uint64_t>(
        *reinterpret_cast<std::uint64_t*>(address - address % sizeof(std::uint64_t)));
  }
  static std::uint64_t at(std::uintptr_t address, std::uint8_t value) noexcept {
    return std::uint64_t{value} << (8 * (address % sizeof(std::uint64_t)));
  }
  static void set(std::uintptr_t address, std::uint8_t value) noexcept {  // REQUIRES: it is 0
    word_around(address).fetch_or(at(address, value), std::memory_order_relaxed);
  }
  static void clear(std::uintptr_t address) noexcept {
    word_around(address).fetch_and(~at(address, 0xff), std::memory_order_release);
  }
  void clear_inside() noexcept { word().fetch_and(kInsideOne - 1, std::memory_order_release); }
#else
  static base::AtomicRef<std::uint8_t> byte_at(std::uintptr_t address) noexcept {
    return base::AtomicRef<std::uint8_t>(*reinterpret_cast<std::uint8_t*>(address));
  }
  static void set(std::uintptr_t address, std::uint8_t value) noexcept {
    byte_at(address).store(value, std::memory_order_relaxed);
  }
  static void clear(std::uintptr_t address) noexcept {
    byte_at(address).store(0, std::memory_order_release);
  }
  void clear_inside() noexcept {
    // No std::uint16_t lives there; the builtin takes the address as it is, and GCC that it may
    // alias whatever has this attribute.
    using Inside [[gnu::may_alias]] = std::uint16_t;
    auto* const inside =
        reinterpret_cast<Inside*>(reinterpret_cast<std::uint8_t*>(&word_) + kInsideShift / 8);
    __atomic_store_n(inside, Inside{0}, __ATOMIC_RELEASE);
  }
#endif
  void change_overflow(std::uint64_t by, std::memory_order order) noexcept {
    std::uint64_t seen = word().load(std::memory_order_relaxed);
    while ((seen & kOverflowMask) != kOverflowMask &&
           !word().compare_exchange_weak(seen, seen + by, order, std::memory_order_relaxed)) {
    }
  }

  std::uint64_t word_ = 0;
};

struct alignas(base::kCacheLine) Bucket {
  // REQUIRES, all of them: inside. relaxed: (6) and (7).
  [[nodiscard]] Range range(unsigned slot) const noexcept {
    const std::uint64_t first = begin[slot].load(std::memory_order_relaxed);
    return {first, first + length[slot].load(std::memory_order_relaxed)};
  }
  [[nodiscard]] RangeMode mode(unsigned slot) const noexcept {
    return static_cast<RangeMode>(holder[slot].load(std::memory_order_relaxed) >> kModeShift);
  }
  [[nodiscard]] std::uint32_t owner(unsigned slot) const noexcept {
    return holder[slot].load(std::memory_order_relaxed) & ((1U << kModeShift) - 1);
  }
  // Takes a free slot, and names it (BucketState::place_of).
  std::uintptr_t fill(unsigned slot, BucketState::Tag tag, const Claim& claim) noexcept {
    static_assert(Domain::kMaxOwners < std::size_t{1} << kModeShift &&
                  static_cast<unsigned>(RangeMode::exclusive) == 0 &&
                  static_cast<unsigned>(RangeMode::shared) == 1);
    begin[slot].store(claim.range.begin, std::memory_order_relaxed);
    length[slot].store(static_cast<std::uint32_t>(claim.range.end - claim.range.begin),
                       std::memory_order_relaxed);
    holder[slot].store(static_cast<std::uint16_t>(claim.owner->number |
                                                  static_cast<unsigned>(claim.mode) << kModeShift),
                       std::memory_order_relaxed);
    state.fill(slot, tag);
    return state.place_of(slot);
  }

  static constexpr unsigned kModeShift = 15;

  base::Atomic<std::uint64_t> begin[kSlots];
  base::Atomic<std::uint32_t> length[kSlots];
  base::Atomic<std::uint16_t> holder[kSlots];
  BucketState state;
};
static_assert(sizeof(Bucket) == base::kCacheLine && offsetof(Bucket, state) == 56);

}  // namespace sp3::rangelock

// Bucket: a cache line of the grid, with room for four narrow ranges (grid_core.h).
//
//   byte  0  begin[0..3]     of the range in the slot
//        32  length[0..3]
//        48  owner[0..3]
//        56  inside          a spin lock, mostly for about twenty instructions
//        57  slots[0..3]     free, or how the range in it is held
//        61  shown           whether the bucket's summary bit is set; saves a look at the summary
//        62  overflow        narrow ranges of this bucket that found no free slot: in the lists
//
// The last eight bytes are one word, the state, to whoever enters, and single bytes to whoever
// leaves or unlocks: a compare-and-swap that guesses the whole state enters without having looked,
// and who unlocks stores one byte. A look first, or after, would be a load of a line that another
// core has; with two threads that costs a pair 20 ns, while an exchange of it, which waits for what
// was stored before it anyway, costs hardly any (docs/RANGE_LOCKS.md).
//
// The C++ memory model knows no accesses of two sizes to one atomic object; x86-64 does: all are
// ordered as their lines change hands. ThreadSanitizer knows them by their addresses, so for its
// eyes each access is one of the whole word.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <sp3/range_lock.h>

#include "base/align.h"
#include "emu/spin.h"

namespace sp3::rangelock {

inline constexpr unsigned kSlots = 4;

class BucketState {
 public:
  // What the state was at some instant.
  class Seen {
   public:
    explicit Seen(std::uint64_t word) noexcept : word_(word) {}

    [[nodiscard]] bool is_free(unsigned slot) const noexcept {
      return byte(kFirstSlot + slot) == 0;
    }
    [[nodiscard]] RangeMode mode(unsigned slot) const noexcept {  // REQUIRES: it is not free
      return byte(kFirstSlot + slot) == code_of(RangeMode::shared) ? RangeMode::shared
                                                                   : RangeMode::exclusive;
    }
    [[nodiscard]] bool is_shown() const noexcept { return (word_ & kShownBit) != 0; }
    [[nodiscard]] bool has_ranges() const noexcept { return (word_ & kSlotsMask) != 0; }
    [[nodiscard]] bool has_overflow() const noexcept { return word_ >> kOverflowShift != 0; }

   private:
    friend class BucketState;

    [[nodiscard]] std::uint8_t byte(unsigned index) const noexcept {
      return static_cast<std::uint8_t>(word_ >> (8 * index));
    }
    std::uint64_t word_;
  };

  // Enters, and takes slot 0, if nobody is inside, the bucket is shown and has no range at all.
  [[nodiscard]] bool try_enter_and_fill(RangeMode mode) noexcept {
    std::uint64_t expected = kNothingHeld;
    // (7), as in enter.
    return word().compare_exchange_strong(
        expected, kNothingHeld | kInsideBit | std::uint64_t{code_of(mode)} << (8 * kFirstSlot),
        std::memory_order_seq_cst);
  }

  Seen enter() noexcept {
    std::uint64_t seen = kNothingHeld;
    emu::Spin spin;
    // (7) acquire: pairs with (6), and with (8) for slots that are free. seq_cst, store buffering:
    // before lists_matter looks.
    while (!word().compare_exchange_weak(seen, seen | kInsideBit, std::memory_order_seq_cst)) {
      while ((seen & kInsideBit) != 0) {
        spin.pause();
        seen = word().load(std::memory_order_relaxed);
      }
    }
    return Seen(seen);
  }

  // REQUIRES, here and of the next three: inside.
  void leave() noexcept {
    // (6) release: the slots are written before the next one inside (7) reads them.
    clear(address_of(kInside), std::memory_order_release);
  }
  void fill(unsigned slot, RangeMode mode) noexcept {
    set(place_of(slot), code_of(mode));  // relaxed: see (6)
  }
  void show() noexcept { set(address_of(kShown), 1); }
  void hide() noexcept { clear(address_of(kShown), std::memory_order_relaxed); }

  // Names the slot, for free(): never a small number.
  [[nodiscard]] std::uintptr_t place_of(unsigned slot) noexcept {
    return address_of(kFirstSlot + slot);
  }
  static void free(std::uintptr_t place) noexcept {
    // (8) release: the critical section happens before whoever finds the slot free (7).
    clear(place, std::memory_order_release);
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
  static constexpr unsigned kInside = 0, kFirstSlot = 1, kShown = 5, kOverflow = 6;  // bytes
  static constexpr unsigned kOverflowShift = 8 * kOverflow;
  static constexpr std::uint64_t kInsideBit = 1;
  static constexpr std::uint64_t kSlotsMask = std::uint64_t{0xffffffff} << (8 * kFirstSlot);
  static constexpr std::uint64_t kShownBit = std::uint64_t{1} << (8 * kShown);
  static constexpr std::uint64_t kOverflowOne = std::uint64_t{1} << kOverflowShift;
  static constexpr std::uint64_t kMostOverflow = ~std::uint64_t{0} >> kOverflowShift;
  static constexpr std::uint64_t kNothingHeld = kShownBit;

  static constexpr std::uint8_t code_of(RangeMode mode) noexcept {
    return mode == RangeMode::exclusive ? 1 : 2;
  }

  [[nodiscard]] std::atomic_ref<std::uint64_t> word() noexcept {
    return std::atomic_ref<std::uint64_t>(word_);
  }
  [[nodiscard]] std::uintptr_t address_of(unsigned index) noexcept {
    static_assert(std::endian::native == std::endian::little);
    return reinterpret_cast<std::uintptr_t>(&word_) + index;
  }
#if defined(__SANITIZE_THREAD__)
  static std::atomic_ref<std::uint64_t> word_around(std::uintptr_t address) noexcept {
    return std::atomic_ref<std::uint64_t>(
        *reinterpret_cast<std::uint64_t*>(address - address % sizeof(std::uint64_t)));
  }
  static std::uint64_t at(std::uintptr_t address, std::uint8_t value) noexcept {
    return std::uint64_t{value} << (8 * (address % sizeof(std::uint64_t)));
  }
  static void set(std::uintptr_t address, std::uint8_t value) noexcept {  // REQUIRES: it is 0
    word_around(address).fetch_or(at(address, value), std::memory_order_relaxed);
  }
  static void clear(std::uintptr_t address, std::memory_order order) noexcept {
    word_around(address).fetch_and(~at(address, 0xff), order);
  }
#else
  static std::atomic_ref<std::uint8_t> byte_at(std::uintptr_t address) noexcept {
    return std::atomic_ref<std::uint8_t>(*reinterpret_cast<std::uint8_t*>(address));
  }
  static void set(std::uintptr_t address, std::uint8_t value) noexcept {
    byte_at(address).store(value, std::memory_order_relaxed);
  }
  static void clear(std::uintptr_t address, std::memory_order order) noexcept {
    byte_at(address).store(0, order);
  }
#endif
  void change_overflow(std::uint64_t by, std::memory_order order) noexcept {
    std::uint64_t seen = word().load(std::memory_order_relaxed);
    while (seen >> kOverflowShift != kMostOverflow &&
           !word().compare_exchange_weak(seen, seen + by, order, std::memory_order_relaxed)) {
    }
  }

  std::uint64_t word_ = 0;
};

struct alignas(base::kCacheLine) Bucket {
  std::atomic<std::uint64_t> begin[kSlots];
  std::atomic<std::uint32_t> length[kSlots];
  std::atomic<std::uint16_t> owner[kSlots];
  BucketState state;
};
static_assert(sizeof(Bucket) == base::kCacheLine && offsetof(Bucket, state) == 56);

}  // namespace sp3::rangelock

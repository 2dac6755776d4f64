// Locks of whole blocks, over a space of known size: neighbours within a block exclude each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>

#include "workloads/range_locks/rival.h"

namespace sp3::workloads {

// A bit for each block, set word by word; on a conflict what was set is cleared again. After the
// lock of LeanStore's aliasing area.
class BitmapLock {
 public:
  explicit BitmapLock(const RivalSpace& space)
      : unit_(space.unit),
        words_(std::make_unique<std::atomic<std::uint64_t>[]>(space.bytes / space.unit / 64 + 1)) {}

  RivalToken try_lock(RangeOwner&, std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t first = begin / unit_;
    const std::uint64_t last = (end - 1) / unit_;
    for (std::uint64_t word = first / 64; word <= last / 64; ++word) {
      const std::uint64_t bits = mask(word, first, last);
      std::uint64_t seen = words_[word].load(std::memory_order_relaxed);
      // acquire pairs with the release in clear.
      while ((seen & bits) == 0 &&
             !words_[word].compare_exchange_weak(seen, seen | bits, std::memory_order_acquire,
                                                 std::memory_order_relaxed)) {
      }
      if ((seen & bits) == 0) continue;
      if (word > first / 64) clear(first, word * 64 - 1);
      return {};
    }
    return {.range = {begin, end}, .held = true};
  }
  void unlock(const RivalToken& token) {
    clear(token.range.begin / unit_, (token.range.end - 1) / unit_);
  }

 private:
  // The bits of a word that stand for blocks from `first` to `last`.
  static std::uint64_t mask(std::uint64_t word, std::uint64_t first, std::uint64_t last) {
    const std::uint64_t low = std::max(first, word * 64) % 64;
    const std::uint64_t high = std::min(last, word * 64 + 63) % 64;
    return (~std::uint64_t{0} >> (63 - high)) & (~std::uint64_t{0} << low);
  }
  void clear(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t word = first / 64; word <= last / 64; ++word) {
      words_[word].fetch_and(~mask(word, first, last), std::memory_order_release);
    }
  }

  const std::uint64_t unit_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
};

// A word for each segment: a writer's bit, and a count of readers. After pNOVA's lock-free variant.
class SegmentsLock {
 public:
  explicit SegmentsLock(const RivalSpace& space)
      : unit_(space.unit),
        words_(std::make_unique<std::atomic<std::uint32_t>[]>(space.bytes / space.unit + 1)) {}

  RivalToken try_lock(RangeOwner&, std::uint64_t begin, std::uint64_t end) {
    return acquire({begin, end}, RangeMode::exclusive, [](std::atomic<std::uint32_t>& word) {
      std::uint32_t free = 0;
      return word.compare_exchange_strong(free, kWriter, std::memory_order_acquire,
                                          std::memory_order_relaxed);
    });
  }
  RivalToken try_lock_shared(RangeOwner&, std::uint64_t begin, std::uint64_t end) {
    return acquire({begin, end}, RangeMode::shared, [](std::atomic<std::uint32_t>& word) {
      std::uint32_t seen = word.load(std::memory_order_relaxed);
      while ((seen & kWriter) == 0) {
        if (word.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
          return true;
        }
      }
      return false;
    });
  }
  void unlock(const RivalToken& token) {
    release(token.range.begin / unit_, (token.range.end - 1) / unit_ + 1, token.mode);
  }

 private:
  static constexpr std::uint32_t kWriter = std::uint32_t{1} << 31;

  template <class TryWord>
  RivalToken acquire(const Range& range, RangeMode mode, TryWord&& try_word) {
    const std::uint64_t first = range.begin / unit_;
    const std::uint64_t last = (range.end - 1) / unit_;
    for (std::uint64_t segment = first; segment <= last; ++segment) {
      if (try_word(words_[segment])) continue;
      release(first, segment, mode);
      return {};
    }
    return {.range = range, .mode = mode, .held = true};
  }
  // release pairs with the acquires above.
  void release(std::uint64_t first, std::uint64_t end, RangeMode mode) {
    for (std::uint64_t segment = first; segment < end; ++segment) {
      if (mode == RangeMode::exclusive) {
        words_[segment].store(0, std::memory_order_release);
      } else {
        words_[segment].fetch_sub(1, std::memory_order_release);
      }
    }
  }

  const std::uint64_t unit_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> words_;
};
static_assert(RangeLock<BitmapLock> && RangeLock<SegmentsLock>);

}  // namespace sp3::workloads

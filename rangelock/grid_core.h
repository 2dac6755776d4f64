// GridCore: narrow ranges in hashed buckets of one cache line, all others in an OrderedCore.
//
// Addresses are cut into granules. A range within one granule, or two neighbours, is narrow: it is
// entered in the bucket of each of its granules. Narrow ranges that overlap share a granule, so
// they meet in its bucket. All others are wide: they are linked in the ordered lists, and then look
// at the buckets that they cover.
//
//   Bucket, one cache line:
//     byte  0  begin[0..3]     kFree, or the begin of the range in the slot
//          32  length[0..3]
//          48  owner[0..3]
//          56  busy            a spin lock, mostly for about twenty instructions
//          57  modes           bit i: slot i is held shared
//          58  shown           whether its summary bit is set; saves a look at the summary
//          60  overflow        narrow ranges of this bucket that found no free slot: in the lists
//
// Locking a narrow range takes one atomic exchange (busy) and stores; unlocking it one store
// (begin).
//
// Wide and narrow ranges meet through two words that are nearly always only read: `wide_`, how many
// wide ranges there are, and the summary, a bit for each bucket that may have anything in its
// slots. A narrow acquisition takes busy, sets its summary bit if it is not set, and then looks at
// wide_; a wide one counts itself in wide_, then visits the buckets whose bit is set and waits
// while they are busy. So of two that conflict at least one sees the other. A wide one clears the
// bits of buckets that it finds empty, which is why it pays only for those used since.
//
// A narrow acquisition searches the lists, or enters them, inside its bucket. There it may take
// memory for a node and, shared, wait for the decision of an exclusive one, for a bounded time
// (ordered_core.h); who comes to the bucket meanwhile waits for as long.
//
// Thread safety: any thread. Reclamation: none of its own; the lists use eras.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/hash.h"
#include "rangelock/ordered_core.h"

namespace sp3::rangelock {

inline constexpr unsigned kSlots = 4;
inline constexpr std::uint64_t kFree = kRangeMax;  // no range begins there

struct alignas(base::kCacheLine) Bucket {
  std::atomic<std::uint64_t> begin[kSlots];
  std::atomic<std::uint32_t> length[kSlots];
  std::atomic<std::uint16_t> owner[kSlots];
  std::atomic<std::uint8_t> busy;
  std::atomic<std::uint8_t> modes;
  std::atomic<std::uint8_t> shown;
  std::atomic<std::uint32_t> overflow;
};
static_assert(sizeof(Bucket) == base::kCacheLine);
static_assert(offsetof(Bucket, length) == 32 && offsetof(Bucket, owner) == 48 &&
              offsetof(Bucket, busy) == 56 && offsetof(Bucket, overflow) == 60);

class GridCore {
 public:
  // Errors: Error{invalid_argument} for sizes that are not powers of two, or absurd.
  GridCore(const RangeLockOptions& options, WaitQueue& queue);

  bool attempt(Claim& claim, Blocker& blocker);
  bool attempt(Claim& claim);  // if nobody asks for the blocker
  // Takes the range if that needs one bucket only; false if it is not as simple as that.
  bool attempt_alone(const OwnerCore& owner, Range range, RangeMode mode,
                     std::uintptr_t (&place)[2]) noexcept;
  void release(const Claim& claim) noexcept;
  void list_holders(OwnerCore& owner, std::vector<RangeHolder>& holders) const;
  // REQUIRES: nobody else uses the lock, now or later.
  void clear(OwnerCore& owner) noexcept { ordered_.clear(owner); }

 private:
  struct Freed {
    void operator()(Bucket* buckets) const noexcept;
  };

  [[nodiscard]] std::size_t bucket_index(std::uint64_t granule) const noexcept {
    return static_cast<std::size_t>(base::spread(granule) >> hash_shift_);
  }
  Bucket& enter(std::size_t index) noexcept;
  static void wait_to_enter(Bucket& bucket) noexcept;
  void show(std::size_t index) noexcept;
  // (6) release: the slots are written before the next one inside (7) reads them.
  static void leave(Bucket& bucket) noexcept { bucket.busy.store(0, std::memory_order_release); }
  [[nodiscard]] bool lists_matter(const Bucket& bucket) const noexcept {
    // (11) acquire, both: pairs with (10). seq_cst, store buffering: see wide_ above. A stale
    // overflow cannot be too low: it rises inside the bucket, and falls later than what it counts.
    return wide_.load(std::memory_order_seq_cst) != 0 ||
           bucket.overflow.load(std::memory_order_acquire) != 0;
  }
  // What a look at a bucket's slots finds.
  static constexpr unsigned kFull = kSlots;
  static constexpr unsigned kConflict = kSlots + 1;
  static unsigned find_slot(const Bucket& bucket, const Range& range, RangeMode mode,
                            Blocker& blocker) noexcept;
  static std::uintptr_t fill_slot(Bucket& bucket, unsigned slot, const OwnerCore& owner,
                                  const Range& range, RangeMode mode) noexcept;

  bool attempt_in_one(Claim& claim, std::size_t index, Blocker& blocker);
  bool attempt_in_two(Claim& claim, Blocker& blocker);
  bool attempt_with_lists(Claim& claim, Bucket& first, unsigned first_slot, Bucket& second,
                          unsigned second_slot, Blocker& blocker);
  bool attempt_wide(Claim& claim, Blocker& blocker);
  void release_in_lists(const Claim& claim) noexcept;
  bool find_narrow(const Range& range, RangeMode mode, Blocker& blocker) noexcept;
  bool visit_bucket(std::size_t index, const Range& range, RangeMode mode,
                    Blocker& blocker) noexcept;

  const unsigned shift_;       // of granules
  const unsigned hash_shift_;  // 64 - log2 of the number of buckets
  const std::size_t bucket_count_;
  std::unique_ptr<Bucket[], Freed> buckets_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> summary_;  // a bit for each bucket
  WaitQueue& queue_;
  alignas(base::kCacheLine) std::atomic<std::uint64_t> wide_{0};
  OrderedCore ordered_;
};

}  // namespace sp3::rangelock

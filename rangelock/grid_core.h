// GridCore: narrow ranges in hashed buckets of one cache line, all others in an OrderedCore.
//
// Addresses are cut into granules. A range within one granule, or two neighbours, is narrow: it is
// entered in the bucket of each of its granules. Narrow ranges that overlap share a granule, so
// they meet in its bucket. All others are wide: they are linked in the ordered lists, and then look
// at the buckets that they cover.
//
// Locking a narrow range takes one atomic addition and stores, unlocking it one store (bucket.h).
//
// Wide and narrow ranges meet through two words that are nearly always only read: `wide_`, how many
// wide ranges there are, and the summary, a bit for each bucket that may have anything in its
// slots. A narrow acquisition enters, sets its summary bit if it is not set, and then looks at
// wide_; a wide one counts itself in wide_, then visits the buckets whose bit is set and waits
// while somebody is inside. So of two that conflict at least one sees the other. A wide one clears
// the bits of buckets that it finds empty, which is why it pays only for those used since.
//
// A narrow acquisition searches the lists, or enters them, inside its bucket. There it may take
// memory for a node and, shared, wait for the decision of an exclusive one, for a bounded time
// (ordered_core.h); who comes to the bucket meanwhile waits for as long.
//
// Thread safety: any thread. Reclamation: none of its own; the lists use eras.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/atomic.h"
#include "base/hash.h"
#include "rangelock/bucket.h"
#include "rangelock/ordered_core.h"

namespace sp3::rangelock {

// The bucket that somebody is inside, and its state on entering; without a bucket, nobody is.
struct GridEntered {
  Bucket* bucket;
  BucketState::Seen seen;
};

class GridCore {
 public:
  // Errors: Error{invalid_argument} for sizes that are not powers of two, or absurd.
  GridCore(const RangeLockOptions& options, WaitQueue& queue);

  bool attempt(Claim& claim, Blocker& blocker);
  bool attempt(Claim& claim);  // if nobody asks for the blocker
  // Takes the range and returns where it is, if that needs no more than a look at the state of one
  // bucket that nobody is inside; else 0, and the bucket if that has been entered.
  std::uintptr_t attempt_simple(const Claim& claim, GridEntered& entered) noexcept;
  // Goes on from there, and leaves the bucket. REQUIRES: inside it, the only one of the range.
  bool attempt_inside(Claim& claim, GridEntered entered, Blocker& blocker);
  void release(const Claim& claim) noexcept;
  // Whether the range is in one bucket only; then its place and what it is suffice to unlock it.
  [[nodiscard]] static bool is_in_slot(const Claim& claim) noexcept;
  void release_in_slot(std::uintptr_t place, Range range) noexcept;
  // Asks for the buckets that an acquisition enters.
  void ask_ahead(const Range& range) const noexcept;
  void list_holders(OwnerCore& owner, std::vector<RangeHolder>& holders) const;
  // REQUIRES: nobody else uses the lock, now or later.
  void clear(OwnerCore& owner) noexcept { ordered_.clear(owner); }

 private:
  struct Freed {
    void operator()(Bucket* buckets) const noexcept;
  };

  // Where ranges that touch a granule are entered, and under which tag.
  struct Spot {
    Bucket* bucket;
    BucketState::Tag tag;
  };
  [[nodiscard]] Spot spot_of(std::uint64_t granule) const noexcept {
    const std::uint64_t hash = base::spread(granule) >> hash_shift_;
    return {&buckets_[hash >> BucketState::kTagBits], BucketState::tag_of(hash)};
  }
  [[nodiscard]] Spot first_spot(const Range& range) const noexcept {
    return spot_of(range.begin >> shift_);
  }
  [[nodiscard]] Spot last_spot(const Range& range) const noexcept {
    return spot_of((range.end - 1) >> shift_);
  }
  [[nodiscard]] std::size_t index_of(const Bucket& bucket) const noexcept {
    return static_cast<std::size_t>(&bucket - buckets_.get());
  }
  // Enters, and shows in the summary that the bucket may have something.
  BucketState::Seen enter(Bucket& bucket) noexcept;
  void show(Bucket& bucket) noexcept;
  [[nodiscard]] bool lists_matter(BucketState::Seen seen) const noexcept {
    // seq_cst, store buffering: see wide_ above. What was seen of overflow when we entered cannot
    // be too low: it rises inside the bucket, and falls later than what it counts.
    return wide_.load(std::memory_order_seq_cst) != 0 || seen.has_overflow();
  }
  // What a look at a bucket's slots finds.
  static constexpr unsigned kFull = kSlots;
  static constexpr unsigned kConflict = kSlots + 1;
  static bool find_in_slots(const Bucket& bucket, BucketState::Seen seen, const Range& range,
                            RangeMode mode, Blocker& blocker) noexcept;
  static unsigned find_slot(Spot spot, BucketState::Seen seen, const Range& range, RangeMode mode,
                            Blocker& blocker) noexcept;
  static void fill_slots(Claim& claim, Spot first, unsigned first_slot, Spot second,
                         unsigned second_slot) noexcept;

  bool attempt_in_two(Claim& claim, Blocker& blocker);
  bool attempt_with_lists(Claim& claim, Spot first, unsigned first_slot, Spot second,
                          unsigned second_slot, Blocker& blocker);
  bool attempt_wide(Claim& claim, Blocker& blocker);
  void release_in_lists(const Claim& claim) noexcept;
  bool find_narrow(const Range& range, RangeMode mode, Blocker& blocker) noexcept;
  bool visit_bucket(Bucket& bucket, const Range& range, RangeMode mode, Blocker& blocker) noexcept;

  // All that a narrow pair reads of the grid is in one line: see OwnerCore.
  alignas(base::kCacheLine) const unsigned shift_;  // of granules
  const unsigned hash_shift_;  // leaves the index of a bucket, and a tag below it
  const std::size_t bucket_count_;
  std::unique_ptr<Bucket[], Freed> buckets_;
  std::unique_ptr<base::Atomic<std::uint64_t>[]> summary_;  // a bit for each bucket
  WaitQueue& queue_;
  base::Atomic<std::uint64_t> wide_{0};
  OrderedCore ordered_;
};

}  // namespace sp3::rangelock

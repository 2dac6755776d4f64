#include "rangelock/grid_core.h"

#include <algorithm>
#include <bit>
#include <new>
#include <span>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/fence.h"
#include "base/prefetch.h"
#include "base/scope_exit.h"
#include "rangelock/fast_path.h"
#include "rangelock/hook.h"

namespace sp3::rangelock {

namespace {

// What a handle's place says: above an address of 48 bits, what is there.
constexpr unsigned kKindShift = 48;
constexpr std::uintptr_t kAddressMask = (std::uintptr_t{1} << kKindShift) - 1;
// Narrow, in one bucket: the slot (BucketState::place_of).
constexpr std::uintptr_t kInSlot = 0;
// Wide: the node.
constexpr std::uintptr_t kInLists = 1;
// Narrow, without a slot: the node.
constexpr std::uintptr_t kOverflow = 2;
// Narrow: the slot in the bucket with the lower index; in the other one it is the slot whose number
// is the kind less this.
constexpr std::uintptr_t kInTwoSlots = 3;

std::uintptr_t place_in(std::uintptr_t kind, const Node* node) noexcept {
  SP3_ASSERT(link_to(node) <= kAddressMask);
  return kind << kKindShift | link_to(node);
}

constexpr std::uint64_t kMaxGranule = std::uint64_t{1} << 30;
constexpr std::size_t kMaxBuckets = std::size_t{1} << 30;

void check_power(const char* what, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (base::is_power_of_two(value) && value >= least && value <= most) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("a grid range lock's {}", what),
              {.wanted = fmt::format("a power of two from {} to {}", least, most),
               .found = std::to_string(value)});
}

unsigned checked_shift(const RangeLockOptions& options) {
  check_power("granule", options.granule, 1, kMaxGranule);
  check_power("number of buckets", options.buckets, 64, kMaxBuckets);
  return static_cast<unsigned>(std::countr_zero(options.granule));
}

}  // namespace

void GridCore::Freed::operator()(Bucket* buckets) const noexcept {
  ::operator delete[](buckets, std::align_val_t{alignof(Bucket)});
}

GridCore::GridCore(const RangeLockOptions& options, WaitQueue& queue)
    : shift_(checked_shift(options)),
      hash_shift_(64 - static_cast<unsigned>(std::countr_zero(options.buckets)) -
                  BucketState::kTagBits),
      bucket_count_(options.buckets),
      summary_(std::make_unique<base::Atomic<std::uint64_t>[]>(bucket_count_ / 64)),
      queue_(queue),
      ordered_(options.max_height, queue) {
  void* const memory =
      ::operator new[](bucket_count_ * sizeof(Bucket), std::align_val_t{alignof(Bucket)});
  buckets_.reset(static_cast<Bucket*>(memory));
  SP3_CHECK(reinterpret_cast<std::uintptr_t>(&buckets_[bucket_count_]) <= kAddressMask);
  for (std::size_t i = 0; i < bucket_count_; ++i) ::new (&buckets_[i]) Bucket{};
}

inline BucketState::Seen GridCore::enter(Bucket& bucket) noexcept {
  const BucketState::Seen seen = bucket.state.enter();
  if (!seen.is_shown()) [[unlikely]]
    show(bucket);
  return seen;
}

// REQUIRES: inside the bucket.
[[gnu::noinline]] void GridCore::show(Bucket& bucket) noexcept {
  const std::size_t index = index_of(bucket);
  bucket.state.show();
  // seq_cst, store buffering: before lists_matter looks.
  summary_[index / 64].fetch_or(std::uint64_t{1} << (index % 64), std::memory_order_seq_cst);
  hook(Hook::inside_bucket);
}

// Whether a range in a slot conflicts, and which one. `seen`: as we entered; a slot may be free
// since, and is refused as if not. REQUIRES: inside the bucket.
inline bool GridCore::find_in_slots(const Bucket& bucket, BucketState::Seen seen,
                                    const Range& range, RangeMode mode, Blocker& blocker) noexcept {
  using Seen = BucketState::Seen;
  for (Seen::Slots taken = seen.taken(); taken != 0; taken = Seen::without_first(taken)) {
    const unsigned slot = Seen::first_of(taken);
    const Range held = bucket.range(slot);
    const RangeMode held_mode = bucket.mode(slot);
    if (!conflict(held, held_mode, range, mode)) continue;
    blocker = {held, held_mode};
    return true;
  }
  return false;
}

// A free slot, kFull, or kConflict and what the range conflicts with. Ranges of another tag are of
// other granules, so they are not looked at. REQUIRES: inside the bucket.
inline unsigned GridCore::find_slot(Spot spot, BucketState::Seen seen, const Range& range,
                                    RangeMode mode, Blocker& blocker) noexcept {
  if (seen.has(spot.tag) && find_in_slots(*spot.bucket, seen, range, mode, blocker)) {
    return kConflict;
  }
  return seen.free() == 0 ? kFull : BucketState::Seen::first_of(seen.free());
}

// A slot in each bucket. The second is the one with the higher address: release() finds it by that.
void GridCore::fill_slots(Claim& claim, Spot first, unsigned first_slot, Spot second,
                          unsigned second_slot) noexcept {
  SP3_ASSERT(first.bucket < second.bucket);
  const std::uintptr_t kind = kInTwoSlots + second_slot;
  claim.place = kind << kKindShift | first.bucket->fill(first_slot, first.tag, claim);
  second.bucket->fill(second_slot, second.tag, claim);
}

[[gnu::noinline]] bool GridCore::attempt_inside(Claim& claim, GridEntered entered,
                                                Blocker& blocker) {
  Bucket& bucket = *entered.bucket;
  if (!entered.seen.is_shown()) [[unlikely]]
    show(bucket);
  const Spot spot = first_spot(claim.range);
  SP3_ASSERT(spot.bucket == &bucket);
  const unsigned slot = find_slot(spot, entered.seen, claim.range, claim.mode, blocker);
  if (slot >= kSlots || lists_matter(entered.seen)) [[unlikely]] {
    return attempt_with_lists(claim, spot, slot, spot, slot, blocker);
  }
  claim.place = bucket.fill(slot, spot.tag, claim);
  bucket.state.leave();
  return true;
}

// Both buckets are entered in ascending order, so that nobody waits in a circle.
[[gnu::noinline]] bool GridCore::attempt_in_two(Claim& claim, Blocker& blocker) {
  Spot first = first_spot(claim.range);
  Spot second = last_spot(claim.range);
  // Hashes of neighbours are 0.38 of all that there are apart, so these are two buckets.
  if (second.bucket < first.bucket) std::swap(first, second);
  const BucketState::Seen first_seen = enter(*first.bucket);
  const BucketState::Seen second_seen = enter(*second.bucket);
  const unsigned first_slot = find_slot(first, first_seen, claim.range, claim.mode, blocker);
  const unsigned second_slot =
      first_slot == kConflict ? kConflict
                              : find_slot(second, second_seen, claim.range, claim.mode, blocker);
  if (first_slot >= kSlots || second_slot >= kSlots || lists_matter(first_seen) ||
      lists_matter(second_seen)) [[unlikely]] {
    return attempt_with_lists(claim, first, first_slot, second, second_slot, blocker);
  }
  fill_slots(claim, first, first_slot, second, second_slot);
  second.bucket->state.leave();
  first.bucket->state.leave();
  return true;
}

// What find_slot found was not simply a slot to take: there is a conflict, or the lists have to be
// searched too, or have to take the range. REQUIRES: inside both buckets (or the one, named twice).
// Leaves them.
[[gnu::noinline]] bool GridCore::attempt_with_lists(Claim& claim, Spot first, unsigned first_slot,
                                                    Spot second, unsigned second_slot,
                                                    Blocker& blocker) {
  const bool two = second.bucket != first.bucket;
  const base::ScopeExit leave_both([&] {
    if (two) second.bucket->state.leave();
    first.bucket->state.leave();
  });
  if (first_slot == kConflict || second_slot == kConflict) return false;
  OwnerCore& owner = *claim.owner;
  if (first_slot != kFull && second_slot != kFull) {
    if (ordered_.find_conflict(owner, claim.range, claim.mode, blocker)) return false;
    if (two) {
      fill_slots(claim, first, first_slot, second, second_slot);
    } else {
      claim.place = first.bucket->fill(first_slot, first.tag, claim);
    }
    return true;
  }
  Node* const node = ordered_.attempt(owner, claim.range, claim.mode, blocker);
  if (node == nullptr) return false;
  first.bucket->state.count_overflow();
  if (two) second.bucket->state.count_overflow();
  claim.place = place_in(kOverflow, node);
  return true;
}

[[gnu::noinline]] bool GridCore::attempt_wide(Claim& claim, Blocker& blocker) {
  Node* const node = ordered_.attempt(*claim.owner, claim.range, claim.mode, blocker);
  if (node == nullptr) return false;
  // seq_cst, store buffering: before we look at the summary and the buckets.
  wide_.fetch_add(1, std::memory_order_seq_cst);
  if (find_narrow(claim.range, claim.mode, blocker)) {
    ordered_.retreat(node, claim.range, claim.mode);
    wide_.fetch_sub(1, std::memory_order_release);  // as in release_in_lists
    return false;
  }
  claim.place = place_in(kInLists, node);
  return true;
}

[[gnu::noinline]] bool GridCore::attempt(Claim& claim, Blocker& blocker) {
  const std::uint64_t granules = ((claim.range.end - 1) >> shift_) - (claim.range.begin >> shift_);
  if (granules == 0) {
    Bucket& bucket = *first_spot(claim.range).bucket;
    return attempt_inside(claim, {&bucket, bucket.state.enter()}, blocker);
  }
  return granules == 1 ? attempt_in_two(claim, blocker) : attempt_wide(claim, blocker);
}

[[gnu::noinline]] bool GridCore::attempt(Claim& claim) {
  Blocker blocker;
  return attempt(claim, blocker);
}

[[gnu::always_inline]] inline std::uintptr_t GridCore::attempt_simple(
    const Claim& claim, GridEntered& entered) noexcept {
  const std::uint64_t granule = claim.range.begin >> shift_;
  if ((claim.range.end - 1) >> shift_ != granule) [[unlikely]]
    return 0;
  const Spot spot = spot_of(granule);
  Bucket& bucket = *spot.bucket;
  BucketState::Seen& seen = entered.seen;
  if (!bucket.state.try_enter(seen)) [[unlikely]]
    return 0;
  if (seen.is_idle() && !lists_matter(seen)) [[likely]] {
    // A slot that is known before the state is: no store that follows waits for that.
    const std::uintptr_t place = bucket.fill(0, spot.tag, claim);
    bucket.state.leave();
    return place;
  }
  if (!seen.is_shown() || seen.has(spot.tag) || seen.free() == 0 || lists_matter(seen))
      [[unlikely]] {
    entered.bucket = &bucket;
    return 0;
  }
  const std::uintptr_t place =
      bucket.fill(BucketState::Seen::first_of(seen.free()), spot.tag, claim);
  bucket.state.leave();
  return place;
}

inline void GridCore::ask_ahead(const Range& range) const noexcept {
  const std::uint64_t first = range.begin >> shift_;
  const std::uint64_t last = (range.end - 1) >> shift_;
  if (last - first > 1) return;  // wide, or nothing
  base::prefetch_for_write(&spot_of(first).bucket->state);
  if (last != first) base::prefetch_for_write(&spot_of(last).bucket->state);
}

// Whether a held narrow range conflicts. Visits the buckets of the range's granules, or those whose
// summary bit is set, whichever are fewer.
bool GridCore::find_narrow(const Range& range, RangeMode mode, Blocker& blocker) noexcept {
  const std::uint64_t first = range.begin >> shift_;
  const std::uint64_t last = (range.end - 1) >> shift_;
  const auto is_set = [this](std::size_t index) {
    return (summary_[index / 64].load(std::memory_order_seq_cst) >> (index % 64) & 1) != 0;
  };
  if (last - first < bucket_count_ / 64) {
    for (std::uint64_t granule = first; granule <= last; ++granule) {
      Bucket& bucket = *spot_of(granule).bucket;
      if (is_set(index_of(bucket)) && visit_bucket(bucket, range, mode, blocker)) return true;
    }
    return false;
  }
  for (std::size_t word = 0; word < bucket_count_ / 64; ++word) {
    std::uint64_t bits = summary_[word].load(std::memory_order_seq_cst);
    for (; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      if (visit_bucket(buckets_[64 * word + bit], range, mode, blocker)) return true;
    }
  }
  return false;
}

// A bucket is looked at from inside: an acquisition that has passed lists_matter has filled its
// slot by then.
bool GridCore::visit_bucket(Bucket& bucket, const Range& range, RangeMode mode,
                            Blocker& blocker) noexcept {
  const BucketState::Seen seen = enter(bucket);
  const bool found = find_in_slots(bucket, seen, range, mode, blocker);
  if (seen.taken() == 0) {
    // relaxed: whoever enters next finds both cleared, by (6) and (7), and sets them again.
    bucket.state.hide();
    // release: the critical sections of those whose slots we found free happen before a wide
    // range that does not come here because the bit is clear.
    const std::size_t index = index_of(bucket);
    summary_[index / 64].fetch_and(~(std::uint64_t{1} << (index % 64)), std::memory_order_release);
  }
  bucket.state.leave();
  return found;
}

inline bool GridCore::is_in_slot(const Claim& claim) noexcept {
  return claim.place >> kKindShift == kInSlot;
}

inline void GridCore::release_in_slot(std::uintptr_t place, Range range) noexcept {
  BucketState::free(place);
  base::light_fence();  // between the slots and the look for waiters: see WaitQueue::enter
  queue_.released(range);
}

void GridCore::release(const Claim& claim) noexcept {
  const std::uintptr_t kind = claim.place >> kKindShift;
  if (kind == kInLists || kind == kOverflow) return release_in_lists(claim);
  if (kind != kInSlot) {
    Bucket* const second = std::max(first_spot(claim.range).bucket, last_spot(claim.range).bucket);
    BucketState::free(second->state.place_of(static_cast<unsigned>(kind - kInTwoSlots)));
  }
  release_in_slot(claim.place & kAddressMask, claim.range);
}

void GridCore::release_in_lists(const Claim& claim) noexcept {
  ordered_.release(*claim.owner, unmarked_node_of(claim.place & kAddressMask));
  // After: who still counts us only searches the lists in vain. (10) release: the critical section
  // happens before whoever does not search the lists, because nothing is counted any more.
  if (claim.place >> kKindShift == kInLists) {
    wide_.fetch_sub(1, std::memory_order_release);
    return;
  }
  Bucket* const first = first_spot(claim.range).bucket;
  Bucket* const second = last_spot(claim.range).bucket;
  first->state.uncount_overflow();
  if (second != first) second->state.uncount_overflow();
}

void GridCore::list_holders(OwnerCore& owner, std::vector<RangeHolder>& holders) const {
  struct Held {
    Range range;
    RangeMode mode;
    std::uint32_t owner;
  };
  for (std::size_t index = 0; index < bucket_count_; ++index) {
    Bucket& bucket = buckets_[index];
    if (bucket.state.look().taken() == 0) continue;
    Held found[kSlots];
    unsigned count = 0;
    using Seen = BucketState::Seen;
    const Seen seen = bucket.state.enter();
    for (Seen::Slots taken = seen.taken(); taken != 0; taken = Seen::without_first(taken)) {
      const unsigned slot = Seen::first_of(taken);
      const Range range = bucket.range(slot);
      // A range in two buckets is told by the first of its granules.
      if (first_spot(range).bucket != &bucket) continue;
      found[count++] = {range, bucket.mode(slot), bucket.owner(slot)};
    }
    bucket.state.leave();
    for (const Held& held : std::span(found, count)) {
      holders.push_back({held.range, held.mode, owner.domain.token_of(held.owner)});
    }
  }
  ordered_.list_holders(owner, holders);
}

}  // namespace sp3::rangelock

namespace sp3 {

// --- the public interface ------------------------------------------------------------------------

GridRangeLock::GridRangeLock(const RangeLockOptions& options)
    : BlockingRangeLock(options), core_(std::make_unique<rangelock::GridCore>(options, queue())) {}

GridRangeLock::~GridRangeLock() {
  check_idle();
  const rangelock::Guest guest(domain());
  core_->clear(guest.core());
}

bool GridRangeLock::attempt(rangelock::Claim& claim, rangelock::Blocker& blocker) {
  return core_->attempt(claim, blocker);
}

// In up to two steps, the first of which calls nothing.
void GridRangeLock::try_fill(RangeHandle& handle) {
  rangelock::GridEntered entered{};
  if (try_fill_at_once(
          handle, [&](const rangelock::Claim& claim) __attribute__((always_inline)) {
            return core_->attempt_simple(claim, entered);
          })) [[likely]]
    return;
  if (entered.bucket != nullptr) return try_fill_inside(handle, entered);
  try_fill_slowly(handle);
}

[[gnu::noinline]] void GridRangeLock::try_fill_inside(RangeHandle& handle,
                                                      rangelock::GridEntered entered) {
  // Refuses nothing: try_fill_at_once has looked.
  try_fill_by(handle, [&](rangelock::Claim& claim) {
    rangelock::Blocker blocker;  // nobody asks for it
    return core_->attempt_inside(claim, entered, blocker);
  });
}

[[gnu::noinline]] void GridRangeLock::try_fill_slowly(RangeHandle& handle) {
  try_fill_by(handle, [this](rangelock::Claim& claim) { return core_->attempt(claim); });
}

void GridRangeLock::release_handle(RangeHandle& handle) {
  if (!release_at_once(handle, rangelock::GridCore::is_in_slot,
                       [this](rangelock::OwnerCore&, std::uintptr_t place, Range range) {
                         core_->release_in_slot(place, range);
                       })) [[unlikely]]
    release_slowly(handle);
}

[[gnu::noinline]] void GridRangeLock::release_slowly(RangeHandle& handle) {
  release_by(handle, [this](const rangelock::Claim& claim) { core_->release(claim); });
}

void GridRangeLock::ask_ahead(std::span<const Range> ranges, RangeMode) const noexcept {
  for (const Range& range : ranges) core_->ask_ahead(range);
}

// To unlock is a store, which waits for its line without keeping anything else waiting.
void GridRangeLock::ask_ahead(std::span<const RangeHandle>) const noexcept {}

void GridRangeLock::list_holders(std::vector<RangeHolder>& holders) const {
  const rangelock::Guest guest(domain());
  core_->list_holders(guest.core(), holders);
}

}  // namespace sp3

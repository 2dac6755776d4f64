#include "rangelock/grid_core.h"

#include <algorithm>
#include <bit>
#include <new>
#include <span>

#include <fmt/format.h>

#include "base/assert.h"
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
      hash_shift_(64 - static_cast<unsigned>(std::countr_zero(options.buckets))),
      bucket_count_(options.buckets),
      summary_(std::make_unique<std::atomic<std::uint64_t>[]>(bucket_count_ / 64)),
      queue_(queue),
      ordered_(options.max_height, queue) {
  void* const memory =
      ::operator new[](bucket_count_ * sizeof(Bucket), std::align_val_t{alignof(Bucket)});
  buckets_.reset(static_cast<Bucket*>(memory));
  SP3_CHECK(reinterpret_cast<std::uintptr_t>(&buckets_[bucket_count_]) <= kAddressMask);
  for (std::size_t i = 0; i < bucket_count_; ++i) ::new (&buckets_[i]) Bucket{};
}

inline BucketState::Seen GridCore::enter(std::size_t index) noexcept {
  const BucketState::Seen seen = buckets_[index].state.enter();
  if (!seen.is_shown()) [[unlikely]]
    show(index);
  return seen;
}

// REQUIRES: inside the bucket.
[[gnu::noinline]] void GridCore::show(std::size_t index) noexcept {
  buckets_[index].state.show();
  // seq_cst, store buffering: before lists_matter looks.
  summary_[index / 64].fetch_or(std::uint64_t{1} << (index % 64), std::memory_order_seq_cst);
  hook(Hook::inside_bucket);
}

// A free slot, kFull, or kConflict and what the range conflicts with. `seen`: as we entered; a slot
// may be free since, and is refused as if not. REQUIRES: inside the bucket.
inline unsigned GridCore::find_slot(const Bucket& bucket, BucketState::Seen seen,
                                    const Range& range, RangeMode mode, Blocker& blocker) noexcept {
  using Seen = BucketState::Seen;
  for (Seen::Slots taken = seen.taken(); taken != 0; taken = Seen::without_first(taken)) {
    const unsigned slot = Seen::first_of(taken);
    // relaxed, both: written inside the bucket, before we entered.
    const std::uint64_t begin = bucket.begin[slot].load(std::memory_order_relaxed);
    const std::uint64_t end = begin + bucket.length[slot].load(std::memory_order_relaxed);
    const RangeMode held = seen.mode(slot);
    if (!conflict({begin, end}, held, range, mode)) continue;
    blocker = {{begin, end}, held};
    return kConflict;
  }
  return seen.free() == 0 ? kFull : Seen::first_of(seen.free());
}

// REQUIRES: inside the bucket; the slot is free. relaxed: leaving the bucket releases.
inline std::uintptr_t GridCore::fill_slot(Bucket& bucket, unsigned slot, const OwnerCore& owner,
                                          const Range& range, RangeMode mode) noexcept {
  bucket.begin[slot].store(range.begin, std::memory_order_relaxed);
  bucket.length[slot].store(static_cast<std::uint32_t>(range.end - range.begin),
                            std::memory_order_relaxed);
  bucket.owner[slot].store(static_cast<std::uint16_t>(owner.number), std::memory_order_relaxed);
  bucket.state.fill(slot, mode);
  return bucket.state.place_of(slot);
}

// The same in two buckets. The second is the one with the higher index: release() finds it by that.
void GridCore::fill_slots(Claim& claim, Bucket& first, unsigned first_slot, Bucket& second,
                          unsigned second_slot) noexcept {
  SP3_ASSERT(&first < &second);
  const std::uintptr_t kind = kInTwoSlots + second_slot;
  claim.place =
      kind << kKindShift | fill_slot(first, first_slot, *claim.owner, claim.range, claim.mode);
  fill_slot(second, second_slot, *claim.owner, claim.range, claim.mode);
}

[[gnu::noinline]] bool GridCore::attempt_in_one(Claim& claim, std::size_t index, Blocker& blocker) {
  Bucket& bucket = buckets_[index];
  const BucketState::Seen seen = enter(index);
  const unsigned slot = find_slot(bucket, seen, claim.range, claim.mode, blocker);
  if (slot >= kSlots || lists_matter(seen)) [[unlikely]] {
    return attempt_with_lists(claim, bucket, slot, bucket, slot, blocker);
  }
  claim.place = fill_slot(bucket, slot, *claim.owner, claim.range, claim.mode);
  bucket.state.leave();
  return true;
}

// Both buckets are entered in ascending order, so that nobody waits in a circle.
[[gnu::noinline]] bool GridCore::attempt_in_two(Claim& claim, Blocker& blocker) {
  const std::size_t a = bucket_index(claim.range.begin >> shift_);
  const std::size_t b = bucket_index((claim.range.end - 1) >> shift_);
  if (a == b) return attempt_in_one(claim, a, blocker);
  Bucket& first = buckets_[std::min(a, b)];
  Bucket& second = buckets_[std::max(a, b)];
  const BucketState::Seen first_seen = enter(std::min(a, b));
  const BucketState::Seen second_seen = enter(std::max(a, b));
  const unsigned first_slot = find_slot(first, first_seen, claim.range, claim.mode, blocker);
  const unsigned second_slot =
      first_slot == kConflict ? kConflict
                              : find_slot(second, second_seen, claim.range, claim.mode, blocker);
  if (first_slot >= kSlots || second_slot >= kSlots || lists_matter(first_seen) ||
      lists_matter(second_seen)) [[unlikely]] {
    return attempt_with_lists(claim, first, first_slot, second, second_slot, blocker);
  }
  fill_slots(claim, first, first_slot, second, second_slot);
  second.state.leave();
  first.state.leave();
  return true;
}

// What find_slot found was not simply a slot to take: there is a conflict, or the lists have to be
// searched too, or have to take the range. REQUIRES: inside both buckets (or the one, named twice).
// Leaves them.
[[gnu::noinline]] bool GridCore::attempt_with_lists(Claim& claim, Bucket& first,
                                                    unsigned first_slot, Bucket& second,
                                                    unsigned second_slot, Blocker& blocker) {
  const base::ScopeExit leave_both([&] {
    if (&second != &first) second.state.leave();
    first.state.leave();
  });
  if (first_slot == kConflict || second_slot == kConflict) return false;
  OwnerCore& owner = *claim.owner;
  if (first_slot != kFull && second_slot != kFull) {
    if (ordered_.find_conflict(owner, claim.range, claim.mode, blocker)) return false;
    if (&first == &second) {
      claim.place = fill_slot(first, first_slot, owner, claim.range, claim.mode);
    } else {
      fill_slots(claim, first, first_slot, second, second_slot);
    }
    return true;
  }
  Node* const node = ordered_.attempt(owner, claim.range, claim.mode, blocker);
  if (node == nullptr) return false;
  first.state.count_overflow();
  if (&second != &first) second.state.count_overflow();
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
  const std::uint64_t first = claim.range.begin >> shift_;
  const std::uint64_t granules = ((claim.range.end - 1) >> shift_) - first;
  if (granules == 0) return attempt_in_one(claim, bucket_index(first), blocker);
  return granules == 1 ? attempt_in_two(claim, blocker) : attempt_wide(claim, blocker);
}

[[gnu::noinline]] bool GridCore::attempt(Claim& claim) {
  Blocker blocker;
  return attempt(claim, blocker);
}

[[gnu::always_inline]] inline std::uintptr_t GridCore::attempt_alone(
    const OwnerCore& owner, Range range, RangeMode mode, GridEntered& entered) noexcept {
  entered.bucket = nullptr;
  const std::uint64_t granule = range.begin >> shift_;
  if ((range.end - 1) >> shift_ != granule) [[unlikely]]
    return 0;
  Bucket& bucket = buckets_[bucket_index(granule)];
  if (!bucket.state.try_enter(entered.seen)) [[unlikely]]
    return 0;
  if (!entered.seen.is_idle() || lists_matter(entered.seen)) [[unlikely]] {
    entered.bucket = &bucket;
    return 0;
  }
  // A slot that is known before the state is: no store that follows waits for that.
  const std::uintptr_t place = fill_slot(bucket, 0, owner, range, mode);
  bucket.state.leave();
  return place;
}

[[gnu::always_inline]] inline std::uintptr_t GridCore::attempt_beside(
    const OwnerCore& owner, Range range, RangeMode mode, GridEntered entered) noexcept {
  Bucket& bucket = *entered.bucket;
  std::uintptr_t place = 0;
  Blocker blocker;
  const unsigned slot = find_slot(bucket, entered.seen, range, mode, blocker);
  if (slot < kSlots && entered.seen.is_shown() && !lists_matter(entered.seen)) [[likely]]
    place = fill_slot(bucket, slot, owner, range, mode);
  bucket.state.leave();
  return place;
}

inline void GridCore::ask_ahead(const Range& range) const noexcept {
  const std::uint64_t first = range.begin >> shift_;
  const std::uint64_t last = (range.end - 1) >> shift_;
  if (last - first > 1) return;  // wide, or nothing
  base::prefetch_for_write(&buckets_[bucket_index(first)].state);
  if (last != first) base::prefetch_for_write(&buckets_[bucket_index(last)].state);
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
      const std::size_t index = bucket_index(granule);
      if (is_set(index) && visit_bucket(index, range, mode, blocker)) return true;
    }
    return false;
  }
  for (std::size_t word = 0; word < bucket_count_ / 64; ++word) {
    std::uint64_t bits = summary_[word].load(std::memory_order_seq_cst);
    for (; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      if (visit_bucket(64 * word + bit, range, mode, blocker)) return true;
    }
  }
  return false;
}

// A bucket is looked at from inside: an acquisition that has passed lists_matter has filled its
// slot by then.
bool GridCore::visit_bucket(std::size_t index, const Range& range, RangeMode mode,
                            Blocker& blocker) noexcept {
  Bucket& bucket = buckets_[index];
  const BucketState::Seen seen = enter(index);
  const bool found = find_slot(bucket, seen, range, mode, blocker) == kConflict;
  if (seen.taken() == 0) {
    // relaxed: whoever enters next finds both cleared, by (6) and (7), and sets them again.
    bucket.state.hide();
    // release: the critical sections of those whose slots we found free happen before a wide
    // range that does not come here because the bit is clear.
    summary_[index / 64].fetch_and(~(std::uint64_t{1} << (index % 64)), std::memory_order_release);
  }
  bucket.state.leave();
  return found;
}

inline bool GridCore::is_in_slot(const Claim& claim) noexcept {
  return claim.place >> kKindShift == kInSlot;
}

void GridCore::release(const Claim& claim) noexcept {
  const std::uintptr_t kind = claim.place >> kKindShift;
  if (kind == kInLists || kind == kOverflow) return release_in_lists(claim);
  BucketState::free(claim.place & kAddressMask);
  if (kind != kInSlot) {
    const std::size_t second = std::max(bucket_index(claim.range.begin >> shift_),
                                        bucket_index((claim.range.end - 1) >> shift_));
    const auto slot = static_cast<unsigned>(kind - kInTwoSlots);
    BucketState::free(buckets_[second].state.place_of(slot));
  }
  base::light_fence();  // between the slots and the look for waiters: see WaitQueue::enter
  queue_.released(claim.range);
}

void GridCore::release_in_lists(const Claim& claim) noexcept {
  ordered_.release(*claim.owner, unmarked_node_of(claim.place & kAddressMask), claim.range);
  // After: who still counts us only searches the lists in vain. (10) release: the critical section
  // happens before whoever does not search the lists, because nothing is counted any more.
  if (claim.place >> kKindShift == kInLists) {
    wide_.fetch_sub(1, std::memory_order_release);
    return;
  }
  const std::size_t first = bucket_index(claim.range.begin >> shift_);
  const std::size_t second = bucket_index((claim.range.end - 1) >> shift_);
  buckets_[first].state.uncount_overflow();
  if (second != first) buckets_[second].state.uncount_overflow();
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
      const std::uint64_t begin = bucket.begin[slot].load(std::memory_order_relaxed);
      // A range in two buckets is told by the first of its granules.
      if (bucket_index(begin >> shift_) != index) continue;
      found[count++] = {{begin, begin + bucket.length[slot].load(std::memory_order_relaxed)},
                        seen.mode(slot),
                        bucket.owner[slot].load(std::memory_order_relaxed)};
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

// In up to three steps, none of which has more registers to save than it needs.
void GridRangeLock::try_fill(RangeHandle& handle, rangelock::OwnerCore& owner, std::uint64_t begin,
                             std::uint64_t end, RangeMode mode) {
  rangelock::GridEntered entered;
  if (!may_fill_at_once(owner, begin, end)) [[unlikely]]
    return try_fill_slowly(handle, owner);
  const std::uintptr_t place = core_->attempt_alone(owner, {begin, end}, mode, entered);
  if (place != 0) [[likely]]
    return fill_at_once(handle, owner, place);
  if (entered.bucket != nullptr) return try_fill_beside(handle, owner, entered);
  try_fill_slowly(handle, owner);
}

[[gnu::noinline]] void GridRangeLock::try_fill_beside(RangeHandle& handle,
                                                      rangelock::OwnerCore& owner,
                                                      rangelock::GridEntered entered) {
  const std::uintptr_t place = core_->attempt_beside(owner, handle.range(), handle.mode(), entered);
  if (place != 0) [[likely]]
    return fill_at_once(handle, owner, place);
  try_fill_slowly(handle, owner);
}

[[gnu::noinline]] void GridRangeLock::try_fill_slowly(RangeHandle& handle,
                                                      rangelock::OwnerCore& owner) {
  try_fill_by(handle, owner, handle.range().begin, handle.range().end, handle.mode(),
              [this](rangelock::Claim& claim) { return core_->attempt(claim); });
}

void GridRangeLock::release_handle(RangeHandle& handle) {
  release_at_once(handle, rangelock::GridCore::is_in_slot, rangelock::BucketState::free,
                  [&] { release_slowly(handle); });
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

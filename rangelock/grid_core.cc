#include "rangelock/grid_core.h"

#include <algorithm>
#include <bit>
#include <new>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/fence.h"
#include "base/scope_exit.h"
#include "emu/spin.h"
#include "rangelock/fast_path.h"
#include "rangelock/hook.h"

namespace sp3::rangelock {

namespace {

// What place[0] says of a handle: the address of a slot's begin, or one of these.
constexpr std::uintptr_t kInLists = 1;   // wide: place[1] is the node
constexpr std::uintptr_t kOverflow = 2;  // narrow, without a slot: place[1] is the node

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

void release_slot(std::uintptr_t place) noexcept {
  // (8) release: the critical section happens before whoever finds the slot free (9).
  reinterpret_cast<std::atomic<std::uint64_t>*>(place)->store(kFree, std::memory_order_release);
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
  for (std::size_t i = 0; i < bucket_count_; ++i) {
    Bucket* const bucket = ::new (&buckets_[i]) Bucket{};
    for (auto& begin : bucket->begin) begin.store(kFree, std::memory_order_relaxed);
  }
}

// Takes the bucket, and shows in the summary that it may have something.
inline Bucket& GridCore::enter(std::size_t index) noexcept {
  Bucket& bucket = buckets_[index];
  // (7) acquire: pairs with (6). seq_cst, store buffering: before lists_matter looks.
  if (bucket.busy.exchange(1, std::memory_order_seq_cst) != 0) [[unlikely]]
    wait_to_enter(bucket);
  if (bucket.shown.load(std::memory_order_relaxed) == 0) [[unlikely]]
    show(index);
  return bucket;
}

[[gnu::noinline]] void GridCore::wait_to_enter(Bucket& bucket) noexcept {
  emu::Spin spin;
  do {
    while (bucket.busy.load(std::memory_order_relaxed) != 0) spin.pause();
  } while (bucket.busy.exchange(1, std::memory_order_seq_cst) != 0);
}

// REQUIRES: inside the bucket.
[[gnu::noinline]] void GridCore::show(std::size_t index) noexcept {
  buckets_[index].shown.store(1, std::memory_order_relaxed);
  // seq_cst, store buffering: before lists_matter looks.
  summary_[index / 64].fetch_or(std::uint64_t{1} << (index % 64), std::memory_order_seq_cst);
  hook(Hook::inside_bucket);
}

// A free slot, kFull, or kConflict and what the range conflicts with. REQUIRES: inside the bucket.
inline unsigned GridCore::find_slot(const Bucket& bucket, const Range& range, RangeMode mode,
                                    Blocker& blocker) noexcept {
  std::uint64_t begin[kSlots];
  // (9) acquire: pairs with (8).
#pragma GCC unroll 4
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    begin[slot] = bucket.begin[slot].load(std::memory_order_acquire);
  }
#pragma GCC unroll 4
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    if (begin[slot] >= range.end) continue;  // a free slot begins behind every range
    const std::uint64_t end = begin[slot] + bucket.length[slot].load(std::memory_order_relaxed);
    if (end <= range.begin) continue;
    const bool shared = ((bucket.modes.load(std::memory_order_relaxed) >> slot) & 1) != 0;
    if (shared && mode == RangeMode::shared) continue;
    blocker = {{begin[slot], end}, shared ? RangeMode::shared : RangeMode::exclusive};
    return kConflict;
  }
#pragma GCC unroll 4
  for (unsigned slot = 0; slot < kSlots; ++slot) {
    if (begin[slot] == kFree) return slot;
  }
  return kFull;
}

// REQUIRES: inside the bucket; the slot is free.
inline std::uintptr_t GridCore::fill_slot(Bucket& bucket, unsigned slot, const OwnerCore& owner,
                                          const Range& range, RangeMode mode) noexcept {
  bucket.length[slot].store(static_cast<std::uint32_t>(range.end - range.begin),
                            std::memory_order_relaxed);
  bucket.owner[slot].store(static_cast<std::uint16_t>(owner.number), std::memory_order_relaxed);
  const unsigned modes = bucket.modes.load(std::memory_order_relaxed);
  if (modes != 0 || mode == RangeMode::shared) [[unlikely]] {
    const unsigned bit = 1U << slot;
    bucket.modes.store(
        static_cast<std::uint8_t>(mode == RangeMode::shared ? modes | bit : modes & ~bit),
        std::memory_order_relaxed);
  }
  // release: introspection finds the length that belongs to the begin.
  bucket.begin[slot].store(range.begin, std::memory_order_release);
  return reinterpret_cast<std::uintptr_t>(&bucket.begin[slot]);
}

[[gnu::noinline]] bool GridCore::attempt_in_one(Claim& claim, std::size_t index, Blocker& blocker) {
  Bucket& bucket = enter(index);
  const unsigned slot = find_slot(bucket, claim.range, claim.mode, blocker);
  if (slot >= kSlots || lists_matter(bucket)) [[unlikely]] {
    return attempt_with_lists(claim, bucket, slot, bucket, slot, blocker);
  }
  claim.place[0] = fill_slot(bucket, slot, *claim.owner, claim.range, claim.mode);
  claim.place[1] = 0;
  leave(bucket);
  return true;
}

// Both buckets are entered in ascending order, so that nobody waits in a circle.
[[gnu::noinline]] bool GridCore::attempt_in_two(Claim& claim, Blocker& blocker) {
  const std::size_t a = bucket_index(claim.range.begin >> shift_);
  const std::size_t b = bucket_index((claim.range.end - 1) >> shift_);
  if (a == b) return attempt_in_one(claim, a, blocker);
  Bucket& first = enter(std::min(a, b));
  Bucket& second = enter(std::max(a, b));
  const unsigned first_slot = find_slot(first, claim.range, claim.mode, blocker);
  const unsigned second_slot =
      first_slot == kConflict ? kConflict : find_slot(second, claim.range, claim.mode, blocker);
  if (first_slot >= kSlots || second_slot >= kSlots || lists_matter(first) || lists_matter(second))
      [[unlikely]] {
    return attempt_with_lists(claim, first, first_slot, second, second_slot, blocker);
  }
  claim.place[0] = fill_slot(first, first_slot, *claim.owner, claim.range, claim.mode);
  claim.place[1] = fill_slot(second, second_slot, *claim.owner, claim.range, claim.mode);
  leave(second);
  leave(first);
  return true;
}

// What find_slot found was not simply a slot to take: there is a conflict, or the lists have to be
// searched too, or have to take the range. REQUIRES: inside both buckets (or the one, named twice).
// Leaves them.
[[gnu::noinline]] bool GridCore::attempt_with_lists(Claim& claim, Bucket& first,
                                                    unsigned first_slot, Bucket& second,
                                                    unsigned second_slot, Blocker& blocker) {
  const base::ScopeExit leave_both([&] {
    if (&second != &first) leave(second);
    leave(first);
  });
  if (first_slot == kConflict || second_slot == kConflict) return false;
  OwnerCore& owner = *claim.owner;
  if (first_slot != kFull && second_slot != kFull) {
    if (ordered_.find_conflict(owner, claim.range, claim.mode, blocker)) return false;
    claim.place[0] = fill_slot(first, first_slot, *claim.owner, claim.range, claim.mode);
    claim.place[1] = &first == &second
                         ? 0
                         : fill_slot(second, second_slot, *claim.owner, claim.range, claim.mode);
    return true;
  }
  Node* const node = ordered_.attempt(owner, claim.range, claim.mode, blocker);
  if (node == nullptr) return false;
  // relaxed: we are inside; see lists_matter. It hands on what was released with (10), like every
  // read-modify-write.
  first.overflow.fetch_add(1, std::memory_order_relaxed);
  if (&second != &first) second.overflow.fetch_add(1, std::memory_order_relaxed);
  claim.place[0] = kOverflow;
  claim.place[1] = link_to(node);
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
  claim.place[0] = kInLists;
  claim.place[1] = link_to(node);
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

// One granule, nobody in its bucket, no wide range, no overflow, a free slot: that is nearly
// always. Everything else starts again in attempt.
[[gnu::always_inline]] inline bool GridCore::attempt_alone(const OwnerCore& owner, Range range,
                                                           RangeMode mode,
                                                           std::uintptr_t (&place)[2]) noexcept {
  const std::uint64_t granule = range.begin >> shift_;
  if ((range.end - 1) >> shift_ != granule) [[unlikely]]
    return false;
  Bucket& bucket = buckets_[bucket_index(granule)];
  // As in enter (7).
  if (bucket.busy.exchange(1, std::memory_order_seq_cst) != 0) [[unlikely]]
    return false;
  Blocker blocker;
  const unsigned slot = find_slot(bucket, range, mode, blocker);
  if (slot >= kSlots || bucket.shown.load(std::memory_order_relaxed) == 0 || lists_matter(bucket))
      [[unlikely]] {
    leave(bucket);
    return false;
  }
  place[0] = fill_slot(bucket, slot, owner, range, mode);
  place[1] = 0;
  leave(bucket);
  return true;
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
  Bucket& bucket = enter(index);
  const bool found = find_slot(bucket, range, mode, blocker) == kConflict;
  const auto is_free = [](const auto& begin) {
    return begin.load(std::memory_order_relaxed) == kFree;
  };
  if (!found && std::ranges::all_of(bucket.begin, is_free)) {
    // relaxed: whoever enters next finds both cleared, by (6) and (7), and sets them again.
    bucket.shown.store(0, std::memory_order_relaxed);
    // release: the critical sections of those whose slots we found free (9) happen before a wide
    // range that does not come here because the bit is clear.
    summary_[index / 64].fetch_and(~(std::uint64_t{1} << (index % 64)), std::memory_order_release);
  }
  leave(bucket);
  return found;
}

inline void GridCore::release(const Claim& claim) noexcept {
  if (claim.place[0] <= kOverflow) [[unlikely]]
    return release_in_lists(claim);
  release_slot(claim.place[0]);
  if (claim.place[1] != 0) [[unlikely]]
    release_slot(claim.place[1]);
  base::light_fence();  // between the slots and the look for waiters: see WaitQueue::enter
  queue_.released(claim.range);
}

[[gnu::noinline]] void GridCore::release_in_lists(const Claim& claim) noexcept {
  ordered_.release(*claim.owner, unmarked_node_of(claim.place[1]), claim.range);
  // After: who still counts us only searches the lists in vain. (10) release: the critical section
  // happens before whoever does not search the lists, because nothing is counted any more (11).
  if (claim.place[0] == kInLists) {
    wide_.fetch_sub(1, std::memory_order_release);
    return;
  }
  const std::size_t first = bucket_index(claim.range.begin >> shift_);
  const std::size_t second = bucket_index((claim.range.end - 1) >> shift_);
  buckets_[first].overflow.fetch_sub(1, std::memory_order_release);
  if (second != first) buckets_[second].overflow.fetch_sub(1, std::memory_order_release);
}

void GridCore::list_holders(OwnerCore& owner, std::vector<RangeHolder>& holders) const {
  for (std::size_t index = 0; index < bucket_count_; ++index) {
    const Bucket& bucket = buckets_[index];
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      const std::uint64_t begin = bucket.begin[slot].load(std::memory_order_acquire);
      // A range in two buckets is told by the first of its granules.
      if (begin == kFree || bucket_index(begin >> shift_) != index) continue;
      const bool shared = ((bucket.modes.load(std::memory_order_relaxed) >> slot) & 1) != 0;
      const Range range{begin, begin + bucket.length[slot].load(std::memory_order_relaxed)};
      const std::uint32_t number = bucket.owner[slot].load(std::memory_order_relaxed);
      // Another range may have come meanwhile; then this is neither.
      if (bucket.begin[slot].load(std::memory_order_acquire) != begin) continue;
      holders.push_back({range, shared ? RangeMode::shared : RangeMode::exclusive,
                         owner.domain.token_of(number)});
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

RangeHandle GridRangeLock::try_acquire(RangeOwner& owner, std::uint64_t begin, std::uint64_t end,
                                       RangeMode mode) {
  return try_acquire_by(owner, begin, end, mode, [&](rangelock::Claim& claim) {
    return core_->attempt_alone(owner.core(), {begin, end}, mode, claim.place) ||
           core_->attempt(claim);
  });
}

void GridRangeLock::release_handle(RangeHandle& handle) {
  release_by(handle, [this](const rangelock::Claim& claim) { core_->release(claim); });
}

void GridRangeLock::list_holders(std::vector<RangeHolder>& holders) const {
  const rangelock::Guest guest(domain());
  core_->list_holders(guest.core(), holders);
}

}  // namespace sp3

#include "runtime/ranged_locks.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "base/scaled.h"
#include "rangelock/domain.h"

namespace sp3::runtime {

RangedLocks::RangedLocks(RangeLockKind kind, std::size_t owners)
    // Room for more than there can be at a time, where a domain has it.
    : domain_(std::min(2 * owners + 2, rangelock::Domain::kMaxOwners)) {
  RangeLockOptions options;
  options.domain = &domain_;
  // Simulated objects are small; some of their ranges are to be wide all the same.
  options.granule = base::scaled<std::uint64_t>(4096, 64);
  options.buckets = base::scaled<std::size_t>(256, 64);  // of sixteen locks, for as many sessions
  for (auto& lock : skiplists_) {
    if (kind == RangeLockKind::skiplist) lock = std::make_unique<SkiplistRangeLock>(options);
  }
  for (auto& lock : grids_) {
    if (kind == RangeLockKind::grid) lock = std::make_unique<GridRangeLock>(options);
  }
}

RangedSpace RangedLocks::space_of(std::uint64_t object) noexcept {
  const std::uint64_t hash = base::spread(object);
  const std::size_t number = hash >> (64 - std::bit_width(kLocks - 1));
  BlockingRangeLock* lock = skiplists_[number].get();
  if (lock == nullptr) lock = grids_[number].get();
  return {lock, hash << std::bit_width(kLocks - 1) >> kRangedLengthBits << kRangedLengthBits};
}

}  // namespace sp3::runtime

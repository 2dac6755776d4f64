#include "log/segment_pool.h"

#include "base/assert.h"
#include "base/scaled.h"

namespace sp3::log {

std::optional<std::uint32_t> SegmentPool::take(std::uint32_t count) {
  SP3_CHECK(count > 0 && count <= total());
  const std::lock_guard guard(mutex_);
  if (has_precedence_over(count)) {
    ++refused_for_it_;
    return std::nullopt;
  }
  std::uint32_t run = 0;
  // One lap and a bit: a run may cross the point where the search starts, but not the end.
  const std::uint64_t end = std::uint64_t{total()} + count;
  for (std::uint64_t i = 0; i < end; ++i) {
    const auto segment = static_cast<std::uint32_t>((next_ + i) % total());
    if (segment == 0) run = 0;
    run = used_[segment] ? 0 : run + 1;
    if (run < count) continue;
    const std::uint32_t first = segment + 1 - count;
    for (std::uint32_t s = first; s <= segment; ++s) used_[s] = true;
    free_count_ -= count;
    next_ = (segment + 1) % total();
    waiting_for_ = 0;
    refused_for_it_ = 0;
    return first;
  }
  // A single segment cannot be starved by others of its size; only larger requests need the queue.
  if (count > 1) {
    waiting_for_ = count;
    refused_for_it_ = 0;
  }
  return std::nullopt;
}

// Of the larger request that waits; REQUIRES: the mutex is held.
bool SegmentPool::has_precedence_over(std::uint32_t count) const {
  return waiting_for_ > count && refused_for_it_ + 1 < base::scaled(1000U, 1000U, 3U);
}

bool SegmentPool::yields(std::uint32_t count) const {
  const std::lock_guard guard(mutex_);
  return has_precedence_over(count);
}

// Another request for as many loses its precedence too, until it is refused the next time.
void SegmentPool::give_up(std::uint32_t count) noexcept {
  const std::lock_guard guard(mutex_);
  if (waiting_for_ == count) waiting_for_ = 0;
}

void SegmentPool::give_back(std::uint32_t first, std::uint32_t count) {
  const std::lock_guard guard(mutex_);
  for (std::uint32_t s = first; s < first + count; ++s) {
    SP3_CHECK(used_[s]);
    used_[s] = false;
  }
  free_count_ += count;
}

std::uint32_t SegmentPool::used() const {
  const std::lock_guard guard(mutex_);
  return total() - free_count_;
}

}  // namespace sp3::log

#include "log/segment_pool.h"

#include <algorithm>

#include "base/assert.h"
#include "base/scaled.h"

namespace sp3::log {

std::optional<std::uint32_t> SegmentPool::take(std::uint32_t count) {
  SP3_CHECK(count > 0 && count <= total());
  const std::lock_guard guard(mutex_);
  if (is_behind_another(count)) {
    line_up(count);
    ++refused_for_first_;
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
    if (!line_.empty() && line_.front() != count) ++passed_first_;
    leave_line(count);
    return first;
  }
  line_up(count);
  if (line_.front() == count) refused_for_first_ = 0;
  return std::nullopt;
}

// REQUIRES, here and of the next two: the mutex is held.
bool SegmentPool::is_behind_another(std::uint32_t count) const {
  if (line_.empty() || line_.front() == count) return false;
  const bool may_pass = count > line_.front() && passed_first_ < kMostPasses;
  return !may_pass && refused_for_first_ + 1 < base::scaled(1000U, 1000U, 3U);
}

void SegmentPool::line_up(std::uint32_t count) {
  if (std::ranges::find(line_, count) == line_.end()) line_.push_back(count);
}

// Others that wait for as many line up again when they are refused the next time.
void SegmentPool::leave_line(std::uint32_t count) noexcept {
  const auto place = std::ranges::find(line_, count);
  if (place == line_.end()) return;
  if (place == line_.begin()) passed_first_ = refused_for_first_ = 0;
  line_.erase(place);
}

bool SegmentPool::yields(std::uint32_t count) const {
  const std::lock_guard guard(mutex_);
  return is_behind_another(count);
}

void SegmentPool::give_up(std::uint32_t count) noexcept {
  const std::lock_guard guard(mutex_);
  leave_line(count);
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

#include "runtime/range_holds.h"

#include <algorithm>
#include <functional>

#include "base/scaled.h"
#include "emu/spin.h"

namespace sp3::runtime {

namespace {
// So that the next element can be added without an error.
template <class T>
void make_room(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(2 * list.size() + 4);
}
}  // namespace

std::size_t RangeHolds::first_ending_after(const BlockingRangeLock& lock,
                                           std::uint64_t begin) const noexcept {
  const auto is_before = [&](const Hold& hold) {
    return hold.lock == &lock ? hold.handle.range().end <= begin : std::less<>()(hold.lock, &lock);
  };
  // What is written next mostly lies behind what was written last.
  if (holds_.empty() || is_before(holds_.back())) return holds_.size();
  return static_cast<std::size_t>(std::partition_point(holds_.begin(), holds_.end(), is_before) -
                                  holds_.begin());
}

// Calls take(gap, place) for each part of `range` that is not held, until one returns false. `place`
// is where a hold of the gap belongs.
template <class Take>
bool RangeHolds::for_each_gap(const BlockingRangeLock& lock, const Range& range, Take&& take) {
  std::uint64_t at = range.begin;
  std::size_t i = first_ending_after(lock, at);
  while (at < range.end) {
    const bool is_last = i == holds_.size() || holds_[i].lock != &lock ||
                         holds_[i].handle.range().begin >= range.end;
    const std::uint64_t end = is_last ? range.end : holds_[i].handle.range().begin;
    if (at < end) {
      const std::size_t before = holds_.size();
      if (!take(Range{at, end}, i)) return false;
      i += holds_.size() - before;
    }
    if (is_last) return true;
    at = holds_[i].handle.range().end;
    ++i;
  }
  return true;
}

RangeHandle RangeHolds::try_patiently(BlockingRangeLock& lock, const Range& range, RangeMode mode) {
  // Some microseconds of spinning, then as many offers of the core.
  const std::uint32_t patience = base::scaled(512U, 16U);
  emu::Spin spin;
  while (true) {
    RangeHandle handle = mode == RangeMode::exclusive
                             ? lock.try_lock(owner_, range.begin, range.end)
                             : lock.try_lock_shared(owner_, range.begin, range.end);
    if (handle || spin.rounds() >= patience) return handle;
    spin.pause();
  }
}

bool RangeHolds::take(BlockingRangeLock& lock, const Range& range) {
  if (holds_.empty() && views_.empty()) {  // nothing to look for gaps in
    make_room(holds_);
    RangeHandle handle = lock.try_lock(owner_, range.begin, range.end);
    if (!handle) [[unlikely]]
      handle = try_patiently(lock, range, RangeMode::exclusive);
    if (!handle) return false;
    holds_.push_back({&lock, std::move(handle)});
    return true;
  }
  // What a view shows is validated at commit like everything read, so it may let go.
  for (View& view : views_) {
    if (view.lock == &lock && view.range.overlaps(range)) unlock(view);
  }
  return for_each_gap(lock, range, [&](const Range& gap, std::size_t place) {
    make_room(holds_);  // a handle that is had must not be lost
    RangeHandle handle = try_patiently(lock, gap, RangeMode::exclusive);
    if (!handle) return false;
    holds_.insert(holds_.begin() + static_cast<std::ptrdiff_t>(place), {&lock, std::move(handle)});
    return true;
  });
}

std::optional<std::uint32_t> RangeHolds::take_view(BlockingRangeLock& lock, const Range& range,
                                                   std::uint64_t object) {
  View& view = views_.emplace_back();
  view.lock = &lock;
  view.range = range;
  view.object = object;
  const bool taken = for_each_gap(lock, range, [&](const Range& gap, std::size_t) {
    make_room(view.handles);
    RangeHandle handle = try_patiently(lock, gap, RangeMode::shared);
    if (!handle) return false;
    view.handles.push_back(std::move(handle));
    return true;
  });
  if (!taken) return std::nullopt;  // release() comes with the end of the attempt
  return static_cast<std::uint32_t>(views_.size());
}

void RangeHolds::unlock(View& view) noexcept {
  for (RangeHandle& handle : view.handles) view.lock->unlock(handle);
  view.handles.clear();
}

void RangeHolds::release_view(std::uint32_t view) noexcept {
  View& closed = views_[view - 1];
  unlock(closed);
  closed.lock = nullptr;
}

bool RangeHolds::covers(const BlockingRangeLock& lock, const Range& range) const noexcept {
  std::uint64_t at = range.begin;
  for (std::size_t i = first_ending_after(lock, at); i < holds_.size() && at < range.end; ++i) {
    if (holds_[i].lock != &lock || holds_[i].handle.range().begin > at) return false;
    at = holds_[i].handle.range().end;
  }
  return at >= range.end;
}

bool RangeHolds::is_viewed(std::uint64_t object) const noexcept {
  return std::any_of(views_.begin(), views_.end(), [&](const View& view) {
    return view.lock != nullptr && view.object == object;
  });
}

void RangeHolds::release() noexcept {
  for (Hold& hold : holds_) hold.lock->unlock(hold.handle);
  holds_.clear();
  for (View& view : views_) {
    if (view.lock != nullptr) unlock(view);
  }
  views_.clear();
}

}  // namespace sp3::runtime

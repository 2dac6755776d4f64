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

RangeHolds::Place RangeHolds::first_ending_after(const BlockingRangeLock& lock,
                                                 std::uint64_t begin) const noexcept {
  return holds_.find([&](const Hold& hold) {
    return hold.lock == &lock ? hold.handle.range().end <= begin : std::less<>()(hold.lock, &lock);
  });
}

// Calls take(gap, place) for each part of `range` that is not held, until one returns false.
// `place` is where a hold of the gap belongs; who puts one there sets it to the place behind.
template <class Take>
bool RangeHolds::for_each_gap(const BlockingRangeLock& lock, const Range& range, Take&& take) {
  std::uint64_t at = range.begin;
  Place place = first_ending_after(lock, at);
  while (at < range.end) {
    const bool is_last = holds_.is_end(place) || holds_.at(place).lock != &lock ||
                         holds_.at(place).handle.range().begin >= range.end;
    const std::uint64_t end = is_last ? range.end : holds_.at(place).handle.range().begin;
    if (at < end && !take(Range{at, end}, place)) return false;
    if (is_last) return true;
    at = holds_.at(place).handle.range().end;
    place = holds_.next(place);
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
    holds_.make_room({});
    RangeHandle handle = lock.try_lock(owner_, range.begin, range.end);
    if (!handle) [[unlikely]]
      handle = try_patiently(lock, range, RangeMode::exclusive);
    if (!handle) return false;
    holds_.insert({}, {&lock, std::move(handle)});
    return true;
  }
  // What a view shows is validated at commit like everything read, so it may let go.
  unlock_views(lock, range);
  return for_each_gap(lock, range, [&](const Range& gap, Place& place) {
    holds_.make_room(place);  // a handle that is had must not be lost
    RangeHandle handle = lock.try_lock(owner_, gap.begin, gap.end);
    if (!handle) [[unlikely]]
      handle = try_patiently(lock, gap, RangeMode::exclusive);
    if (!handle) return false;
    place = holds_.insert(place, {&lock, std::move(handle)});
    return true;
  });
}

// Those that overlap the range.
inline void RangeHolds::unlock_views(const BlockingRangeLock& lock, const Range& range) {
  constexpr std::size_t kFew = 16;  // that are looked at faster than an index
  if (views_.size() > kFew) return unlock_views_by_index(lock, range);
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (views_[i].lock == &lock && views_[i].range.overlaps(range)) unlock(i);
  }
}

[[gnu::noinline]] void RangeHolds::unlock_views_by_index(const BlockingRangeLock& lock,
                                                         const Range& range) {
  for (; indexed_ < views_.size(); ++indexed_) {
    const View& view = views_[indexed_];
    if (view.handles.empty()) continue;
    index_.insert({view.lock, view.range.begin, indexed_});
    reach_ = std::max(reach_, view.range.end - view.range.begin);
  }
  const std::uint64_t first = range.begin - std::min(range.begin, reach_);
  auto each = index_.lower_bound({&lock, first, 0});
  while (each != index_.end() && each->lock == &lock && each->begin < range.end) {
    const std::size_t view = (each++)->place;
    if (views_[view].range.overlaps(range)) unlock(view);
  }
}

std::optional<std::uint32_t> RangeHolds::take_view(BlockingRangeLock& lock, const Range& range,
                                                   std::uint64_t object) {
  View& view = views_.emplace_back();
  view.lock = &lock;
  view.range = range;
  view.object = object;
  const bool taken = for_each_gap(lock, range, [&](const Range& gap, Place&) {
    make_room(view.handles);
    RangeHandle handle = try_patiently(lock, gap, RangeMode::shared);
    if (!handle) return false;
    view.handles.push_back(std::move(handle));
    return true;
  });
  if (!taken) return std::nullopt;  // release() comes with the end of the attempt
  return static_cast<std::uint32_t>(views_.size());
}

void RangeHolds::unlock(std::size_t view) noexcept {
  View& open = views_[view];
  if (view < indexed_ && !open.handles.empty()) {
    index_.erase({open.lock, open.range.begin, view});
  }
  for (RangeHandle& handle : open.handles) open.lock->unlock(handle);
  open.handles.clear();
}

void RangeHolds::release_view(std::uint32_t view) noexcept {
  unlock(view - 1);
  views_[view - 1].lock = nullptr;
  // Numbers may be given again: nobody asks for a closed view.
  while (!views_.empty() && views_.back().lock == nullptr) views_.pop_back();
  indexed_ = std::min(indexed_, views_.size());
}

bool RangeHolds::covers(const BlockingRangeLock& lock, const Range& range) const noexcept {
  std::uint64_t at = range.begin;
  for (Place place = first_ending_after(lock, at); !holds_.is_end(place) && at < range.end;
       place = holds_.next(place)) {
    const Hold& hold = holds_.at(place);
    if (hold.lock != &lock || hold.handle.range().begin > at) return false;
    at = hold.handle.range().end;
  }
  return at >= range.end;
}

bool RangeHolds::is_viewed(std::uint64_t object) const noexcept {
  return std::any_of(views_.begin(), views_.end(), [&](const View& view) {
    return view.lock != nullptr && view.object == object;
  });
}

void RangeHolds::release() noexcept {
  holds_.for_each([](Hold& hold) { hold.lock->unlock(hold.handle); });
  holds_.clear();
  if (reach_ != 0) {
    index_.clear();
    reach_ = 0;
  }
  indexed_ = 0;
  for (std::size_t view = 0; view < views_.size(); ++view) unlock(view);
  views_.clear();
}

}  // namespace sp3::runtime

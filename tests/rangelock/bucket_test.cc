// The state of a grid's bucket, and what the grid makes of more ranges than a bucket can count.
#include <array>
#include <atomic>
#include <vector>

#include <catch2/catch.hpp>

#include "rangelock/bucket.h"
#include "tests/rangelock/stop.h"
#include "tests/rangelock/support.h"

namespace sp3::tests {
namespace {

using rangelock::BucketState;
using rangelock::kSlots;

// Entered and left by nobody but the test.
BucketState shown() {
  BucketState state;
  state.enter();
  state.show();
  state.leave();
  return state;
}

using Seen = BucketState::Seen;

TEST_CASE("who enters a bucket is told its state") {
  BucketState state;
  Seen seen;
  REQUIRE(state.try_enter(seen));
  CHECK_FALSE(seen.is_shown());
  for (int i = 0; i < 3; ++i) CHECK_FALSE(state.try_enter(seen));  // somebody is inside
  state.show();
  state.leave();
  REQUIRE(state.try_enter(seen));
  CHECK(seen.is_shown());
  CHECK(seen.is_idle());
  state.leave();

  for (unsigned slot = 0; slot < kSlots; ++slot) {
    const BucketState::Tag tag = BucketState::tag_of(slot);
    CHECK(state.enter().is_idle());
    state.fill(slot, tag);
    state.leave();
    seen = state.enter();
    state.leave();
    CHECK_FALSE(seen.is_idle());
    CHECK(Seen::first_of(seen.taken()) == slot);
    CHECK(Seen::without_first(seen.taken()) == 0);
    CHECK(Seen::first_of(seen.free()) == (slot == 0 ? 1 : 0));
    for (unsigned hash = 0; hash <= 0xff; ++hash) {
      CHECK(seen.has(BucketState::tag_of(hash)) == (BucketState::tag_of(hash) == tag));
    }
    BucketState::free(state.place_of(slot));
    CHECK(state.look().taken() == 0);
  }

  state.enter();
  for (unsigned slot = 0; slot < kSlots; ++slot) state.fill(slot, BucketState::tag_of(slot));
  state.leave();
  // Tags one apart, too: borrows from byte to byte must not be taken for one.
  for (unsigned hash = 0; hash < 0x80; ++hash) {
    CHECK(state.look().has(BucketState::tag_of(hash)) == (hash < kSlots));
  }
  CHECK(state.look().free() == 0);
  for (unsigned slot = 0; slot < kSlots; ++slot) BucketState::free(state.place_of(slot));
  state.count_overflow();
  CHECK(state.look().has_overflow());
  CHECK_FALSE(state.look().is_idle());
  state.uncount_overflow();
  CHECK(state.look().is_idle());
  state.enter();
  state.hide();
  state.leave();
  CHECK_FALSE(state.enter().is_shown());
}

TEST_CASE("an overflow that is too large to count stays") {
  BucketState state = shown();
  constexpr unsigned kMost = 0x7fff;
  for (unsigned i = 0; i + 1 < kMost; ++i) state.count_overflow();
  for (unsigned i = 0; i + 1 < kMost; ++i) state.uncount_overflow();
  CHECK_FALSE(state.look().has_overflow());
  for (unsigned i = 0; i < kMost + 10; ++i) state.count_overflow();
  CHECK(state.look().is_shown());
  for (unsigned i = 0; i < kMost + 10; ++i) state.uncount_overflow();
  CHECK(state.look().has_overflow());
  CHECK(state.look().is_shown());
  CHECK(state.look().taken() == 0);
}

// Parts are stored by those who leave and unlock while others add to the whole word; not under
// ThreadSanitizer (bucket.h).
TEST_CASE("no change of a bucket's state is lost") {
  BucketState state = shown();
  std::array<unsigned, kSlots> holders{};  // guarded by the slots
  unsigned inside = 0;                     // guarded by being inside, like the next
  bool is_shown = true;
  std::atomic<unsigned> wrong{0};
  constexpr unsigned kThreads = 4, kRounds = 20'000;
  run_threads(kThreads, [&](unsigned thread) {
    for (unsigned i = 0; i < kRounds; ++i) {
      unsigned slot = kSlots;
      const Seen seen = state.enter();
      if (++inside % 2 != 1) ++wrong;
      if (seen.free() != 0) {
        slot = Seen::first_of(seen.free());
        state.fill(slot, BucketState::tag_of(i));
      }
      if (seen.is_shown() != is_shown) ++wrong;
      if (i % 5 == 0) {
        is_shown ? state.hide() : state.show();
        is_shown = !is_shown;
      }
      const bool counted = (thread + i) % 3 == 0;
      if (counted) state.count_overflow();
      if (++inside % 2 != 0) ++wrong;
      state.leave();
      if (slot < kSlots) {
        if (++holders[slot] % 2 != 1) ++wrong;
        if (++holders[slot] % 2 != 0) ++wrong;
        BucketState::free(state.place_of(slot));
      }
      if (counted) state.uncount_overflow();
    }
  });
  CHECK(wrong == 0);
  CHECK(state.look().taken() == 0);
  CHECK_FALSE(state.look().has_overflow());
  CHECK(state.look().is_shown() == is_shown);
}

TEST_CASE("granules that share a bucket, and some a tag, are not in each other's way") {
  constexpr std::uint64_t kGranule = 16, kGranules = 40'000;  // 625 to a bucket, five to a tag
  GridRangeLock lock({.granule = kGranule, .buckets = 64});
  RangeOwner owner(1);
  RangeHandle first = lock.lock(owner, 0, kGranule);
  for (std::uint64_t granule = 1; granule < kGranules; ++granule) {
    const std::uint64_t begin = granule * kGranule;
    RangeHandle other = lock.try_lock(owner, begin, begin + kGranule);
    REQUIRE(other);
    CHECK_FALSE(lock.try_lock(owner, 0, 1));
    CHECK_FALSE(lock.try_lock_shared(owner, begin + kGranule - 1, begin + kGranule));
    lock.unlock(other);
  }
  lock.unlock(first);
}

TEST_CASE("a range that found no slot is found when the slots are free again") {
  const auto lock = make_lock<GridRangeLock>();
  RangeOwner owner(1);
  // Across two granules too: then both buckets have to know.
  for (const std::uint64_t begin : {0U, 10U}) {
    std::vector<RangeHandle> in_slots;
    for (std::uint64_t at = 0; at < kSlots; ++at) {
      in_slots.push_back(lock->lock(owner, begin + at, begin + at + 1));
    }
    RangeHandle overflowed = lock->lock(owner, begin + 5, begin + 12);
    lock->unlock_all(in_slots);
    CHECK_FALSE(is_free(*lock, begin + 5, begin + 6));
    CHECK_FALSE(is_free(*lock, begin + 11, begin + 12));
    CHECK(is_free(*lock, begin, begin + 5));
    lock->unlock(overflowed);
    CHECK(is_free(*lock, 0, 32));
  }
}

// Of its two buckets either may be the one that has to tell.
TEST_CASE("a range that found no slot is found by one that lies in two buckets") {
  const auto lock = make_lock<GridRangeLock>();
  RangeOwner owner(1);
  for (std::uint64_t granule = 1; granule <= 8; ++granule) {
    const std::uint64_t begin = 16 * granule;
    std::vector<RangeHandle> in_slots;
    for (std::uint64_t at = 0; at < kSlots; ++at) {
      in_slots.push_back(lock->lock(owner, begin + at, begin + at + 1));
    }
    RangeHandle overflowed = lock->lock(owner, begin + 5, begin + 12);
    lock->unlock_all(in_slots);
    CHECK_FALSE(is_free(*lock, begin - 1, begin + 6));
    CHECK_FALSE(is_free(*lock, begin + 11, begin + 17));
    CHECK(is_free(*lock, begin - 1, begin + 5));
    CHECK(is_free(*lock, begin + 12, begin + 17));
    lock->unlock(overflowed);
  }
}

// A count that is not taken back costs no range: only a search of the lists, ever after.
TEST_CASE("narrow ranges search the lists only while a wide one is held") {
  const auto lock = make_lock<GridRangeLock>();
  RangeOwner owner(1);
  std::vector<RangeHandle> handles;
  // The last one finds no slot, so the lists are not empty from here on.
  for (std::uint64_t at = 0; at <= kSlots; ++at) {
    handles.push_back(lock->lock(owner, at, at + 1));
  }
  const Stop stop(rangelock::Hook::gap_found);
  const auto searches = [&] {
    const std::uint64_t before = Stop::count(rangelock::Hook::gap_found);
    CHECK(is_free(*lock, 320, 321));
    return Stop::count(rangelock::Hook::gap_found) - before;
  };
  CHECK(searches() == 0);
  RangeHandle wide = lock->lock(owner, 1000, 5000);
  CHECK(searches() != 0);
  lock->unlock(wide);
  CHECK(searches() == 0);
  // One that is refused by a narrow range is counted for a while, too.
  handles.push_back(lock->lock(owner, 400, 401));
  CHECK_FALSE(is_free(*lock, 330, 5000));
  CHECK(searches() == 0);
  lock->unlock_all(handles);
}

TEST_CASE("who runs out of memory inside a bucket leaves it") {
  const Stop stop(rangelock::Hook::before_refill);  // stops nobody, since nobody is armed
  for (const std::uint64_t end : {5U, 20U}) {       // in one bucket, and in two
    RangeLockDomain domain(1);
    GridRangeLock lock({.domain = &domain, .granule = 16, .buckets = 64});
    RangeOwner owner(1, domain);
    std::vector<RangeHandle> in_slots;
    for (std::uint64_t at = 0; at < kSlots; ++at) {
      in_slots.push_back(lock.lock(owner, at, at + 1));
    }
    // Without a slot the range wants the first node of its owner.
    Stop::when_i_get_to(rangelock::Hook::before_refill, [] { throw std::bad_alloc(); });
    CHECK_THROWS_AS(lock.try_lock(owner, 4, end), std::bad_alloc);
    CHECK(owner.held() == kSlots);
    lock.unlock(lock.lock(owner, 4, end));
    lock.unlock_all(in_slots);
    lock.unlock(lock.lock(owner, 0, 32));
  }
}

TEST_CASE("a bucket's granule may have more ranges than the bucket can count") {
  constexpr std::uint64_t kMany = 70'000;
  GridRangeLock lock({.granule = 1 << 17, .buckets = 64});
  RangeOwner owner(1);
  std::vector<RangeHandle> handles;
  for (std::uint64_t at = 0; at < kMany; ++at) {
    handles.push_back(lock.try_lock(owner, at, at + 1));
    REQUIRE(handles.back());
  }
  CHECK_FALSE(is_free(lock, kMany - 1, kMany));
  CHECK_FALSE(is_free(lock, 0, kRangeMax));
  CHECK(is_free(lock, kMany, kMany + 1));
  // Those that were not counted are seen when all that were have gone.
  std::vector<RangeHandle> last;
  for (std::size_t i = 0; i < 1000; ++i) {
    last.push_back(std::move(handles.back()));
    handles.pop_back();
  }
  lock.unlock_all(handles);
  CHECK_FALSE(is_free(lock, kMany - 500, kMany - 499));
  CHECK(is_free(lock, 0, kMany - 1000));
  lock.unlock_all(last);
  CHECK(is_free(lock, 0, kRangeMax));
}

}  // namespace
}  // namespace sp3::tests

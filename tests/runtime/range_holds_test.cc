// What a transaction holds of ranges, against a model that knows each byte, and the list it is kept
// in.
#include <array>
#include <numeric>
#include <optional>
#include <vector>

#include <catch2/catch.hpp>

#include "runtime/range_holds.h"
#include "workloads/rng.h"

namespace sp3::test {
namespace {

using runtime::RangedLocks;
using runtime::RangedSpace;
using runtime::RangeHolds;
using runtime::SortedBlocks;

constexpr std::uint64_t kBytes = 4096;

// What one RangeHolds should hold of two objects, and whether others find just that locked.
class Model {
 public:
  explicit Model(RangeLockKind kind)
      : locks_(kind, 4), holds_(locks_, 1), other_(2, locks_.domain()) {
    spaces_ = {locks_.space_of(100), locks_.space_of(200)};
    for (std::uint64_t object = 300; spaces_[0].lock == spaces_[1].lock; ++object) {
      spaces_[1] = locks_.space_of(object);
    }
  }

  void write(unsigned object, const Range& range) {
    REQUIRE(holds_.take(*spaces_[object].lock, at(object, range)));
    CHECK(holds_.covers(*spaces_[object].lock, at(object, range)));
    for (View& view : views_) {
      if (view.object == object && view.range.overlaps(range)) view.locked.assign(kBytes, false);
    }
    for (std::uint64_t i = range.begin; i < range.end; ++i) written_[object][i] = true;
  }
  void view(unsigned object, const Range& range) {
    const auto number = holds_.take_view(*spaces_[object].lock, at(object, range), object);
    REQUIRE(number);
    View view{object, range, *number, std::vector<bool>(kBytes, false)};
    for (std::uint64_t i = range.begin; i < range.end; ++i) view.locked[i] = !written_[object][i];
    views_.push_back(std::move(view));
  }
  void close_view(std::size_t which) {
    if (views_.empty()) return;
    which %= views_.size();
    holds_.release_view(views_[which].number);
    views_.erase(views_.begin() + static_cast<std::ptrdiff_t>(which));
  }
  void release() {
    holds_.release();
    views_.clear();
    for (auto& each : written_) each.fill(false);
  }

  void check(unsigned object, const Range& range) {
    bool written = true, any_written = false, viewed = false;
    for (std::uint64_t i = range.begin; i < range.end; ++i) {
      written = written && written_[object][i];
      any_written = any_written || written_[object][i];
      for (const View& view : views_) viewed = viewed || (view.object == object && view.locked[i]);
    }
    BlockingRangeLock& lock = *spaces_[object].lock;
    const Range there = at(object, range);
    CHECK(holds_.covers(lock, there) == written);
    RangeHandle handle = lock.try_lock(other_, there.begin, there.end);
    CHECK(static_cast<bool>(handle) == !(any_written || viewed));
    if (handle) lock.unlock(handle);
    handle = lock.try_lock_shared(other_, there.begin, there.end);
    CHECK(static_cast<bool>(handle) == !any_written);
    if (handle) lock.unlock(handle);
  }

 private:
  struct View {
    unsigned object;
    Range range;
    std::uint32_t number;
    std::vector<bool> locked;
  };
  [[nodiscard]] Range at(unsigned object, const Range& range) const {
    return spaces_[object].at(range.begin, range.end - range.begin);
  }

  RangedLocks locks_;
  RangeHolds holds_;
  RangeOwner other_;
  std::array<RangedSpace, 2> spaces_;
  std::array<std::array<bool, kBytes>, 2> written_{};
  std::vector<View> views_;
};

}  // namespace

TEST_CASE("a transaction holds the ranges it wrote and viewed, in whatever order") {
  const auto kind = GENERATE(RangeLockKind::skiplist, RangeLockKind::grid);
  Model model(kind);
  workloads::Rng rng(3, 0);
  const auto some_range = [&](std::uint64_t longest) {
    const std::uint64_t begin = rng.below(kBytes - longest);
    return Range{begin, begin + 1 + rng.below(longest)};
  };
  for (unsigned round = 0; round < 8; ++round) {
    for (unsigned step = 0; step < 400; ++step) {
      const auto object = static_cast<unsigned>(rng.below(2));
      const std::uint64_t what = rng.below(round % 2 == 0 ? 8 : 4);
      if (what <= 2) {
        model.write(object, some_range(step % 64 == 0 ? 100 : 4));
      } else if (what <= 5) {
        model.view(object, some_range(step % 64 == 0 ? 500 : 8));
      } else {
        model.close_view(rng.below(1000));
      }
      model.check(object, some_range(16));
    }
    model.release();
    model.check(0, {0, kBytes});
    model.check(1, {0, kBytes});
  }
}

namespace {

// Counts how often any is moved.
struct Counted {
  explicit Counted(unsigned v) : value(v) {}
  Counted(Counted&& other) noexcept : value(other.value) { ++moves; }
  Counted& operator=(Counted&& other) noexcept {
    value = other.value;
    ++moves;
    return *this;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() = default;

  unsigned value;
  static inline std::uint64_t moves = 0;
};

}  // namespace

TEST_CASE("views that are closed leave their numbers to others") {
  RangedLocks locks(RangeLockKind::skiplist, 4);
  RangeHolds holds(locks, 1);
  const RangedSpace space = locks.space_of(100);
  const auto view = [&](std::uint64_t at) {
    return *holds.take_view(*space.lock, space.at(at, 1), 100);
  };
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t at = 0; at < 1000; ++at) {
      const std::uint32_t number = view(at);
      REQUIRE(number == 1);
      holds.release_view(number);
      REQUIRE_FALSE(holds.is_viewed(100));
    }
    // Closed from the first on, all but one that a write has met and one behind them.
    std::vector<std::uint32_t> numbers;
    for (std::uint64_t at = 0; at < 100; ++at) numbers.push_back(view(at));
    REQUIRE(holds.take(*space.lock, space.at(50, 1)));
    for (std::uint64_t at = 0; at < 99; ++at) holds.release_view(numbers[at]);
    REQUIRE(holds.is_viewed(100));
    REQUIRE(view(200) == 101);
    holds.release_view(numbers[99]);
    REQUIRE(holds.take(*space.lock, space.at(0, 300)));  // of the last one, too
    holds.release_view(101);
    REQUIRE_FALSE(holds.is_viewed(100));
    REQUIRE(view(400) == 1);
    holds.release();
  }
}

TEST_CASE("a view that was closed is none of its object, whatever views there are behind it") {
  RangedLocks locks(RangeLockKind::skiplist, 4);
  RangeHolds holds(locks, 1);
  const RangedSpace space = locks.space_of(100);
  const RangedSpace another = locks.space_of(200);
  const auto first = holds.take_view(*space.lock, space.at(0, 1), 100);
  const auto second = holds.take_view(*another.lock, another.at(0, 1), 200);
  holds.release_view(*first);
  CHECK_FALSE(holds.is_viewed(100));
  CHECK(holds.is_viewed(200));
  holds.release_view(*second);
}

// More than are looked at one by one.
TEST_CASE("views in the places of closed ones let go for a write, too") {
  RangedLocks locks(RangeLockKind::skiplist, 4);
  RangeHolds holds(locks, 1);
  const RangedSpace space = locks.space_of(100);
  const auto open = [&](std::uint64_t first) {
    std::vector<std::uint32_t> numbers;
    for (std::uint64_t at = first; at < first + 40; ++at) {
      numbers.push_back(*holds.take_view(*space.lock, space.at(at, 1), 100));
    }
    return numbers;
  };
  const std::vector<std::uint32_t> numbers = open(0);
  REQUIRE(holds.take(*space.lock, space.at(500, 1)));
  for (const std::uint32_t number : numbers) holds.release_view(number);
  open(100);
  for (std::uint64_t at = 100; at < 140; ++at) {
    CHECK(holds.take(*space.lock, space.at(at, 1)));
  }
}

TEST_CASE("there are range locks for as many sessions as a pool can have") {
  for (const RangeLockKind kind : {RangeLockKind::skiplist, RangeLockKind::grid}) {
    RangedLocks locks(kind, 16384);
    RangeHolds holds(locks, 1);
    const RangedSpace space = locks.space_of(100);
    CHECK(holds.take(*space.lock, space.at(0, 10)));
  }
}

TEST_CASE("a list in blocks moves a few elements for each that is added, in whatever order") {
  constexpr unsigned kCount = 20'000;
  std::vector<unsigned> values(kCount);
  std::iota(values.begin(), values.end(), 0U);
  const unsigned order = GENERATE(0U, 1U, 2U);  // ascending, descending, neither
  if (order == 1) std::ranges::reverse(values);
  if (order == 2) {
    for (unsigned i = 0; i < kCount; ++i) values[i] = (i * 7919U) % kCount;
  }
  SortedBlocks<Counted> list;
  Counted::moves = 0;
  for (const unsigned value : values) {
    const auto place = list.find([&](const Counted& each) { return each.value < value; });
    list.make_room(place);
    const auto behind = list.insert(place, Counted(value));
    REQUIRE((list.is_end(behind) || list.at(behind).value > value));
  }
  CHECK(Counted::moves <= std::uint64_t{2} * SortedBlocks<Counted>::kBlock * kCount);
  unsigned expected = 0;
  list.for_each([&](const Counted& each) { REQUIRE(each.value == expected++); });
  CHECK(expected == kCount);
  for (auto place = list.find([](const Counted&) { return false; }); !list.is_end(place);
       place = list.next(place)) {
    --expected;
  }
  CHECK(expected == 0);
  list.clear();
  CHECK(list.empty());
  CHECK(list.is_end(list.end()));
}

}  // namespace sp3::test

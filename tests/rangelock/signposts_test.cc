// Signposts: that they are where acquisitions met, in nobody's way, and gone when they should be.
#include <catch2/catch.hpp>

#include <semaphore>

#include "rangelock/domain.h"
#include "rangelock/signposts.h"
#include "tests/rangelock/bare_list.h"
#include "tests/rangelock/stop.h"
#include "tests/rangelock/support.h"

using namespace sp3;
using namespace sp3::tests;
using rangelock::Hook;

namespace {

// Two acquisitions of ranges as long as that want the same link, though they are far from each
// other, and one has to try again: from now on their list has signposts. Nothing is held
// afterwards.
// REQUIRES: lists of shared ranges first. (Readers plant signposts among the exclusive ranges, and
// the thread that is to stop would do so there.)
void meet(SkiplistRangeLock& lock, RangeMode mode = RangeMode::exclusive,
          std::uint64_t length = 1) {
  const Stop stop(Hook::before_link);
  std::thread other([&] {
    Stop::arm_me();
    CHECK(is_free(lock, 100 * length, 101 * length, mode));
  });
  Stop::wait_until_stopped();
  CHECK(is_free(lock, 0, length, mode));
  Stop::go_on();
  other.join();
}

void meet_in_all_lists(SkiplistRangeLock& lock) {
  for (const std::uint64_t length : {1U, 2U, 30U, 200U}) meet(lock, RangeMode::shared, length);
  meet(lock);
}

// Where the signpost before a range of one address is, since meet().
constexpr std::uint64_t kApart = 64;
constexpr std::uint64_t kAddress = 1000;
constexpr std::uint64_t kPlace = kAddress / kApart * kApart;

// Acquires until the calling thread has planted a signpost. REQUIRES: a Stop.
void plant(SkiplistRangeLock& lock, std::uint64_t address) {
  const std::uint64_t before = Stop::count(Hook::signpost_linked);
  for (int i = 0; i < 1000 && Stop::count(Hook::signpost_linked) == before; ++i)
    REQUIRE(is_free(lock, address, address + 1));
  REQUIRE(Stop::count(Hook::signpost_linked) == before + 1);
}

// One signpost, at kPlace.
void meet_and_plant(SkiplistRangeLock& lock) {
  meet(lock);
  const Stop stop(Hook::before_sleep);
  plant(lock, kAddress);
}

// Nodes come round, and every one of them holds one range.
void check_nodes(SkiplistRangeLock& lock) {
  std::vector<RangeHandle> handles;
  for (std::uint64_t i = 0; i < 600; ++i) {
    handles.push_back(try_lock(lock, 2 * i, 2 * i + 1));
    REQUIRE(handles.back());
  }
  CHECK(lock.holders().size() == handles.size());
  for (std::uint64_t i = 0; i < 600; ++i) CHECK_FALSE(is_free(lock, 2 * i, 2 * i + 2));
  lock.unlock_all(handles);
  CHECK(lock.holders().empty());
}

}  // namespace

TEST_CASE("neighbouring signposts never share a place of the table, however far apart") {
  constexpr unsigned kBits = rangelock::Signposts::kTableBits;
  for (unsigned shift = 0; shift <= 64 - kBits; ++shift) {
    rangelock::Signposts signposts({0, 1});
    std::array<rangelock::Node, std::size_t{1} << kBits> nodes{};
    for (std::uint64_t i = 0; i < nodes.size(); ++i) {
      const std::uint64_t place = (i + nodes.size() * 3) << shift;
      nodes[i].set_range({place, place});
      INFO(i << " at distances of 2^" << shift);
      REQUIRE(signposts.reserve(&nodes[i]));
      CHECK(signposts.find(place) == nullptr);
      CHECK(signposts.occupant(place) == nullptr);
      REQUIRE(signposts.publish(&nodes[i]));
      CHECK(signposts.find(place) == &nodes[i]);
      CHECK(signposts.occupant(place) == &nodes[i]);
    }
    CHECK_FALSE(signposts.reserve(&nodes[7]));
    signposts.withdraw(&nodes[7]);
    CHECK(signposts.find(nodes[7].begin()) == nullptr);
    REQUIRE(signposts.reserve(&nodes[7]));
    signposts.withdraw(&nodes[7]);  // by one who has met it in the list
    CHECK_FALSE(signposts.publish(&nodes[7]));
    CHECK(signposts.find(nodes[7].begin()) == nullptr);
  }
}

TEST_CASE("signposts stay far enough from each other for the ranges between them") {
  for (const std::uint64_t length :
       {std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{1} << 40, kRangeMax}) {
    const Range range{0, length};
    rangelock::Signposts signposts(range);
    const auto distance = [&] { return ~signposts.place_before(~std::uint64_t{0}) + 1; };
    for (int i = 0; i < 100; ++i) signposts.move_closer(range);
    const std::uint64_t most = std::uint64_t{1} << 63;
    CHECK(distance() / 16 >= std::min(length, most / 16));
    CHECK(distance() / 32 <= length);
    for (int i = 0; i < 100; ++i) signposts.move_apart();
    CHECK(distance() == most);
    CHECK(signposts.is_place(0));
    CHECK_FALSE(signposts.is_place(kPlace));
    CHECK(signposts.find_before(kPlace) == nullptr);
  }
}

TEST_CASE("a signpost is in nobody's way, and no range") {
  SkiplistRangeLock lock;
  meet(lock);
  const Stop stop(Hook::before_sleep);
  plant(lock, kAddress);
  plant(lock, kAddress + kApart);
  CHECK(lock.holders().empty());
  {
    // One that begins where a signpost is goes behind it.
    RangeHandle at = lock.try_lock(kPlace, kAddress + 1);
    REQUIRE(at);
    CHECK_FALSE(is_free(lock, kAddress, kAddress + 1));
    CHECK_FALSE(is_free(lock, kPlace, kPlace + 1));
    CHECK(is_free(lock, kPlace - 1, kPlace));
    CHECK(is_free(lock, kAddress + 1, kAddress + 2));
    lock.unlock(at);
  }
  CHECK(is_free(lock, kAddress, kAddress + 2 * kApart, RangeMode::shared));
  CHECK(Stop::count(Hook::signpost_withdrawn) == 0);
  RangeHandle shared = lock.try_lock_shared(kPlace - 10, kPlace + 10);
  REQUIRE(shared);
  CHECK_FALSE(is_free(lock, kPlace + 5, kPlace + 6));
  CHECK(is_free(lock, kPlace + 5, kPlace + 6, RangeMode::shared));
  lock.unlock(shared);
  RangeHandle full = lock.try_lock(0, kRangeMax);
  REQUIRE(full);
  CHECK(Stop::count(Hook::signpost_withdrawn) >= 2);
  CHECK(lock.holders().size() == 1);
  CHECK_FALSE(is_free(lock, kAddress, kAddress + 1));
  CHECK_FALSE(is_free(lock, kPlace, kPlace + 1, RangeMode::shared));
  lock.unlock(full);
  check_nodes(lock);
}

TEST_CASE("a range that is refused removes no signpost") {
  SkiplistRangeLock lock;
  meet(lock);
  const Stop stop(Hook::before_sleep);
  plant(lock, kAddress);
  RangeHandle held = lock.lock(5000, 5001);
  CHECK_FALSE(is_free(lock, 0, kRangeMax));
  CHECK_FALSE(is_free(lock, kPlace - 1, 5001));
  CHECK(Stop::count(Hook::signpost_withdrawn) == 0);
  CHECK(is_free(lock, kPlace - 1, 5000));
  CHECK(Stop::count(Hook::signpost_withdrawn) > 0);
  lock.unlock(held);
}

// The planter stops when its signpost is linked and not yet in the table, and a full range removes
// it. Were it published all the same, the table would lead to a node that is used for something
// else.
TEST_CASE("a signpost that was removed before it was in the table never gets there") {
  SkiplistRangeLock lock;
  meet(lock);
  const Stop stop(Hook::signpost_linked);
  bool has_it = false;
  std::thread planter([&] {
    Stop::arm_me();
    while (Stop::count(Hook::signpost_linked) == 0) is_free(lock, kAddress, kAddress + 1);
    has_it = is_free(lock, kAddress, kAddress + 1);
  });
  Stop::wait_until_stopped();
  CHECK(is_free(lock, 0, kRangeMax));
  CHECK(Stop::count(Hook::signpost_withdrawn) == 1);
  Stop::go_on();
  planter.join();
  CHECK(has_it);
  check_nodes(lock);
}

// A search has begun at a signpost, and its range is about to be linked behind it, when the
// signpost is removed for a range that contains both.
TEST_CASE("nothing is linked behind a signpost that was removed meanwhile") {
  SkiplistRangeLock lock;
  meet_and_plant(lock);
  const Stop stop(Hook::before_link);
  bool has_it = true;
  std::thread other([&] {
    Stop::arm_me();
    has_it = is_free(lock, kAddress, kAddress + 1);
  });
  Stop::wait_until_stopped();
  RangeHandle full = lock.try_lock(0, kRangeMax);
  REQUIRE(full);
  CHECK(Stop::count(Hook::signpost_withdrawn) == 1);
  Stop::go_on();
  other.join();
  CHECK_FALSE(has_it);
  lock.unlock(full);
  check_nodes(lock);
}

// A range directly behind a signpost is unlinked by its unlocker, while another is about to be
// linked behind it.
TEST_CASE("a neighbour linked behind a range that is unlinked by its unlocker is found") {
  SkiplistRangeLock lock;
  meet_and_plant(lock);
  const Stop stop(Hook::before_link);
  RangeHandle held = lock.try_lock(kAddress, kAddress + 1);
  std::binary_semaphore tried{0}, checked{0};
  bool has_it = false;
  std::thread other([&] {
    Stop::arm_me();
    RangeHandle neighbour = try_lock(lock, kAddress + 5, kAddress + 6);
    has_it = static_cast<bool>(neighbour);
    tried.release();
    checked.acquire();
    if (neighbour) lock.unlock(neighbour);
  });
  Stop::wait_until_stopped();
  lock.unlock(held);
  Stop::go_on();
  tried.acquire();
  CHECK(has_it);
  CHECK(lock.holders().size() == 1);
  CHECK_FALSE(is_free(lock, kAddress + 5, kAddress + 6));
  CHECK_FALSE(is_free(lock, 0, kRangeMax));
  CHECK(is_free(lock, kAddress, kAddress + 5));
  checked.release();
  other.join();
  check_nodes(lock);
}

// The unlocker has marked its node when another unlinks and retires it. Were it retired again, two
// ranges would get one node.
TEST_CASE("what another has unlinked is not retired by its unlocker as well") {
  SkiplistRangeLock lock;
  meet_and_plant(lock);
  const Stop stop(Hook::unlocked_nearby);
  std::thread unlocker([&] {
    RangeHandle held = try_lock(lock, kAddress, kAddress + 1);
    Stop::arm_me();
    lock.unlock(held);
  });
  Stop::wait_until_stopped();
  RangeHandle before = lock.try_lock(kAddress - 5, kAddress - 4);
  REQUIRE(before);
  Stop::go_on();
  unlocker.join();
  lock.unlock(before);
  check_nodes(lock);
}

TEST_CASE("whoever is too late to link a range from a signpost keeps no node for it") {
  SkiplistRangeLock lock;
  meet_and_plant(lock);
  const Stop stop(Hook::before_sleep);
  RangeOwner late(1);
  RangeOwner early(2);
  constexpr unsigned kTimes = 2'000;
  std::uint64_t after_some = 0;
  for (unsigned i = 0; i < kTimes; ++i) {
    RangeHandle taken;
    Stop::when_i_get_to(Hook::before_link,
                        [&] { taken = lock.lock(early, kAddress, kAddress + 1); });
    REQUIRE_FALSE(lock.try_lock(late, kAddress, kAddress + 1));
    lock.unlock(taken);
    if (i == kTimes / 4) after_some = RangeLockDomain::process().statistics().node_bytes;
  }
  CHECK(Stop::count(Hook::not_linked_nearby) >= kTimes);
  CHECK(RangeLockDomain::process().statistics().node_bytes == after_some);
}

TEST_CASE("acquisitions that meet at one place get no signposts, however often") {
  SkiplistRangeLock lock;
  const Stop stop(Hook::before_link);
  for (int i = 0; i < 100; ++i) {
    std::thread other([&] {
      Stop::arm_me();
      is_free(lock, kAddress, kAddress + 10);
    });
    Stop::wait_until_stopped();
    CHECK(is_free(lock, kAddress + 5, kAddress + 15));
    Stop::go_on();
    other.join();
  }
  for (int i = 0; i < 100; ++i) CHECK(is_free(lock, kAddress, kAddress + 1));
  CHECK(Stop::count(Hook::signpost_linked) == 0);
}

TEST_CASE("where a range lies across its place no signpost is planted, and later one is") {
  SkiplistRangeLock lock;
  meet(lock);
  const Stop stop(Hook::before_sleep);
  RangeHandle across = lock.try_lock(kPlace - 1, kPlace + 1);
  REQUIRE(across);
  const std::uint64_t linked = Stop::count(Hook::signpost_linked);
  for (int i = 0; i < 1000; ++i) REQUIRE(is_free(lock, kAddress, kAddress + 1));
  CHECK(Stop::count(Hook::signpost_linked) == linked);
  lock.unlock(across);
  plant(lock, kAddress);
}

// A range that passes many signposts and removes none would do so each time.
TEST_CASE("a shared range removes most of the signposts that it walks over") {
  SkiplistRangeLock lock;
  meet(lock);
  const Stop stop(Hook::before_sleep);
  constexpr std::uint64_t kSignposts = 100;
  for (std::uint64_t i = 1; i <= kSignposts; ++i) plant(lock, kApart * i + 1);
  CHECK(Stop::count(Hook::signpost_withdrawn) == 0);
  CHECK(is_free(lock, 0, kRangeMax, RangeMode::shared));
  const std::uint64_t withdrawn = Stop::count(Hook::signpost_withdrawn);
  CHECK(withdrawn >= kSignposts - 20);
  CHECK(withdrawn <= Stop::count(Hook::signpost_linked));
  check_nodes(lock);
}

// One thread, whose acquisitions must succeed exactly if nothing that it holds is in their way.
TEST_CASE("whatever signposts there are, a range is had if and only if it is free") {
  SkiplistRangeLock lock;
  meet_in_all_lists(lock);
  const Stop stop(Hook::before_sleep);
  workloads::Rng rng(11, 0);
  struct Held {
    RangeHandle handle;
    Range range;
    RangeMode mode;
  };
  std::vector<Held> held;
  for (int i = 0; i < 100'000; ++i) {
    if (held.size() > 40 || (!held.empty() && rng.below(3) == 0)) {
      const std::size_t at = rng.below(held.size());
      lock.unlock(held[at].handle);
      std::swap(held[at], held.back());
      held.pop_back();
      continue;
    }
    const std::uint64_t begin = rng.below(16 * kSpace);
    const std::uint64_t most = rng.below(200) == 0 ? kRangeMax - begin : 1 + rng.below(200);
    const Range range{begin, begin + 1 + rng.below(most)};
    const RangeMode mode = rng.below(2) == 0 ? RangeMode::shared : RangeMode::exclusive;
    const bool is_taken = std::ranges::any_of(held, [&](const Held& other) {
      return range.overlaps(other.range) &&
             (mode == RangeMode::exclusive || other.mode == RangeMode::exclusive);
    });
    RangeHandle handle = try_lock(lock, range.begin, range.end, mode);
    INFO("[" << range.begin << ", " << range.end << "), step " << i);
    REQUIRE(static_cast<bool>(handle) == !is_taken);
    if (handle) held.push_back({std::move(handle), range, mode});
  }
  CHECK(lock.holders().size() == held.size());
  for (Held& each : held) lock.unlock(each.handle);
  CHECK(Stop::count(Hook::signpost_linked) > 0);
  CHECK(Stop::count(Hook::signpost_withdrawn) > 0);
  CHECK(is_free(lock, 0, kRangeMax));
}

TEST_CASE("where there are more places than the table has, signposts move apart") {
  SkiplistRangeLock lock;
  meet(lock);
  const Stop stop(Hook::before_sleep);
  for (int round = 0; round < 20; ++round) {
    for (std::uint64_t i = 0; i < 4096; ++i) {
      REQUIRE(is_free(lock, kApart * i + 1, kApart * i + 2));
      REQUIRE(Stop::count(Hook::signpost_linked) <=
              Stop::count(Hook::signpost_withdrawn) + (1U << rangelock::Signposts::kTableBits));
    }
  }
  // By then there is one for each, and none is replaced any more.
  const std::uint64_t withdrawn = Stop::count(Hook::signpost_withdrawn);
  CHECK(withdrawn > 0);
  for (int round = 0; round < 20; ++round) {
    for (std::uint64_t i = 0; i < 4096; ++i) {
      REQUIRE(is_free(lock, kApart * i + 1, kApart * i + 2));
    }
  }
  CHECK(Stop::count(Hook::signpost_withdrawn) - withdrawn < 512);
  CHECK(is_free(lock, 0, kRangeMax));
}

TEST_CASE("no two conflicting ranges are ever held at once, with signposts in their way") {
  for (const unsigned threads : {2U, 4U, 16U}) {
    SkiplistRangeLock lock;
    meet_in_all_lists(lock);
    const Stop stop(Hook::before_sleep);
    ExclusionOracle oracle;
    run_threads(threads, [&](unsigned thread) {
      workloads::Rng rng(7, thread);
      for (unsigned i = 0; i < 60'000 / threads; ++i) {
        const std::uint64_t shape = rng.below(256);
        const std::uint64_t begin = shape == 0 ? 0 : rng.below(kSpace);
        const std::uint64_t length = shape == 0 ? kSpace : shape < 40 ? 33 : 1;
        const Range range{begin, std::min(kSpace, begin + length)};
        const RangeMode mode = rng.below(3) == 0 ? RangeMode::shared : RangeMode::exclusive;
        auto handle = try_lock(lock, range.begin, range.end, mode);
        if (!handle) continue;
        oracle.enter(range, mode);
        if (rng.below(64) == 0) std::this_thread::yield();
        oracle.leave(range, mode);
        lock.unlock(handle);
      }
    });
    INFO(threads << " threads");
    CHECK(oracle.violations() == 0);
    CHECK(Stop::count(Hook::signpost_linked) > 0);
    CHECK(Stop::count(Hook::signpost_withdrawn) > 0);
    CHECK(lock.holders().empty());
    CHECK(is_free(lock, 0, kSpace));
  }
}

// T1 removes two signposts that are in its way and stops before each. Meanwhile the second is
// planted, after T1 was pinned, and removed by another, and its node is used again for a range that
// is held.
TEST_CASE("a range that is held is not taken for the signpost that its node was") {
  SkiplistRangeLock lock;
  meet_and_plant(lock);
  const Stop stop(Hook::signpost_withdrawn);
  bool has_it = false;
  std::thread t1([&] {
    Stop::arm_me();
    has_it = is_free(lock, kPlace - 20, kPlace + kApart + 20);
  });
  Stop::wait_until_stopped();
  const auto churn = [&] {
    constexpr std::uint64_t kElsewhere = 1 << 20;
    for (int i = 0; i < 3000; ++i) REQUIRE(is_free(lock, kElsewhere, kElsewhere + 1));
  };
  churn();
  plant(lock, kAddress + kApart);
  Stop::go_on_to(Hook::before_removal);
  REQUIRE(is_free(lock, kPlace + 10, kPlace + 11));  // unlinks the first
  churn();                                           // what is retired with it is kept as long
  REQUIRE(is_free(lock, kPlace + kApart - 5, kPlace + kApart + 5));
  REQUIRE(is_free(lock, kPlace + kApart + 10, kPlace + kApart + 11));
  churn();
  // Of all nodes that there are, or more, one is the signpost's.
  const std::uint64_t nodes =
      RangeLockDomain::process().statistics().node_bytes / base::kCacheLine +
      rangelock::NodeBatch::kMost;
  std::vector<RangeHandle> held;
  for (std::uint64_t i = 0; i < nodes; ++i) {
    held.push_back(try_lock(lock, (2 << 20) + 2 * i, (2 << 20) + 2 * i + 1));
    REQUIRE(held.back());
  }
  Stop::go_on();
  t1.join();
  CHECK(has_it);
  CHECK(lock.holders().size() == held.size());
  lock.unlock_all(held);
}

// Each is linked right behind the signpost, and none of those before it is passed. What gets a tower
// is linked from there too: a search from the head would walk over all that has none, as it would
// unlink what is marked on its way.
TEST_CASE("of any number of ranges behind one signpost some have towers") {
  constexpr std::uint64_t kFar = std::uint64_t{1} << 30;
  constexpr std::uint64_t kHere = 1000 * kFar;
  BareList bare;
  static BareList* list;
  list = &bare;
  const rangelock::Pin pin(bare.owner.core(), rangelock::Pin::Keeps::of_then);
  // Two want one link, far from each other: from now on there are signposts.
  rangelock::install_hook([](Hook at) {
    if (at != Hook::before_link) return;
    rangelock::install_hook(nullptr);
    rangelock::OrderedList::mark(list->link({kHere, kHere + kFar}));
  });
  rangelock::OrderedList::mark(bare.link({0, kFar}));
  static int planted;
  planted = 0;
  rangelock::install_hook([](Hook at) { planted += at == Hook::signpost_linked ? 1 : 0; });
  for (int i = 0; i < 1'000'000 && planted == 0; ++i) {
    rangelock::OrderedList::mark(bare.link({kHere, kHere + 1}));
  }
  REQUIRE(planted > 0);
  rangelock::Node* const passed_by_none = bare.link({5, 6});
  REQUIRE(bare.link({7, 8}) != nullptr);
  rangelock::OrderedList::mark(passed_by_none);

  static int unlinked;
  unlinked = 0;
  rangelock::install_hook([](Hook at) {
    planted += at == Hook::signpost_linked ? 1 : 0;
    unlinked += at == Hook::before_unlink ? 1 : 0;
  });
  constexpr std::uint64_t kRanges = 20'000;
  for (std::uint64_t i = kRanges; i-- > 0;) {
    REQUIRE(bare.link({kHere + 1 + 2 * i, kHere + 2 + 2 * i}) != nullptr);
  }
  CHECK(unlinked == 0);
  REQUIRE(bare.link({9, 10}) != nullptr);
  CHECK(unlinked == 1);
  rangelock::install_hook(nullptr);
  CHECK(planted < 10);
  std::uint64_t ranges = 0;
  std::uint64_t tall = 0;
  bare.list.for_each([&](const rangelock::Node& node) {
    ++ranges;
    tall += node.height > 1 ? 1 : 0;
  });
  CHECK(ranges == kRanges + 2);
  CHECK(tall > kRanges / 200);
}

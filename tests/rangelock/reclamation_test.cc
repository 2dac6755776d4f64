// Memory: nodes are used again and again, and given back.
#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "rangelock/domain.h"
#include "rangelock/hook.h"
#include "rangelock/node_batch.h"
#include "tests/rangelock/bare_list.h"
#include "tests/rangelock/stop.h"
#include "tests/rangelock/support.h"

using namespace sp3;
using namespace sp3::tests;

namespace {

// Threads that lock and unlock, so that whoever unlinks a node is often not who made it.
template <class Lock>
void churn(Lock& lock, RangeLockDomain& domain, unsigned threads, std::uint64_t pairs) {
  run_threads(threads, [&](unsigned thread) {
    RangeOwner owner(thread, domain);
    workloads::Rng rng(pairs, thread);
    for (std::uint64_t i = 0; i < pairs / threads; ++i) {
      const std::uint64_t begin = rng.below(1 << 16);
      // Now and then a wide or a shared range.
      const std::uint64_t end = begin + 1 + (i % 64 == 0 ? 512 : 7);
      RangeHandle handle =
          i % 32 == 1 ? lock.try_lock_shared(owner, begin, end) : lock.try_lock(owner, begin, end);
      if (handle) lock.unlock(handle);
    }
  });
}

template <class Lock>
void check_no_growth(std::uint64_t pairs) {
  RangeLockDomain domain;
  const auto lock = make_lock<Lock>({.domain = &domain});
  churn(*lock, domain, 1, pairs / 50);
  const std::uint64_t after_one = domain.statistics().node_bytes;
  churn(*lock, domain, 1, pairs / 2);
  CHECK(domain.statistics().node_bytes <= after_one + 64 * 1024);
  // With two threads, one that loses its core while pinned keeps some of the other's nodes for as
  // long, and that may be longer than ever before: but not in most rounds.
  constexpr unsigned kRounds = 20;
  unsigned grew = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    const std::uint64_t before = domain.statistics().node_bytes;
    churn(*lock, domain, 2, pairs / 2 / kRounds);
    if (domain.statistics().node_bytes > before + 64 * 1024) ++grew;
  }
  CHECK(grew <= kRounds / 2);
  CHECK(domain.statistics().owners == 0);
}

}  // namespace

// Each of these searches would otherwise walk over a thousand nodes again, and so would the next.
TEST_CASE("whoever passes unlocked ranges unlinks them, even if it links nothing") {
  BareList bare;
  const rangelock::Pin pin(bare.owner.core(), rangelock::Pin::Keeps::of_then);
  std::vector<rangelock::Node*> nodes;
  const auto mark_all = [&] {
    for (rangelock::Node* node : nodes) rangelock::OrderedList::mark(node);
  };
  constexpr std::uint64_t kNodes = 1000;
  SECTION("a search for an overlap") {
    for (std::uint64_t i = 0; i < kNodes; ++i) nodes.push_back(bare.link({10 * i, 10 * i + 5}));
    mark_all();
    CHECK_FALSE(bare.list.is_empty());
    CHECK(bare.list.find_overlap(bare.owner.core(), {0, 1}, 0) == nullptr);
    CHECK(bare.list.is_empty());
  }
  SECTION("a search for an overlap that goes back for long ranges") {
    const rangelock::Node* const first = bare.link_shared({5, 6});
    for (std::uint64_t i = 1; i < kNodes; ++i) nodes.push_back(bare.link_shared({6 + i, 8 + i}));
    mark_all();
    CHECK(bare.list.find_overlap(bare.owner.core(), {5000, 5001}, 1 << 14) == nullptr);
    CHECK(BareList::is_last(first));
  }
  SECTION("a refusal") {
    const rangelock::Node* const first = bare.link({0, 10});
    for (std::uint64_t i = 1; i < kNodes; ++i) nodes.push_back(bare.link({10 * i, 10 * i + 5}));
    mark_all();
    CHECK(bare.link({5, 6}) == nullptr);
    CHECK(BareList::is_last(first));
  }
  SECTION("a refusal after another was faster") {
    static BareList* list;
    static const rangelock::Node* first;
    list = &bare;
    rangelock::install_hook([](rangelock::Hook at) {
      if (at != rangelock::Hook::before_link) return;
      rangelock::install_hook(nullptr);
      first = list->link({0, 10});
      rangelock::OrderedList::mark(list->link({20, 30}));
    });
    CHECK(bare.link({5, 6}) == nullptr);
    CHECK(BareList::is_last(first));
  }
}

TEST_CASE("five million acquisitions of the skip list use the same nodes again") {
  check_no_growth<SkiplistRangeLock>(5'000'000);
}
TEST_CASE("five million acquisitions of the grid use the same nodes again") {
  check_no_growth<GridRangeLock>(5'000'000);
}
TEMPLATE_TEST_CASE("a hundred million acquisitions use the same nodes again", "[.full]",
                   SP3_OUR_RANGE_LOCKS) {
  check_no_growth<TestType>(100'000'000);
}

// Searches for what comes next never pass what was there before.
TEMPLATE_TEST_CASE("ranges locked in descending order use the same nodes again", "",
                   SP3_OUR_RANGE_LOCKS) {
  constexpr std::uint64_t kLength = 100'000;  // also wide, so that the grid has nodes
  constexpr std::uint64_t kRanges = 100'000;
  RangeLockDomain domain;
  const auto lock = make_lock<TestType>({.domain = &domain});
  RangeOwner owner(1, domain);
  std::vector<RangeHandle> above;  // many enough for a second level
  for (std::uint64_t i = 0; i < 8; ++i) {
    above.push_back(lock->lock(owner, (kRanges + i) * kLength, (kRanges + i + 1) * kLength));
  }
  std::uint64_t after_some = 0;
  for (std::uint64_t i = kRanges; i-- > 0;) {
    const RangeGuard guard(*lock, owner, i * kLength, (i + 1) * kLength);
    if (i == kRanges * 9 / 10) after_some = domain.statistics().node_bytes;
  }
  CHECK(domain.statistics().node_bytes == after_some);
  lock->unlock_all(above);
}

TEMPLATE_TEST_CASE("a lock that goes away gives its nodes to the next", "", SP3_OUR_RANGE_LOCKS) {
  const auto mode = GENERATE(RangeMode::exclusive, RangeMode::shared);
  RangeLockDomain domain;
  std::uint64_t after_some = 0;
  for (unsigned i = 0; i < 200; ++i) {
    const auto lock = make_lock<TestType>({.domain = &domain});
    RangeOwner owner(1, domain);
    std::vector<RangeHandle> handles;
    for (std::uint64_t at = 0; at < 300; ++at) {
      const std::uint64_t begin = 100 * at;
      handles.push_back(mode == RangeMode::exclusive
                            ? lock->try_lock(owner, begin, begin + 60)
                            : lock->try_lock_shared(owner, begin, begin + 60));
    }
    lock->unlock_all(handles);
    if (i == 20) after_some = domain.statistics().node_bytes;
  }
  CHECK(domain.statistics().node_bytes <= 2 * after_some);
}

// None of them retires a whole batch.
TEMPLATE_TEST_CASE("owners that come and go use the same nodes again", "", SP3_OUR_RANGE_LOCKS) {
  for (const unsigned ranges : {1U, 4U, 200U}) {
    RangeLockDomain domain;
    const auto lock = make_lock<TestType>({.domain = &domain});
    std::uint64_t after_some = 0;
    for (unsigned i = 0; i < 20'000; ++i) {
      RangeOwner owner(1, domain);
      for (std::uint64_t at = 0; at < ranges; ++at) {
        // Also wide, so that the grid has nodes to retire.
        const RangeGuard guard(*lock, owner, 100'000 * at, 100'000 * at + 90'000);
      }
      if (i == 1000) after_some = domain.statistics().node_bytes;
    }
    INFO(ranges << " ranges");
    CHECK(domain.statistics().node_bytes == after_some);
  }
}

// Another takes a part of the range when its node is about to be linked, in a list that has had no
// such meeting yet.
TEMPLATE_TEST_CASE("whoever is too late for a range keeps no node for it", "",
                   SP3_OUR_RANGE_LOCKS) {
  const Stop stop(rangelock::Hook::before_sleep);
  RangeLockDomain domain;
  RangeOwner late(1, domain);
  RangeOwner early(2, domain);
  std::uint64_t after_some = 0;
  for (unsigned i = 0; i < 2'000; ++i) {
    const auto lock = make_lock<TestType>({.domain = &domain});
    RangeHandle taken;
    Stop::when_i_get_to(rangelock::Hook::before_link,
                        [&] { taken = lock->lock(early, 10'000, 20'000); });
    REQUIRE_FALSE(lock->try_lock(late, 10'500, 30'000));
    lock->unlock(taken);
    if (i == 500) after_some = domain.statistics().node_bytes;
  }
  CHECK(domain.statistics().node_bytes == after_some);
}

// Of less than a batch, and of more than one.
TEST_CASE("what an owner leaves is used again, but by nobody while others may look at it") {
  constexpr std::size_t kBatch = rangelock::NodeBatch::kMost;
  const unsigned height = GENERATE(1U, 6U);
  const std::size_t nodes = GENERATE(std::size_t{1}, kBatch + 5);
  rangelock::Domain domain(3);
  const auto reader = domain.admit(1);
  const auto heir = domain.admit(2);
  auto leaver = domain.admit(3);
  const auto take = [height](rangelock::OwnerCore& owner) {
    rangelock::Node* const node = owner.pool.allocate(height, owner.participant.era());
    node->height = static_cast<std::uint8_t>(height);
    return node;
  };
  std::set<rangelock::Node*> left;
  while (left.size() < nodes) left.insert(take(*leaver));
  std::size_t taken = 0;
  {
    const rangelock::Pin pin(*reader, rangelock::Pin::Keeps::all);
    for (rangelock::Node* const node : left) leaver->pool.retire(node);
    domain.dismiss(*leaver);
    leaver.reset();
    for (std::size_t i = 0; i < 3 * kBatch; ++i) taken += left.count(take(*heir));
  }
  CHECK(taken == 0);
  for (std::size_t i = 0; i < 5 * kBatch; ++i) taken += left.count(take(*heir));
  CHECK(taken == nodes);
  domain.dismiss(*reader);
  domain.dismiss(*heir);
}

TEST_CASE("of the free nodes that owners leave none is lost, however many each has") {
  rangelock::Domain domain(1);
  std::vector<rangelock::Node*> held;  // longer than their owners live
  std::uint64_t after_some = 0;
  for (std::size_t i = 0; i < 3'000; ++i) {
    const auto owner = domain.admit(1);
    std::vector<rangelock::Node*> taken(1 + 37 * i % 200);
    for (rangelock::Node*& node : taken) {
      node = owner->pool.allocate(1, 0);
      node->height = 1;
    }
    for (rangelock::Node* const node : std::exchange(held, std::move(taken)))
      owner->pool.free(node);
    domain.dismiss(*owner);
    if (i == 1'000) after_some = domain.node_bytes();
  }
  CHECK(domain.node_bytes() == after_some);
}

// Else all that is said here of memory that does not grow is said of nothing.
TEMPLATE_TEST_CASE("a domain tells what it has taken for nodes, and how many owners there are", "",
                   SP3_OUR_RANGE_LOCKS) {
  RangeLockDomain domain;
  const auto lock = make_lock<TestType>({.domain = &domain});
  CHECK(domain.statistics().node_bytes == 0);
  CHECK(domain.statistics().owners == 0);
  {
    RangeOwner owner(1, domain);
    std::vector<RangeHandle> handles;
    for (std::uint64_t at = 0; at < 500; ++at) {  // wide ones
      handles.push_back(lock->lock(owner, 1000 * at, 1000 * at + 900));
    }
    CHECK(domain.statistics().node_bytes >= 500 * rangelock::node_bytes(false));
    CHECK(domain.statistics().owners == 1);
    lock->unlock_all(handles);
  }
  CHECK(domain.statistics().owners == 0);
}

TEST_CASE("nodes that one owner makes and another retires go back to the first") {
  rangelock::Domain domain(2);
  const auto maker = domain.admit(1);
  const auto retirer = domain.admit(2);
  for (const unsigned height : {1U, 6U}) {
    std::uint64_t after_some = 0;
    for (int i = 0; i < 100'000; ++i) {
      rangelock::Node* const node = maker->pool.allocate(height, 0);
      node->height = static_cast<std::uint8_t>(height);
      retirer->pool.retire(node);
      if (i == 10'000) after_some = domain.node_bytes();
    }
    INFO("height " << height);
    CHECK(domain.node_bytes() == after_some);
  }
  domain.dismiss(*maker);
  domain.dismiss(*retirer);
}

TEST_CASE("whoever fills a batch has another, however nodes travel and owners go") {
  constexpr std::size_t kOwners = 6;
  rangelock::Domain domain(kOwners);
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  std::vector<std::unique_ptr<rangelock::OwnerCore>> owners(kOwners);
  std::vector<rangelock::Node*> held;
  const auto dismiss = [&](std::unique_ptr<rangelock::OwnerCore>& owner) {
    if (owner == nullptr) return;
    domain.dismiss(*owner);
    owner.reset();
  };
  std::uint64_t most = 0;
  for (int i = 0; i < 3'000; ++i) {
    std::unique_ptr<rangelock::OwnerCore>& owner = owners[below(kOwners)];
    if (owner == nullptr) owner = domain.admit(1);
    if (below(20) == 0) dismiss(owner);
    if (owner == nullptr) continue;
    // Each does one thing many times: takes, retires, or gives back what nobody has seen.
    const std::size_t what = held.size() > 5'000 ? 1 + below(2) : below(3);
    for (std::size_t times = below(700); times-- > 0;) {
      if (what == 0) {
        const unsigned height = below(4) == 0 ? 6 : 1;
        rangelock::Node* const node = owner->pool.allocate(height, owner->participant.era());
        node->height = static_cast<std::uint8_t>(height);
        held.push_back(node);
      } else if (!held.empty()) {
        std::swap(held[below(held.size())], held.back());
        rangelock::Node* const node = held.back();
        held.pop_back();
        what == 1 ? owner->pool.retire(node) : owner->pool.free(node);
      }
    }
    std::ranges::sort(held);
    REQUIRE(std::ranges::adjacent_find(held) == held.end());  // nobody was given it twice
    most = std::max(most, domain.node_bytes());
  }
  CHECK(most < 4 * 6'000 * rangelock::node_bytes(true));
  for (auto& owner : owners) dismiss(owner);
}

TEST_CASE("batches of nodes go on whole, and the last to come is the first to go") {
  std::array<rangelock::NodeBatch, 5> batches;
  rangelock::BatchStack stack;
  CHECK(stack.is_empty());
  for (rangelock::NodeBatch& batch : batches) stack.push(batch);
  REQUIRE(stack.size() == 5);
  rangelock::BatchStack older = stack.cut_below(2);
  CHECK(stack.size() == 2);
  CHECK(older.size() == 3);
  CHECK(&stack.pop() == &batches[4]);
  CHECK(stack.cut_below(1).is_empty());
  CHECK(older.cut_below(4).is_empty());
  CHECK(older.size() == 3);
  stack.push_all(std::move(older));
  CHECK(older.is_empty());
  REQUIRE(stack.size() == 4);
  rangelock::BatchStack odd;
  stack.move_if([&](const rangelock::NodeBatch& batch) { return (&batch - &batches[0]) % 2 == 1; },
                odd);
  CHECK(odd.size() == 2);
  CHECK(&odd.pop() == &batches[3]);  // the first that was moved is the lowest
  CHECK(&odd.pop() == &batches[1]);
  CHECK(&stack.pop() == &batches[2]);
  CHECK(&stack.pop() == &batches[0]);
  CHECK(stack.is_empty());
}

TEST_CASE("what is left of two batches is put together") {
  std::vector<rangelock::Node> nodes(rangelock::NodeBatch::kMost + 10);
  rangelock::NodeBatch one, other;
  for (std::size_t i = 0; i < 100; ++i) one.push(&nodes[i]);
  for (std::size_t i = 100; i < nodes.size(); ++i) other.push(&nodes[i]);
  one.born = 5, one.retired = 6;
  other.born = 2, other.retired = 4;
  one.fill_from(other);
  CHECK(one.is_full());
  CHECK(one.born == 2);
  CHECK(one.retired == 6);
  CHECK(other.size == 10);
  CHECK(other.retired == 4);
  rangelock::NodeBatch third;
  third.fill_from(other);
  CHECK(other.is_empty());
  CHECK(other.born == rangelock::NodeBatch::kNever);  // and can be used for others
  CHECK(third.size == 10);
  CHECK(third.born == 2);
}

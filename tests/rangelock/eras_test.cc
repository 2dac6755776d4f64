// Nodes are used again while a thread that is pinned does not run: all but those that it may act
// on.
#include <catch2/catch.hpp>

#include "rangelock/domain.h"
#include "rangelock/ordered_list.h"
#include "tests/rangelock/stop.h"
#include "tests/rangelock/support.h"

using namespace sp3;
using namespace sp3::tests;
using rangelock::Era;
using rangelock::Eras;
using rangelock::Hook;
using rangelock::Node;
using rangelock::Pin;

namespace {

// Two owners of one list, of which one is stopped where the test wants it.
class TwoOwners {
 public:
  TwoOwners() : mine_(domain_.admit(1)), others_(domain_.admit(2)) {}
  ~TwoOwners() {
    list_.clear(mine_->pool);
    for (const auto* owner : {&mine_, &others_}) {
      (*owner)->pool.give_back();
      domain_.dismiss(**owner);
    }
  }
  TwoOwners(const TwoOwners&) = delete;
  TwoOwners& operator=(const TwoOwners&) = delete;

  Node* lock(const Range& range) { return lock(*mine_, range); }
  Node* lock_as_other(const Range& range) { return lock(*others_, range); }
  static void unlock(Node* node) { rangelock::OrderedList::mark(node); }
  Node* find_as_other(const Range& range) { return find(*others_, range); }
  bool is_free(const Range& range) { return find(*mine_, range) == nullptr; }
  // So many ranges that come and go that nodes go round several times.
  void churn() {
    for (unsigned i = 0; i < 20 * rangelock::kBatch; ++i) unlock(lock({1 << 20, 1 << 21}));
    REQUIRE(is_free({1 << 20, 1 << 21}));
  }
  // Locks the range with that very node, once it comes round; gives up after many attempts.
  Node* lock_with(const Node* wanted, const Range& range) {
    for (int i = 0; i < 1'000'000; ++i) {
      Node* const node = lock(range);
      if (node == wanted) return node;
      unlock(node);
    }
    return nullptr;
  }

 private:
  Node* lock(rangelock::OwnerCore& owner, const Range& range) {
    const Pin pin(owner, Pin::Keeps::of_then);
    rangelock::Blocker blocker;
    Node* const node = list_.link_disjoint(owner, range, rangelock::NodeState::held, blocker);
    if (node != nullptr) list_.build_tower(owner, node);
    return node;
  }

  Node* find(rangelock::OwnerCore& owner, const Range& range) {
    const Pin pin(owner, Pin::Keeps::of_then);
    return list_.find_overlap(owner, range, 0);
  }

  rangelock::Domain domain_{2};
  const std::unique_ptr<rangelock::OwnerCore> mine_, others_;
  // Without towers, so that only one link leads to each node.
  rangelock::OrderedList list_{1};
};

// T1 does something and stops on its way; it is pinned, in an era that is over, and has seen
// nothing yet of what is in the list from now on.
class Late {
 public:
  template <class Act>
  Late(TwoOwners& owners, Act act)
      : thread_([act, this] {
          Stop::arm_me();
          node_ = act();
        }) {
    Stop::wait_until_stopped();
    owners.churn();
  }
  Node* join() {
    Stop::go_on();
    thread_.join();
    return node_;
  }

 private:
  Node* node_ = nullptr;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a participant keeps what lived in its era, or all since") {
  Eras eras(3);
  for (std::size_t who = 0; who < 3; ++who) eras.admit(who);
  Eras::Participant participant(eras, 1);
  const auto is_kept = [&](Era born, Era retired) {
    return eras.announced().any_of(
        [&](std::uint64_t announcement) { return Eras::keeps(announcement, born, retired); });
  };
  for (int i = 0; i < 10; ++i) eras.retire();
  CHECK_FALSE(is_kept(0, 100));
  participant.pin();
  const Era era = participant.era();
  CHECK(participant.keeps_what_it_reached());
  CHECK(is_kept(0, era));
  CHECK(is_kept(era, era));
  CHECK(is_kept(era, era + 5));
  CHECK_FALSE(is_kept(0, era - 1));
  CHECK_FALSE(is_kept(era + 1, era + 5));

  CHECK(eras.retire() == era);
  CHECK_FALSE(participant.keeps_what_it_reached());
  CHECK_FALSE(is_kept(era + 1, era + 5));
  CHECK(participant.widen());
  CHECK(participant.keeps_what_it_reached());
  CHECK_FALSE(participant.widen());
  CHECK(is_kept(0, era));
  CHECK(is_kept(era + 1, era + 5));
  CHECK_FALSE(is_kept(0, era - 1));
  eras.retire();
  CHECK(participant.keeps_what_it_reached());

  participant.unpin();
  CHECK_FALSE(is_kept(0, 100));
  participant.pin();
  CHECK(participant.era() == era + 2);
  CHECK_FALSE(is_kept(era + 3, era + 5));
  participant.unpin();
}

TEST_CASE("limbo gives back what nobody keeps, however long it keeps the rest") {
  Eras eras(2);
  eras.admit(0);
  eras.admit(1);
  Eras::Participant stopped(eras, 0);
  stopped.pin();
  constexpr std::size_t kChains = 1000;
  std::vector<Node> nodes(kChains);
  rangelock::Limbo limbo;
  rangelock::NodeBatches free;
  const Era era = stopped.era();
  std::size_t given = 0, kept = 0;
  for (std::size_t i = 0; i < kChains; ++i) {
    const bool old = i % 10 == 3;
    rangelock::NodeChain chain;
    chain.push(&nodes[i]);
    const Era retired = eras.retire();
    limbo.add({.nodes = chain, .born = old ? era : retired, .retired = retired});
    if (retired == era || old) ++kept;
    limbo.release_to(free, eras);
    while (!free.empty()) {
      given += free.pop().size;
    }
    // What is free is given back soon: it does not wait until there is as much of it as is kept.
    CHECK(i + 1 - given - kept <= 4);
  }
  // What was kept comes back when it is kept no more, although nobody asks for it in particular.
  stopped.unpin();
  rangelock::Limbo another;
  another.add_all(limbo);
  limbo.release_to(free, eras);
  CHECK(free.empty());
  for (std::size_t i = 0; i < kept; ++i) {
    rangelock::NodeChain chain;
    chain.push(&nodes[i]);
    another.add({.nodes = chain, .born = eras.retire(), .retired = eras.retire()});
    another.release_to(free, eras);
    while (!free.empty()) given += free.pop().size;
  }
  CHECK(kChains + kept - given <= 4);
}

TEST_CASE("limbo does not wait for as many batches as it once had to keep") {
  constexpr std::size_t kParticipants = 9;
  Eras eras(kParticipants);
  std::vector<Eras::Participant> participants;
  for (std::size_t who = 0; who < kParticipants; ++who) {
    eras.admit(who);
    participants.emplace_back(eras, who);
  }
  constexpr std::size_t kChains = 5000;
  std::vector<Node> nodes(kChains);
  rangelock::Limbo limbo;
  rangelock::NodeBatches free;
  std::size_t in_limbo = 0;
  const auto add = [&](Node& node, Era age) {
    rangelock::NodeChain chain;
    chain.push(&node);
    const Era retired = eras.retire();
    limbo.add({.nodes = chain, .born = retired - std::min(age, retired), .retired = retired});
    limbo.release_to(free, eras);
    for (++in_limbo; !free.empty();) in_limbo -= free.pop().size;
  };
  participants[0].pin();
  participants[0].keep_all();
  for (std::size_t i = 0; i < 1000; ++i) add(nodes[i], 0);
  CHECK(in_limbo == 1000);
  participants[0].unpin();
  for (std::size_t i = 1000; i < 2000; ++i) add(nodes[i], 0);
  CHECK(in_limbo == 0);
  // The others pin themselves anew in turn: each batch is kept until all have, and is then no
  // longer one of the newest.
  std::size_t most = 0;
  for (std::size_t i = 2000; i < kChains; ++i) {
    Eras::Participant& participant = participants[1 + i % (kParticipants - 1)];
    participant.unpin();
    participant.pin();
    add(nodes[i], kParticipants - 1);
    most = std::max(most, in_limbo);
  }
  CHECK(most < 4 * kParticipants);
}

TEST_CASE("a thread that stops while it is pinned does not make memory grow") {
  const Stop stop(Hook::before_link);
  RangeLockDomain domain;
  const auto lock = make_lock<SkiplistRangeLock>({.domain = &domain});
  RangeOwner mine(1, domain), other(2, domain);
  std::vector<RangeHandle> held;
  for (std::uint64_t i = 0; i < 1000; ++i) held.push_back(lock->try_lock(mine, 4 * i, 4 * i + 2));
  std::thread stopped([&] {
    Stop::arm_me();
    const RangeGuard guard(*lock, other, 1 << 20, (1 << 20) + 1);
  });
  Stop::wait_until_stopped();
  const std::uint64_t before = domain.statistics().node_bytes;
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {
    const std::uint64_t begin = (1 << 21) + i % 1000 * 16;
    const RangeGuard guard(*lock, mine, begin, begin + 8);
  }
  CHECK(domain.statistics().node_bytes <= before + 128 * 1024);
  Stop::go_on();
  stopped.join();
  lock->unlock_all(held);
}

// T1 finds its place between P and the end, and stops. P is unlocked, and its node used again for
// [100, 105), also the last of the list: for T1 it is as if P were there still, but ended
// elsewhere.
TEST_CASE("a node used again is not taken for the neighbour it was") {
  const Stop stop(Hook::before_link);
  TwoOwners owners;
  Late late(owners, [&] { return owners.lock_as_other({35, 45}); });
  Node* const p = owners.lock({0, 10});
  Stop::go_on_to(Hook::gap_found);
  owners.unlock(p);
  owners.churn();
  REQUIRE(owners.lock_with(p, {100, 105}) == p);
  const Node* const node = late.join();
  REQUIRE(node != nullptr);
  CHECK_FALSE(owners.is_free({40, 41}));
  CHECK_FALSE(owners.is_free({104, 105}));
  CHECK(owners.is_free({45, 100}));
  CHECK(node->next(0).load() == rangelock::link_to(p));
}

// T1 is about to unlink X, which it found marked between P and Y. Another does, and X's node is
// used again for a range that is held at the same place, so that P leads to the same address as
// before.
TEST_CASE("a node used again is not unlinked in place of the one it was") {
  const Stop stop(Hook::before_link);
  TwoOwners owners;
  Late late(owners, [&] { return owners.lock_as_other({60, 70}); });
  owners.lock({0, 10});
  Node* const x = owners.lock({20, 30});
  owners.lock({40, 50});
  owners.unlock(x);
  Stop::go_on_to(Hook::before_unlink);
  REQUIRE(owners.is_free({10, 40}));
  owners.churn();
  REQUIRE(owners.lock_with(x, {20, 30}) == x);
  CHECK(late.join() != nullptr);
  CHECK_FALSE(owners.is_free({20, 21}));
  CHECK_FALSE(owners.is_free({60, 61}));
}

// T1 looks for what overlaps [50, 200) and is about to go on from U = [60, 65). U and what comes
// behind it are unlocked, and the latter's node used again far away. What is held all the time lies
// between.
TEST_CASE("a node used again does not lead past what is held") {
  const Stop stop(Hook::before_unlink);
  TwoOwners owners;
  owners.lock({0, 10});
  Node* const m = owners.lock({20, 30});
  Node* const u = owners.lock({60, 65});
  const Node* const w = owners.lock({180, 190});
  owners.unlock(m);  // what T1 is about to unlink when it stops
  Late late(owners, [&] { return owners.find_as_other({50, 200}); });
  Node* const y = owners.lock({70, 75});
  owners.unlock(u);
  REQUIRE(owners.is_free({50, 70}));
  owners.churn();  // what is retired with U is kept as long as U
  owners.unlock(y);
  REQUIRE(owners.is_free({50, 80}));
  owners.churn();
  REQUIRE(owners.lock_with(y, {1000, 1005}) == y);
  CHECK(late.join() == w);
}

// Nodes are used again while a thread that is pinned does not run: all but those that it may act
// on.
#include <catch2/catch.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <semaphore>
#include <utility>
#include <vector>

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

// Owners of one list, of which one is stopped where the test wants it.
class Owners {
 public:
  Owners() : mine_(domain_.admit(1)), others_(domain_.admit(2)), thirds_(domain_.admit(3)) {}
  ~Owners() {
    list_.clear(mine_->pool);
    for (const auto* owner : {&mine_, &others_, &thirds_}) {
      (*owner)->pool.give_back();
      domain_.dismiss(**owner);
    }
  }
  Owners(const Owners&) = delete;
  Owners& operator=(const Owners&) = delete;

  Node* lock(const Range& range) { return lock(*mine_, range); }
  Node* lock_as_other(const Range& range) { return lock(*others_, range); }
  Node* lock_as_third(const Range& range) { return lock(*thirds_, range); }
  static void unlock(Node* node) { rangelock::OrderedList::mark(node); }
  void release_as_other(Node* node) { list_.release(*others_, node); }
  Node* find_as_other(const Range& range) { return find(*others_, range); }
  Node* find_as_third(const Range& range) { return find(*thirds_, range); }
  bool is_free(const Range& range) { return find(*mine_, range) == nullptr; }
  // So many ranges that come and go that nodes go round several times.
  void churn() {
    for (unsigned i = 0; i < 20 * rangelock::NodeBatch::kMost; ++i) unlock(lock(kElsewhere));
    REQUIRE(is_free(kElsewhere));
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
  // Takes that very node once it comes round, and lets no list have it.
  bool take(Node* wanted) {
    for (int i = 0; i < 1'000'000; ++i) {
      Node* const node = mine_->pool.allocate(1, mine_->participant.era());
      node->height = 1;
      if (node == wanted) return true;
      mine_->pool.free(node);
      unlock(lock(kElsewhere));
    }
    return false;
  }
  void give_to_third(Node* node) { thirds_->pool.free(node); }
  // Whoever is the next to refill a pool gets that node alone.
  bool leave(Node* node) {
    if (!take(node)) return false;
    rangelock::NodeBatch& batch = domain_.take_empty();
    batch.push(node);
    rangelock::BatchStack batches;
    batches.push(batch);
    domain_.give(false, std::move(batches));
    return true;
  }

  // Two want the same link, so that the list has signposts from now on, one each 64 addresses.
  void meet() {
    Stop::when_i_get_to(Hook::before_link, [&] { unlock(lock({0, 1})); });
    unlock(lock_as_other({100, 101}));
  }
  // The signpost at that place, which is behind that node.
  Node* plant(Node* before, std::uint64_t place) {
    const std::uint64_t linked = Stop::count(Hook::signpost_linked);
    for (int i = 0; i < 1000 && Stop::count(Hook::signpost_linked) == linked; ++i)
      unlock(lock({place + 10, place + 11}));
    Node* node = before;
    while (node->begin() < place) node = rangelock::node_of(node->next(0).load());
    REQUIRE((node->begin() == place && rangelock::is_signpost(*node)));
    return node;
  }

  static constexpr Range kElsewhere{1 << 20, 1 << 21};

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

  rangelock::Domain domain_{3};
  const std::unique_ptr<rangelock::OwnerCore> mine_, others_, thirds_;
  // Without towers, so that only one link leads to each node.
  rangelock::OrderedList list_{1};
};

// T1 does something and stops on its way; it is pinned, in an era that is over, and has seen
// nothing yet of what is in the list from now on.
class Late {
 public:
  template <class Act>
  Late(Owners& owners, Act act)
      : thread_([act, this] {
          Stop::arm_me();
          node_ = act();
          arrived_.release();
        }) {
    Stop::wait_until_stopped();
    owners.churn();
  }
  Node* join() {
    Stop::go_on();
    return result();
  }
  // Goes on, and whether it arrives; `result` is to follow.
  bool arrives() {
    Stop::go_on();
    return arrived_.try_acquire_for(std::chrono::seconds(20));
  }
  Node* result() {
    thread_.join();
    return node_;
  }

 private:
  Node* node_ = nullptr;
  std::binary_semaphore arrived_{0};
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

TEST_CASE("a participant that lingers is pinned between two pins, and anew when the era goes on") {
  Eras eras(1);
  eras.admit(0);
  Eras::Participant participant(eras, 0);
  const auto is_kept = [&](Era born, Era retired) {
    return eras.announced().any_of(
        [&](std::uint64_t announcement) { return Eras::keeps(announcement, born, retired); });
  };
  eras.retire();
  participant.linger();
  CHECK_FALSE(is_kept(0, 100));  // not before it has been pinned
  participant.pin();
  const Era era = participant.era();
  participant.unpin();
  CHECK(is_kept(era, era));
  participant.linger();  // as a batch that is undone by another
  participant.pin();
  CHECK(participant.era() == era);
  CHECK(is_kept(era, era));
  eras.retire();
  participant.unpin();
  CHECK(is_kept(era, era));
  participant.pin();
  CHECK(participant.era() == era + 1);
  CHECK(is_kept(era + 1, era + 1));
  CHECK_FALSE(is_kept(era, era));

  eras.retire();
  CHECK(participant.widen());
  CHECK(is_kept(era + 2, era + 2));
  participant.unpin();
  participant.pin();  // what it kept besides is not kept for what it does now
  CHECK(participant.era() == era + 2);
  CHECK_FALSE(is_kept(era + 3, era + 3));
  participant.unpin();
  participant.leave();
  CHECK_FALSE(is_kept(0, 100));

  participant.pin();
  participant.leave();  // of what has not lingered: nothing
  CHECK(is_kept(era + 2, era + 2));
  participant.unpin();
  CHECK_FALSE(is_kept(0, 100));
  participant.linger();
  participant.leave();  // never pinned meanwhile
  CHECK_FALSE(is_kept(0, 100));
}

TEMPLATE_TEST_CASE("a batch leaves nobody pinned, whether it was had or not", "",
                   SP3_OUR_RANGE_LOCKS) {
  RangeLockDomain domain;
  const auto lock = make_lock<TestType>({.domain = &domain});
  constexpr std::uint64_t kWide = 1 << 20;  // also the grid's are in a list
  const std::vector<Range> ranges{{0, kWide}, {kWide, 2 * kWide}, {2 * kWide, 3 * kWide}};
  RangeOwner other(1, domain);
  std::vector<std::unique_ptr<RangeOwner>> owners;
  std::uint64_t before = 0;
  // Each has a batch of free nodes, and would keep one of its time, or two.
  for (unsigned i = 0; i < 120; ++i) {
    owners.push_back(std::make_unique<RangeOwner>(2 + i, domain));
    RangeHandle blocker;
    if (i % 2 == 0) blocker = lock->try_lock(other, 2 * kWide, 2 * kWide + 1);
    std::vector<RangeHandle> handles(ranges.size());
    CHECK(lock->try_lock_all(*owners.back(), ranges, handles) == (i % 2 != 0));
    lock->unlock_all(handles);
    if (blocker) lock->unlock(blocker);
    for (int pair = 0; pair < 500; ++pair) lock->unlock(lock->try_lock(other, 0, kWide));
    if (i == 20) before = domain.statistics().node_bytes;
  }
  CHECK(domain.statistics().node_bytes <= before + 140 * 128 * base::kCacheLine);
}

TEST_CASE("limbo gives back what nobody keeps, however long it keeps the rest") {
  Eras eras(2);
  eras.admit(0);
  eras.admit(1);
  Eras::Participant stopped(eras, 0);
  stopped.pin();
  constexpr std::size_t kBatches = 1000;
  std::vector<rangelock::NodeBatch> batches(kBatches);
  Node node;
  const auto add = [&](rangelock::Limbo& to, rangelock::NodeBatch& batch, Era born, Era retired) {
    batch.size = 0;
    batch.push(&node);
    batch.born = born;
    batch.retired = retired;
    to.add(batch);
  };
  rangelock::Limbo limbo;
  rangelock::BatchStack free;
  const Era era = stopped.era();
  std::size_t given = 0, kept = 0;
  std::vector<rangelock::NodeBatch*> in_hand;
  const auto take_free = [&] {
    while (!free.is_empty()) in_hand.push_back(&free.pop());
    given = in_hand.size();
  };
  for (std::size_t i = 0; i < kBatches; ++i) {
    const bool old = i % 10 == 3;
    const Era retired = eras.retire();
    add(limbo, batches[i], old ? era : retired, retired);
    if (retired == era || old) ++kept;
    limbo.release_to(free, eras);
    take_free();
    // What is free is given back soon: it does not wait until there is as much of it as is kept.
    CHECK(i + 1 - given - kept <= 4);
  }
  // What was kept comes back when it is kept no more, although nobody asks for it in particular.
  stopped.unpin();
  rangelock::Limbo another;
  another.add_all(limbo);
  limbo.release_to(free, eras);
  CHECK(free.is_empty());
  std::vector<rangelock::NodeBatch> more(kept);
  for (rangelock::NodeBatch& batch : more) {
    const Era born = eras.retire();
    add(another, batch, born, eras.retire());
    another.release_to(free, eras);
    take_free();
  }
  CHECK(kBatches + kept - given <= 4);
}

TEST_CASE("limbo does not wait for as many batches as it once had to keep") {
  constexpr std::size_t kParticipants = 9;
  Eras eras(kParticipants);
  std::vector<Eras::Participant> participants;
  for (std::size_t who = 0; who < kParticipants; ++who) {
    eras.admit(who);
    participants.emplace_back(eras, who);
  }
  constexpr std::size_t kBatches = 5000;
  std::vector<rangelock::NodeBatch> batches(kBatches);
  Node node;
  rangelock::Limbo limbo;
  rangelock::BatchStack free;
  std::size_t in_limbo = 0;
  const auto add = [&](rangelock::NodeBatch& batch, Era age) {
    batch.push(&node);
    batch.retired = eras.retire();
    batch.born = batch.retired - std::min(age, batch.retired);
    limbo.add(batch);
    limbo.release_to(free, eras);
    for (++in_limbo; !free.is_empty(); --in_limbo) free.pop();
  };
  participants[0].pin();
  participants[0].keep_all();
  for (std::size_t i = 0; i < 1000; ++i) add(batches[i], 0);
  CHECK(in_limbo == 1000);
  participants[0].unpin();
  for (std::size_t i = 1000; i < 2000; ++i) add(batches[i], 0);
  CHECK(in_limbo == 0);
  // The others pin themselves anew in turn: each batch is kept until all have, and is then no
  // longer one of the newest.
  std::size_t most = 0;
  for (std::size_t i = 2000; i < kBatches; ++i) {
    Eras::Participant& participant = participants[1 + i % (kParticipants - 1)];
    participant.unpin();
    participant.pin();
    add(batches[i], kParticipants - 1);
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
  Owners owners;
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
  Owners owners;
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
  Owners owners;
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

// T1 is about to go on from S, and T2 about to make a node, to link before S. S's link leads to N
// for ever, and N becomes T2's, which links it nowhere: it leads to S.
TEST_CASE("a search that is led round in a circle gives up") {
  const Stop stop(Hook::before_unlink);
  Owners owners;
  owners.lock({0, 10});
  Node* const m = owners.lock({20, 30});
  Node* const s = owners.lock({200, 210});
  owners.unlock(m);  // what T1 is about to unlink when it stops
  Node* n = nullptr;
  std::optional<Late> t1;
  Stop::when_i_get_to(Hook::before_refill, [&] {
    t1.emplace(owners, [&] { return owners.find_as_other({100, 300}); });
    n = owners.lock({220, 230});
    owners.unlock(s);
    CHECK(owners.is_free({211, 212}));
    owners.churn();  // what is retired with S is kept as long as S
    owners.unlock(n);
    CHECK(owners.is_free({211, 240}));
    owners.churn();
    owners.lock({50, 60});  // in T2's way
    CHECK(owners.leave(n));
  });
  CHECK(owners.lock_as_third({50, 60}) == nullptr);
  REQUIRE(s->next(0).load() == (rangelock::link_to(n) | rangelock::kMark));
  REQUIRE(n->next(0).load() == rangelock::link_to(s));
  CHECK(t1->arrives());
  owners.lock_as_third({400, 410});  // takes N out of the circle, should T1 still be in it
  CHECK(t1->result() == nullptr);
}

// T1 is about to remove the signposts in its way, from A on. N was linked behind A and becomes
// T2's, for a signpost that it cannot plant.
TEST_CASE("who removes signposts and is led round in a circle gives up") {
  const Stop stop(GENERATE(Hook::signpost_in_way, Hook::before_removal));
  Owners owners;
  owners.meet();
  Node* const first = owners.lock({0, 1});
  owners.plant(first, 128);  // where T1's search begins
  Node* const a = owners.plant(first, 256);
  Node *n = nullptr, *x = nullptr;
  std::optional<Late> t1;
  Stop::when_i_get_to(Hook::before_refill, [&] {
    t1.emplace(owners, [&] { return owners.lock_as_other({130, 300}); });
    n = owners.lock({300, 301});
    x = owners.lock({180, 260});  // A is in its way, and it in T2's
    owners.churn();
    owners.unlock(n);
    CHECK(owners.is_free({290, 310}));
    owners.churn();
    CHECK(owners.leave(n));
  });
  for (int i = 0; i < 1000 && !t1; ++i) owners.find_as_third({200, 201});
  REQUIRE(a->next(0).load() == (rangelock::link_to(n) | rangelock::kMark));
  REQUIRE(n->next(0).load() == rangelock::link_to(a));
  REQUIRE(rangelock::is_signpost(*n));
  owners.unlock(x);
  CHECK(t1->arrives());
  owners.lock_as_third({400, 410});
  CHECK(t1->result() != nullptr);
}

// T1 has passed too many nodes behind a signpost, and looks whether there are signposts among them
// that are of no use. One that it comes to was a range's node, then a signpost's that was not
// linked, and is used for a range that is held before T1 removes it.
TEST_CASE("a search that has to keep more removes nothing that it reached before") {
  const Stop stop(Hook::not_linked_nearby);
  Owners owners;
  owners.meet();
  Node* const first = owners.lock({0, 1});
  const Node* const signpost = owners.plant(first, 128);
  for (std::uint64_t i = 0; i < 10; ++i) owners.lock({140 + 2 * i, 141 + 2 * i});
  constexpr Range kHeld{Owners::kElsewhere.begin + 10, Owners::kElsewhere.begin + 11};
  Node* held = nullptr;
  Late t1(owners, [&] {
    Stop::when_i_get_to(Hook::before_removal, [&] { held = owners.lock_as_third(kHeld); });
    return owners.lock_as_other({190, 191});
  });
  Node* const y = owners.lock({130, 131});
  owners.lock({120, 129});  // removes the signpost
  owners.churn();
  owners.unlock(y);
  REQUIRE(owners.is_free({129, 132}));
  owners.churn();
  REQUIRE(owners.take(y));
  // As plant() leaves a node that it could not link, when signposts were closer to each other.
  y->set_range({176, 176});
  y->next(0).store(rangelock::link_to(first));
  owners.give_to_third(y);
  REQUIRE(signpost->next(0).load() == (rangelock::link_to(y) | rangelock::kMark));
  CHECK(t1.join() != nullptr);
  if (held == nullptr) held = owners.lock_as_third(kHeld);
  CHECK(held == y);
  CHECK_FALSE(owners.is_free(kHeld));
}

// T1 unlocks N and finds a signpost before it that is younger than its pin. Its node becomes T2's,
// which is about to link one before N, and does not.
TEST_CASE("who unlocks a range unlinks it from no node that is not kept") {
  const Stop stop(Hook::unlocking_nearby);
  Owners owners;
  Node* const n = owners.lock_as_other({140, 141});
  owners.meet();
  Node* const first = owners.lock({0, 1});
  Node* p = nullptr;
  std::optional<Late> t1;
  Stop::when_i_get_to(Hook::before_refill, [&] {
    t1.emplace(owners, [&]() -> Node* {
      owners.release_as_other(n);
      return nullptr;
    });
    p = owners.plant(first, 128);
    owners.churn();
    owners.lock({130, 131});  // so that N is not unlinked with P
    Stop::go_on_to(Hook::unlocked_nearby);
    owners.lock({60, 129});  // P is in its way, and it in T2's
    owners.churn();
    CHECK(owners.leave(p));
  });
  for (int i = 0; i < 1000 && !t1; ++i) owners.find_as_third({70, 71});
  REQUIRE(p->next(0).load() == rangelock::link_to(n));
  t1->join();
  CHECK(p->next(0).load() == rangelock::link_to(n));
}

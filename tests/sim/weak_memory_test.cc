// Litmus tests: what weak memory may show, it shows to some seed; what memory orders forbid, to none.
#include <memory>
#include <set>

#include "base/cold_mutex.h"
#include "base/fence.h"
#include "emu/spin.h"
#include "tests/sim/weak_cores.h"
#include "tests/sim/weakened.h"

namespace sp3::test {
namespace {

using Outcomes = std::set<std::array<std::uint64_t, 4>>;

// What the cores find, each running one of the bodies, over all seeds.
Outcomes outcomes(const std::vector<Body>& bodies) {
  Outcomes all;
  on_weak_cores(bodies, [&](const emu::sim::Machine& /*machine*/, const Shared& shared) {
    all.insert(shared.found);
  });
  return all;
}

bool contains(const Outcomes& outcomes, std::array<std::uint64_t, 4> one) {
  return outcomes.contains(one);
}

// Each stores and then loads what the other stores: whether both may find nothing.
bool store_buffering(const Body& between_one, const Body& between_other, std::memory_order store,
                     std::memory_order load) {
  return contains(outcomes({[=](Shared& s) {
                              s.x.store(1, store);
                              between_one(s);
                              s.found[0] = s.y.load(load);
                            },
                            [=](Shared& s) {
                              s.y.store(1, store);
                              between_other(s);
                              s.found[1] = s.x.load(load);
                            }}),
                  {0, 0});
}

// One stores data and then a flag: whether the other may see the flag without the data.
bool message_passing(const Body& before_flag, std::memory_order store, std::memory_order load,
                     const Body& behind_flag) {
  return contains(outcomes({[=](Shared& s) {
                              s.x.store(1, relaxed);
                              before_flag(s);
                              s.y.store(1, store);
                            },
                            [=](Shared& s) {
                              s.found[0] = s.y.load(load);
                              behind_flag(s);
                              s.found[1] = s.x.load(relaxed);
                            }}),
                  {1, 0});
}

}  // namespace

TEST_CASE("weak memory: a store may wait while its core goes on, but not past a full fence") {
  const Body full = [](Shared&) { base::atomic_fence(seq_cst); };
  const Body exchange = [](Shared& s) { s.z.exchange(1, seq_cst); };
  CHECK(store_buffering(nothing, nothing, relaxed, relaxed));
  CHECK(store_buffering(nothing, nothing, release, acquire));
  CHECK(store_buffering(full, nothing, relaxed, relaxed));
  CHECK_FALSE(store_buffering(full, full, relaxed, relaxed));
  CHECK_FALSE(store_buffering(exchange, full, relaxed, relaxed));
  CHECK_FALSE(store_buffering(nothing, nothing, seq_cst, seq_cst));
}

TEST_CASE("weak memory: a heavy fence is one for whoever has a light one") {
  const Body light = [](Shared&) { base::light_fence(); };
  const Body heavy = [](Shared&) { base::heavy_fence(); };
  CHECK(store_buffering(light, light, relaxed, relaxed));
  CHECK_FALSE(store_buffering(light, heavy, relaxed, relaxed));
  CHECK_FALSE(store_buffering(heavy, light, relaxed, relaxed));
}

TEST_CASE("weak memory: who acquires a flag sees what came before its release, and no other") {
  check_release_and_acquire(message_passing);
}

TEST_CASE("weak memory: a mutex hands over, and so do beginning and end of a thread") {
  base::ColdMutex mutex;
  const Body in_mutex = [&](Shared&) { const std::lock_guard hold(mutex); };
  CHECK_FALSE(message_passing(in_mutex, relaxed, relaxed, in_mutex));
  emu::Mutex other;
  const Body in_other = [&](Shared&) { const std::lock_guard hold(other); };
  CHECK_FALSE(message_passing(in_other, relaxed, relaxed, in_other));

  const Outcomes found = outcomes({[](Shared& s) {
    s.x.store(1, relaxed);
    emu::Thread child([&] {
      s.found[0] = s.x.load(relaxed);
      s.y.store(1, relaxed);
    });
    child.join();
    s.found[1] = s.y.load(relaxed);
  }});
  CHECK(found == Outcomes{{1, 1}});
}

TEST_CASE("weak memory: what exchanges leave of a release is acquired, a store ends it") {
  const auto through = [](const Body& change) {
    return contains(outcomes({[](Shared& s) {
                                s.x.store(1, relaxed);
                                s.y.store(1, release);
                              },
                              [=](Shared& s) {
                                if (s.y.load(relaxed) == 1) change(s);
                              },
                              [](Shared& s) {
                                s.found[0] = s.y.load(acquire);
                                s.found[1] = s.x.load(relaxed);
                              }}),
                    {2, 0});
  };
  CHECK_FALSE(through([](Shared& s) { s.y.fetch_add(1, relaxed); }));
  CHECK(through([](Shared& s) { s.y.store(2, relaxed); }));
}

TEST_CASE(
    "weak memory: the values of one atomic are seen in one order, and none is added to twice") {
  const Body looks = [](Shared& s) {
    std::uint64_t last = 0;
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t now = s.x.load(relaxed);
      if (now < last) s.found[0] = 1;
      last = now;
    }
  };
  const Body adds = [](Shared& s) {
    for (int i = 0; i < 3; ++i) s.x.fetch_add(1, relaxed);
  };
  const Body ends = [](Shared& s) {
    while (s.x.load(relaxed) != 6) emu::Spin().pause();
    s.found[1] = s.x.fetch_add(1, acq_rel);
  };
  CHECK(outcomes({looks, adds, adds, ends}) == Outcomes{{0, 6}});
}

TEST_CASE("weak memory: two readers may disagree about two stores, unless all is seq_cst") {
  const auto disagree = [](std::memory_order store, std::memory_order load) {
    return contains(
        outcomes({[=](Shared& s) { s.x.store(1, store); }, [=](Shared& s) { s.y.store(1, store); },
                  [=](Shared& s) {
                    s.found[0] = s.x.load(load);
                    s.found[1] = s.y.load(load);
                  },
                  [=](Shared& s) {
                    s.found[2] = s.y.load(load);
                    s.found[3] = s.x.load(load);
                  }}),
        {1, 0, 1, 0});
  };
  CHECK(disagree(release, acquire));
  CHECK_FALSE(disagree(seq_cst, seq_cst));
}

TEST_CASE("weak memory: an exchange that fails finds the newest") {
  const Body fails = [](Shared& s) {
    s.z.store(1, release);
    while (s.x.load(relaxed) == 0) emu::Spin().pause();
    std::uint64_t expected = 7;
    s.y.compare_exchange_strong(expected, 8, acq_rel);
    s.found[0] = expected;
  };
  const Body stores = [](Shared& s) {
    s.y.store(1, relaxed);
    s.x.store(1, relaxed);
  };
  CHECK(outcomes({fails, stores}) == Outcomes{{1}});
}

TEST_CASE("weak memory: of an object that is made anew nobody sees what was there before") {
  const Body makes = [](Shared& s) {
    s.x.store(1, relaxed);
    s.x.store(2, relaxed);
    std::construct_at(&s.x, 3U);
    s.y.store(1, relaxed);
  };
  const Body looks = [](Shared& s) {
    if (s.y.load(relaxed) == 1) s.found[0] = s.x.load(relaxed);
  };
  CHECK(outcomes({makes, looks}) == Outcomes{{0}, {3}});
}

TEST_CASE("weak memory: an order that is weakened is one that is missed") {
  {
    const Weakened all("weak_memory_test.cc", relaxed);
    CHECK(message_passing(nothing, release, acquire, nothing));
    CHECK(store_buffering(nothing, nothing, seq_cst, seq_cst));
  }
  {
    const Weakened full_fences("weak_memory_test.cc", acq_rel);
    CHECK_FALSE(message_passing(nothing, release, acquire, nothing));
    CHECK(store_buffering(nothing, nothing, seq_cst, seq_cst));
  }
  const Weakened others("another.cc", acq_rel);
  CHECK_FALSE(store_buffering(nothing, nothing, seq_cst, seq_cst));
}

}  // namespace sp3::test

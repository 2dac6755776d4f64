// A session that is alone notes no reads and locks by plain stores: what that may not change when
// another comes, in the middle of a body or all the time (runtime/company.h).
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/runtime/cells.h"

namespace sp3::test {
namespace {

// One session, and a way for another to come in the middle of its bodies.
struct World : Cells {
  explicit World(const Options& options = quiet_options()) : Cells(options) {}
  // By a session that comes for that and goes.
  void add(std::initializer_list<int> to, std::int64_t amount) {
    Session visitor = pool.session();
    Cells::add(visitor, to, amount);
  }
  using Cells::read;
  std::int64_t read(int i) {
    return session.run([&](Transaction& tx) { return read(tx, i); });
  }
};

}  // namespace

TEST_CASE("what a lone session has read is not seen beside what a visitor has made of it") {
  for (const bool writes : {false, true}) {
    World world;
    check_that_none_is_torn(world, 1, writes);
  }
}

TEST_CASE("what a visitor has written, come and gone, is not lost by a lone session's commit") {
  for (const LockTiming locks : {LockTiming::commit, LockTiming::encounter}) {
    for (const CommitPolicy policy :
         {CommitPolicy::speculative, CommitPolicy::conservative, CommitPolicy::volatile_only}) {
      Options options = quiet_options();
      options.policy = policy;
      options.locks = locks;
      World world(options);
      int attempts = 0;
      world.session.run([&](Transaction& tx) {
        const std::int64_t seen = world.read(tx, 0);
        if (++attempts == 1) world.add({0}, 5);
        tx.write(world.cells[1]).value = seen + 1;
      });
      INFO(to_string(policy) << ", locks at " << to_string(locks));
      CHECK(attempts == 2);
      CHECK(world.read(0) == 5);
      CHECK(world.read(1) == 6);
    }
  }
}

TEST_CASE("an update of a lone session that has read nothing starts over when a visitor came") {
  World world;
  int attempts = 0;
  world.session.run([&](Transaction& tx) {
    std::int64_t& value = tx.write(world.cells[0]).value;
    if (++attempts == 1) world.add({0}, 5);
    value += 1;
  });
  CHECK(attempts == 2);
  CHECK(world.read(0) == 6);
}

TEST_CASE("arrivals disturb a transaction once") {
  World world;
  std::vector<Session> visitors;
  int attempts = 0;
  world.session.run([&](Transaction& tx) {
    const std::int64_t seen = world.read(tx, 0);
    ++attempts;
    visitors.push_back(world.pool.session());
    tx.write(world.cells[0]).value = seen + 1;
  });
  CHECK(attempts == 2);
  CHECK(world.read(0) == 1);
}

TEST_CASE("a lone session that has read all it wants returns although a visitor has come") {
  World world;
  int attempts = 0;
  const std::int64_t sum = world.session.run([&](Transaction& tx) {
    const std::int64_t seen = world.read(tx, 0) + world.read(tx, 1);
    if (++attempts == 1) world.add({0, 1}, 5);
    return seen;
  });
  CHECK(attempts == 1);  // it is where it has read the last one
  CHECK(sum == 0);
  CHECK(world.read(0) == 5);
}

TEST_CASE("an exception of a lone session's body comes from what is true") {
  World world;
  int attempts = 0;
  const auto body = [&](Transaction& tx) {
    const std::int64_t seen = world.read(tx, 0);
    if (++attempts == 1) world.add({0}, 5);
    if (seen == 0) throw std::runtime_error("there is nothing");
  };
  world.session.run(body);
  CHECK(attempts == 2);
}

TEST_CASE("a stale pointer of a lone session leads to nothing in the slot that a visitor freed") {
  World world;
  int attempts = 0;
  bool mistaken = false;
  const auto body = [&](Transaction& tx) {
    ++attempts;
    (void)world.read(tx, 0);
    if (attempts == 1) {
      Session visitor = world.pool.session();
      visitor.run([&](Transaction& theirs) { theirs.destroy(world.cells[0]); });
    }
    for (int i = 0; i < 64; ++i) {
      const Ptr<Cell> made = tx.make<Cell>();
      mistaken = mistaken || (made == world.cells[0] && tx.read(world.cells[0]).value == 0);
      tx.destroy(made);
    }
  };
  CHECK(code_of([&] { world.session.run(body); }) == "destroyed_object");
  CHECK(attempts == 2);
  CHECK_FALSE(mistaken);
}

TEST_CASE("what a lone session reads of its own that is not durable yet is waited for") {
  World world;
  const Ticket ticket =
      world.session.run_async([&](Transaction& tx) { tx.write(world.cells[0]).value = 7; });
  CHECK_FALSE(ticket.ready());
  CHECK(world.session.run([&](Transaction& tx) { return world.read(tx, 1); }) == 0);
  CHECK(world.read(0) == 7);
  CHECK(ticket.ready());
}

// What others have left may have larger stamps than what a lone session has in flight itself.
TEST_CASE("what a lone session has in flight is waited for beside what others have left") {
  enum class Way : std::uint8_t { sync, async, exception };
  for (const Way way : {Way::sync, Way::async, Way::exception}) {
    for (const bool own_first : {false, true}) {
      World world;
      Ticket ticket;
      {
        Session visitor = world.pool.session();
        ticket =
            world.session.run_async([&](Transaction& tx) { tx.write(world.cells[0]).value = 7; });
        visitor.run([&](Transaction& tx) { tx.write(world.cells[1]).value = 5; });
      }
      REQUIRE_FALSE(ticket.ready());
      const auto read_both = [&](Transaction& tx) {
        CHECK(world.read(tx, own_first ? 0 : 1) + world.read(tx, own_first ? 1 : 0) == 12);
        if (way == Way::exception) throw std::runtime_error("seen");
      };
      INFO(static_cast<int>(way) << (own_first ? ", its own first" : ", its own last"));
      if (way == Way::sync) {
        world.session.run(read_both);
      } else if (way == Way::async) {
        CHECK_FALSE(world.session.run_async(read_both).ready());
        continue;
      } else {
        CHECK_THROWS_AS(world.session.run(read_both), std::runtime_error);
      }
      CHECK(ticket.ready());
    }
  }
}

TEST_CASE("checkpoints beside a lone session change nothing that it has read, and lose nothing") {
  constexpr int kUpdates = 3000;
  World world;
  std::atomic<bool> done{false};
  std::thread checkpoints([&] {
    while (!done.load()) world.pool.checkpoint();
  });
  for (int i = 0; i < kUpdates; ++i) {
    world.session.run([&](Transaction& tx) {
      const std::int64_t seen = world.read(tx, i % 4);
      tx.write(world.cells[i % 4 + 4]).value = world.read(tx, 7 - i % 4);
      tx.write(world.cells[i % 4]).value = seen + 1;
    });
  }
  done.store(true);
  checkpoints.join();
  CHECK(world.session.statistics().aborts_validation == 0);
  CHECK(world.read(0) + world.read(1) + world.read(2) + world.read(3) == kUpdates);
}

// Sessions come and go all the time, so that each is alone now and then; checkpoints too.
TEST_CASE("no update is lost, and no body sees half of one, while sessions come and go") {
  struct Setting {
    CommitPolicy policy;
    LockTiming locks;
    bool async;
  };
  const Setting settings[] = {
      {CommitPolicy::speculative, LockTiming::commit, false},
      {CommitPolicy::speculative, LockTiming::commit, true},
      {CommitPolicy::speculative, LockTiming::encounter, false},
      {CommitPolicy::conservative, LockTiming::commit, false},
      {CommitPolicy::volatile_only, LockTiming::commit, false},
  };
  constexpr int kThreads = 3;
  constexpr int kVisits = 400;
  constexpr int kUpdates = 5;
  for (const Setting& setting : settings) {
    Options options = tiny_options();
    options.policy = setting.policy;
    options.locks = setting.locks;
    World world(options);
    std::atomic<int> torn{0};
    const auto update = [&](Transaction& tx) {
      const std::int64_t before = world.read(tx, 0);
      if (world.read(tx, 1) != before) torn.fetch_add(1);
      tx.write(world.cells[0]).value = before + 1;
      tx.write(world.cells[1]).value += 1;
    };
    const auto visit = [&](int number) {
      for (int i = 0; i < kVisits; ++i) {
        Session session = world.pool.session();
        for (int j = 0; j < kUpdates; ++j) {
          if (setting.async) {
            (void)session.run_async(update);
          } else {
            session.run(update);
          }
          if ((i + j) % 7 == number) {
            session.run([&](Transaction& tx) {
              if (world.read(tx, 0) != world.read(tx, 1)) torn.fetch_add(1);
            });
          }
        }
      }
    };
    world.session.close();
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(visit, i);
    for (std::thread& thread : threads) thread.join();
    world.session = world.pool.session();
    INFO(to_string(setting.policy)
         << ", locks at " << to_string(setting.locks) << (setting.async ? ", async" : ", sync"));
    CHECK(world.read(0) == kThreads * kVisits * kUpdates);
    CHECK(world.read(1) == kThreads * kVisits * kUpdates);
    CHECK(torn.load() == 0);
  }
}

}  // namespace sp3::test

// Exceptions, tickets, statistics and reopening: what outlives a call, a session or a pool.
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include <sp3/ranged.h>

#include "tests/runtime/one_cell.h"

namespace sp3::test {
namespace {

using Cell = OneCell::Cell;

// The user's own, and not a std::exception.
struct Complaint {
  int number;
};

// The pool as it would be found after the process vanished now.
std::uint64_t value_after_crash(const OneCell& p, const Options& options) {
  TempPath copy;
  write_bytes(copy.path(), read_bytes(p.path.path()));
  Pool pool = Pool::open(copy.path(), options);
  Session session = pool.session();
  const std::uint64_t value =
      session.run([](Transaction& tx) { return tx.read(tx.root<Cell>("cell")).value; });
  session.close();
  pool.close();
  return value;
}

// Behind the back of who has read one of the two.
void write_both(Session& other, Ptr<Cell> one, Ptr<Cell> second) {
  other.run([&](Transaction& tx) {
    tx.write(one).value = 10;
    tx.write(second).value = 10;
  });
}

}  // namespace

TEST_CASE("an exception of the user's aborts the transaction and comes out unchanged") {
  for (const auto locks : {LockTiming::commit, LockTiming::encounter}) {
    Options options = quiet_options();
    options.locks = locks;
    OneCell p(options);
    p.set(1);
    const auto slabs = p.pool.statistics().slabs_used;
    for (int i = 0; i < 300; ++i) {
      try {
        p.session.run([&](Transaction& tx) {
          tx.write(p.cell).value = 99;
          const auto made = tx.make<Cell>(7U);
          tx.set_root("leak", made);
          throw Complaint{i};
        });
        FAIL("no exception");
      } catch (const Complaint& complaint) {
        REQUIRE(complaint.number == i);
      }
      REQUIRE(p.value() == 1);
    }
    CHECK(p.pool.statistics().slabs_used <= slabs + 1);
    CHECK_FALSE(p.session.run([](Transaction& tx) { return tx.root<Cell>("leak"); }));
    p.session.close();
    p.pool.close();
    CHECK(Pool::inspect(p.path.path()).objects == 3);  // two root nodes and the cell
  }
}

TEST_CASE("cancel leaves run as Cancelled and has no effect") {
  OneCell p;
  p.set(1);
  CHECK_THROWS_AS(p.session.run([&](Transaction& tx) {
    tx.write(p.cell).value = 2;
    tx.destroy(p.cell);
    tx.cancel();
  }),
                  Cancelled);
  CHECK_THROWS_AS(p.session.run_async([&](Transaction& tx) { tx.cancel(); }), Cancelled);
  CHECK(p.value() == 1);
}

TEST_CASE("who catches Cancelled inside the body has cancelled all the same") {
  OneCell p;
  p.set(1);
  const auto swallow = [](Transaction& tx) {
    try {
      tx.cancel();
    } catch (const std::exception&) {  // as a handler does that was meant for something else
    }
  };
  CHECK_THROWS_AS(p.session.run([&](Transaction& tx) {
    tx.write(p.cell).value = 2;
    swallow(tx);
  }),
                  Cancelled);
  CHECK_THROWS_AS(p.session.run([&](Transaction& tx) {
    swallow(tx);
    tx.write(p.cell).value = 3;
    FAIL("the transaction went on");
  }),
                  Cancelled);
  CHECK_THROWS_AS(p.session.run_async(swallow), Cancelled);
  CHECK_THROWS_AS(p.session.run([&](Transaction& tx) {
    swallow(tx);
    throw Complaint{1};
  }),
                  Complaint);
  CHECK(p.value() == 1);
  p.set(4);
  CHECK(p.value() == 4);
}

TEST_CASE("who cancels for what he read and did not hold is run again") {
  OneCell p;
  Session other = p.pool.session();
  const auto second = p.session.run([](Transaction& tx) { return tx.make<Cell>(0U); });
  int attempts = 0;
  p.session.run([&](Transaction& tx) {
    ++attempts;
    const std::uint64_t before = tx.read(p.cell).value;
    if (attempts == 1) write_both(other, p.cell, second);
    try {
      if (tx.read(second).value != before) tx.cancel();
    } catch (...) {  // of the conflict, too
      tx.cancel();
    }
  });
  CHECK(attempts == 2);
}

TEST_CASE("an exception before the first read leaves the session usable") {
  OneCell p;
  CHECK_THROWS_AS(p.session.run([](Transaction&) { throw std::runtime_error("early"); }),
                  std::runtime_error);
  p.set(5);
  CHECK(p.value() == 5);
}

TEST_CASE("a conflict that user code swallows is retried all the same") {
  for (const auto locks : {LockTiming::commit, LockTiming::encounter}) {
    Options options = quiet_options();
    options.locks = locks;
    OneCell p(options);
    Session other = p.pool.session();
    const auto second = p.session.run([](Transaction& tx) { return tx.make<Cell>(1U); });
    int attempts = 0;
    int swallowed = 0;
    p.session.run([&](Transaction& tx) {
      ++attempts;
      const std::uint64_t before = tx.read(p.cell).value;
      if (attempts == 1) write_both(other, p.cell, second);
      try {
        (void)tx.read(second);  // newer than our snapshot, and p.cell has changed
      } catch (...) {
        ++swallowed;
      }
      try {
        tx.write(second).value = before + 1;
      } catch (...) {
        ++swallowed;
      }
    });
    CHECK(attempts == 2);
    CHECK(swallowed >= 1);
    CHECK(p.session.run([&](Transaction& tx) { return tx.read(second).value; }) == 11);
    // And one that is turned into the user's own exception.
    attempts = 0;
    CHECK_THROWS_AS(p.session.run([&](Transaction& tx) {
      ++attempts;
      (void)tx.read(p.cell);
      if (attempts == 1) other.run([&](Transaction& theirs) { theirs.write(p.cell).value += 1; });
      throw Complaint{attempts};
    }),
                    Complaint);
    CHECK(attempts == 2);  // the first view was not consistent any more
  }
}

TEST_CASE("a ticket is ready and waited for once") {
  OneCell p;
  Ticket ticket = p.set_async(3);
  CHECK(p.value() == 3);  // read by the session itself, which then waits for it
  CHECK(ticket.ready());
  Ticket second = p.set_async(4);
  CHECK(second.valid());
  CHECK_FALSE(second.ready());
  Ticket moved = std::move(second);
  CHECK_FALSE(second.valid());
  CHECK_FALSE(second.ready());
  CHECK(code_of([&] {
          second.wait();
          return 0;
        }) == "ticket_spent");
  moved.wait();
  CHECK_FALSE(moved.valid());
  CHECK(code_of([&] {
          moved.wait();
          return 0;
        }) == "ticket_spent");
  CHECK(code_of([] {
          Ticket().wait();
          return 0;
        }) == "ticket_spent");
}

TEST_CASE("a ticket may be waited for on any thread, after its session and after its pool") {
  OneCell p;
  Ticket elsewhere = p.set_async(1);
  std::thread([&] { elsewhere.wait(); }).join();
  Ticket after_session = p.set_async(2);
  Ticket after_pool = p.set_async(3);
  p.session.close();
  CHECK(after_session.ready());
  after_session.wait();
  p.pool.close();
  CHECK(after_pool.ready());
  after_pool.wait();
}

TEST_CASE("what a pool does without a log leaves it as it was, closed or not") {
  using Words = Ranged<std::uint64_t>;
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    OneCell p(quiet_options(memory));
    p.set(5);
    const Words words = p.session.run([](Transaction& tx) {
      const Words made = Words::create(tx, 300, 256);
      for (std::uint64_t i = 0; i < 300; ++i) made.set(tx, i, i);
      return made;
    });
    p.session.close();
    p.pool.close();
    const std::uint64_t objects = Pool::inspect(p.path.path()).objects;
    Options options = quiet_options(memory);
    options.policy = CommitPolicy::volatile_only;
    p.pool = Pool::open(p.path.path(), options);
    p.session = p.pool.session();
    for (std::uint64_t round = 1; round <= 40; ++round) {
      p.set_async(100 + round).wait();
      p.session.run([&](Transaction& tx) {
        words.resize(tx, 10 + round * 37 % 600);
        tx.destroy(tx.make<Cell>());
        tx.set_root("another", tx.make<Cell>());
        if (round == 20) tx.destroy(p.cell);
        if (round == 20) p.cell = tx.make<Cell>();
      });
      if (round % 10 == 0) p.pool.checkpoint();
      if (round % 20 == 0) CHECK(value_after_crash(p, quiet_options(memory)) == 5);
    }
    p.session.close();
    p.pool.close();
    CHECK(Pool::check(p.path.path()).sound());
    CHECK(Pool::inspect(p.path.path()).objects == objects);
    p.pool = Pool::open(p.path.path(), quiet_options(memory));
    p.session = p.pool.session();
    p.session.run([&](Transaction& tx) {
      CHECK(tx.read(tx.root<Cell>("cell")).value == 5);
      CHECK_FALSE(tx.root<Cell>("another"));
      REQUIRE(words.size(tx) == 300);
      for (std::uint64_t i = 0; i < 300; ++i) CHECK(words.get(tx, i) == i);
      CHECK(words.check_invariants(tx) == "");
    });
  }
}

TEST_CASE("an asynchronous transaction is visible at once and durable by its ticket") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    const Options options = quiet_options(memory);
    OneCell p(options);
    p.set(1);
    Session other = p.pool.session();
    Ticket ticket = p.set_async(2);
    std::atomic<std::uint64_t> seen{0};
    CHECK_FALSE(ticket.ready());
    if (memory == MemoryKind::file) CHECK(value_after_crash(p, options) == 1);
    // The reader returns only when what it saw is durable, so it helps.
    seen = other.run([&](Transaction& tx) { return tx.read(p.cell).value; });
    CHECK(seen == 2);
    CHECK(ticket.ready());
    CHECK(value_after_crash(p, options) == 2);
    Ticket third = p.set_async(3);
    CHECK_FALSE(third.ready());
    p.session.flush();
    CHECK(third.ready());
    CHECK(value_after_crash(p, options) == 3);
  }
}

TEST_CASE("a transaction that stays open for long is counted once, short ones are not") {
  Options options = quiet_options();
  options.watermark_ms = 5;  // the flusher looks as often
  options.long_transaction_ms = 20;
  OneCell p(options);
  Session other = p.pool.session();
  const auto counted = [&] { return p.pool.statistics().long_transactions; };
  other.run([&](Transaction& tx) {
    (void)tx.read(p.cell);
    const std::uint64_t before = counted();
    for (int ms = 0; ms < 20'000 && counted() == before; ++ms) ::usleep(1000);
    CHECK(counted() == before + 1);
    ::usleep(100'000);
    CHECK(counted() == before + 1);
    CHECK(p.pool.statistics().long_transaction_session == other.id());
  });

  // Neither is the first one of a session, nor are those that are given up.
  options.long_transaction_ms = 400;  // so long that no core is lost
  OneCell q(options);
  Session fresh = q.pool.session();
  fresh.run([&](Transaction& tx) {
    (void)tx.read(q.cell);
    ::usleep(30'000);
  });
  fresh.close();
  {
    const Session idle = q.pool.session();  // is seen, and nothing that it runs
    ::usleep(30'000);
  }
  ::usleep(500'000);
  fresh = q.pool.session();  // of the same number
  fresh.run([&](Transaction& tx) {
    (void)tx.read(q.cell);
    ::usleep(30'000);
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1200);
  while (std::chrono::steady_clock::now() < end) {
    (void)q.value();
    CHECK_THROWS_AS(fresh.run([&](Transaction& tx) {
      (void)tx.read(q.cell);
      ::usleep(10'000);
      throw std::runtime_error("given up");
    }),
                    std::runtime_error);
  }
  CHECK(q.pool.statistics().long_transactions == 0);
}

TEST_CASE("a pool that is closed is free, though another thread has just closed its last session") {
  TempPath path;
  Pool::create(path.path(), kTinyPool, quiet_options()).close();
  for (int round = 0; round < 100; ++round) {
    Pool pool = Pool::open(path.path(), quiet_options());
    std::vector<std::thread> closers;
    for (int i = 0; i < 6; ++i) {
      closers.emplace_back([session = pool.session()]() mutable { session.close(); });
    }
    std::string code = "sessions_open";
    while (code == "sessions_open") {
      code = code_of([&] {
        pool.close();
        return 0;
      });
    }
    CHECK(code == "no error");
    CHECK(code_of([&] {
            Pool::open(path.path(), quiet_options()).close();
            return 0;
          }) == "no error");
    for (std::thread& each : closers) each.join();
  }
}

namespace {

// What a thread that ends in the midst of it had read.
struct Ending {
  OneCell& p;
  Session& session;
  bool changed_meanwhile;
};

void* end_inside_body(void* argument) {
  auto& ending = *static_cast<Ending*>(argument);
  ending.session.run([&](Transaction& tx) {
    (void)tx.read(ending.p.cell);
    if (ending.changed_meanwhile) ending.p.set(7);
    tx.write(tx.make<std::uint64_t>()) = 1;
    ::pthread_exit(nullptr);
  });
  return nullptr;
}

}  // namespace

TEST_CASE("a thread may end inside a body, which then has not been") {
  OneCell p(quiet_options());
  Session session = p.pool.session();
  for (const bool changed_meanwhile : {false, true}) {
    Ending ending{p, session, changed_meanwhile};
    pthread_t thread{};
    REQUIRE(::pthread_create(&thread, nullptr, end_inside_body, &ending) == 0);
    REQUIRE(::pthread_join(thread, nullptr) == 0);
    session.run([&](Transaction& tx) { (void)tx.read(p.cell); });
    p.pool.checkpoint();  // nothing is pinned
  }
  session.close();
}

// More than a session may have in flight, behind a transaction that nobody flushes.
TEST_CASE("thousands of asynchronous transactions behind one that is not durable come to an end") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    for (const bool writes : {true, false}) {
      Options options = quiet_options(memory);
      options.geometry.log_size = std::uint64_t{1} << 20;
      options.async.group_records = 512;
      options.async.group_bytes = 1U << 30;
      OneCell p(options, std::uint64_t{2} << 20);
      Session other = p.pool.session();
      const auto mine = other.run([](Transaction& tx) { return tx.make<Cell>(); });
      Ticket first = p.set_async(1);
      std::vector<Ticket> tickets;
      for (int i = 0; i < 2500; ++i) {
        tickets.push_back(other.run_async([&](Transaction& tx) {
          const std::uint64_t seen = tx.read(p.cell).value;
          if (writes) tx.write(mine).value += seen;
        }));
      }
      CHECK(first.ready());  // there was no room for so many without it
      CHECK(tickets.front().ready());
      if (writes) CHECK_FALSE(tickets.back().ready());
      for (Ticket& ticket : tickets) ticket.wait();
      CHECK(other.run([&](Transaction& tx) { return tx.read(mine).value; }) ==
            (writes ? 2500U : 0U));
    }
  }
}

// So many transactions that its ring has forgotten which was its last when the checkpoint began.
TEST_CASE("a session that runs far ahead of a checkpoint loses nothing") {
  Options options = quiet_options();
  options.geometry = {std::uint64_t{8} << 20, 65536, 4096, 12};
  options.latency = {.nanoseconds = 20'000'000};
  options.async.group_records = 512;
  options.async.group_bytes = 1U << 30;
  OneCell p(options, std::uint64_t{16} << 20);
  std::vector<Session> slow;  // the checkpoint flushes them one after the other
  for (int i = 0; i < 6; ++i) slow.push_back(p.pool.session());
  Session busy = p.pool.session();  // and looks at this one last
  for (Session& session : slow) {
    (void)session.run_async([](Transaction& tx) { (void)tx.make<Cell>(); });
  }
  std::atomic<bool> stop{false};
  std::uint64_t done = 0;
  std::thread runs_ahead([&] {
    for (; !stop; ++done) (void)busy.run_async([&](Transaction& tx) { ++tx.write(p.cell).value; });
  });
  p.pool.checkpoint();
  stop = true;
  runs_ahead.join();
  busy.flush();
  CHECK(value_after_crash(p, quiet_options()) == done);
  p.pool.checkpoint();
  CHECK(value_after_crash(p, quiet_options()) == done);
}

TEST_CASE("a synchronous writing transaction costs one fence and a read-only one none") {
  for (const Mode& mode : all_modes()) {
    if (mode.async) continue;
    INFO(mode.name());
    Options options = quiet_options();
    mode.apply(options);
    options.geometry.log_size = 128 * 1024;
    OneCell p(options);
    const SessionStatistics before = p.session.statistics();
    for (std::uint64_t i = 0; i < 300; ++i) {
      p.set(i);
      (void)p.value();
    }
    const SessionStatistics after = p.session.statistics();
    CHECK(after.writing_commits - before.writing_commits == 300);
    CHECK(after.commits - before.commits == 600);
    CHECK(after.fences - before.fences == 300);
    CHECK(after.helped_fences == before.helped_fences);
    CHECK(after.aborts == after.aborts_log_full);
  }
}

TEST_CASE("asynchronous groups of 32 cost at most a twentieth of a fence per transaction") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    Options options = quiet_options(memory);
    OneCell p(options);
    const SessionStatistics before = p.session.statistics();
    for (std::uint64_t i = 0; i < 1024; ++i) (void)p.set_async(i);
    p.session.flush();
    const SessionStatistics after = p.session.statistics();
    const auto fences = static_cast<double>(after.fences + after.helped_fences - before.fences -
                                            before.helped_fences);
    CHECK(fences / 1024 <= 0.05);
    CHECK(fences >= 1024.0 / 32);
    CHECK(p.value() == 1023);
  }
}

TEST_CASE("the pool's statistics add up its sessions, open and closed") {
  OneCell p;
  const auto before = p.pool.statistics().sessions;
  {
    Session gone = p.pool.session();
    for (int i = 0; i < 5; ++i) gone.run([&](Transaction& tx) { tx.write(p.cell).value += 1; });
  }
  for (int i = 0; i < 4; ++i) p.set(1);
  const PoolStatistics after = p.pool.statistics();
  CHECK(after.sessions.writing_commits - before.writing_commits == 9);
  CHECK(after.slabs_used == 2);
  CHECK(after.log_bytes_total == 64 * 1024);
  CHECK(after.index_bytes > 0);
  p.pool.checkpoint();
  CHECK(p.pool.statistics().checkpoints == after.checkpoints + 1);
  CHECK(p.pool.statistics().checkpoint_objects > after.checkpoint_objects);
  CHECK(p.pool.statistics().log_bytes_used == 0);
}

TEST_CASE("a pool that was abandoned is recovered, one that was closed is not") {
  for (const auto strategy : {RecoveryStrategy::stamp, RecoveryStrategy::dag}) {
    for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
      TempPath path;
      Options options = quiet_options(memory);
      options.recovery.strategy = strategy;
      CHECK(in_child([&]() -> int {
              Pool pool = Pool::create(path.path(), kTinyPool, options);
              Session session = pool.session();
              session.run([](Transaction& tx) { tx.set_root("cell", tx.make<Cell>(42U)); });
              ::_exit(7);
            }) == 7);
      Pool pool = Pool::open(path.path(), options);
      CHECK_FALSE(pool.recovery_report().was_clean);
      CHECK(pool.recovery_report().strategy == strategy);
      CHECK(pool.recovery_report().replayed == 2);
      Session session = pool.session();
      CHECK(session.run([](Transaction& tx) { return tx.read(tx.root<Cell>("cell")).value; }) ==
            42);
      session.close();
      const auto generation = pool.info().generation;
      pool.close();
      CHECK(Pool::check(path.path()).sound());
      pool = Pool::open(path.path(), options);
      CHECK(pool.recovery_report().was_clean);
      CHECK(pool.recovery_report().checkpoint_floor == pool.info().checkpoint_floor);
      CHECK(pool.recovery_report().checkpoint_floor > 0);
      CHECK(pool.recovery_report().largest_stamp >= pool.info().checkpoint_floor);
      CHECK(pool.info().generation == generation + 1);
    }
  }
}

TEST_CASE("a pool destroyed while sessions are open goes on, and is recovered later") {
  TempPath path;
  const Options options = quiet_options();
  {
    Session session = [&] {
      Pool pool = Pool::create(path.path(), kTinyPool, options);
      return pool.session();
    }();
    session.run([](Transaction& tx) { tx.set_root("cell", tx.make<Cell>(6U)); });
    CHECK(code_of([&] { return Pool::open(path.path(), options); }) == "pool_in_use");
  }
  Pool pool = Pool::open(path.path(), options);
  CHECK_FALSE(pool.recovery_report().was_clean);
  Session session = pool.session();
  CHECK(session.run([](Transaction& tx) { return tx.read(tx.root<Cell>("cell")).value; }) == 6);
}

TEST_CASE("info may be asked for while checkpoints run") {
  Options options = tiny_options();
  options.checkpoint.interval_ms = 1;
  OneCell p(options);
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};
  std::thread asker([&] {
    while (!stop) {
      if (error_of([&] { return p.pool.info(); })) ++failed;
      (void)p.pool.statistics();
    }
  });
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto made = p.session.run([&](Transaction& tx) { return tx.make<Cell>(i); });
    p.pool.checkpoint();
    p.session.run([&](Transaction& tx) { tx.destroy(made); });
  }
  stop = true;
  asker.join();
  CHECK(failed == 0);
}

}  // namespace sp3::test

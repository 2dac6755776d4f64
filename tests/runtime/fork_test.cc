// fork: what a child may do with a pool that it has inherited.
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <sched.h>

#include <catch2/catch.hpp>

#include "pool/pool_file.h"
#include "tests/pool/support.h"
#include "tests/runtime/failing.h"

namespace sp3::test {

TEST_CASE("a child made by fork cannot use what it inherited, and ends without hanging") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    TempPath path;
    auto pool = std::make_unique<Pool>(Pool::create(path.path(), kTinyPool, quiet_options(memory)));
    auto session = std::make_unique<Session>(pool->session());
    const auto cell = make_cell(*session);
    Ticket ticket = session->run_async([&](Transaction& tx) { tx.write(cell).value = 4; });
    const int code = in_child(
        [&] {
          int failed = 0;
          const auto want_forked = [&](int bit, const std::string& found) {
            if (found != "forked") failed |= 1 << bit;
          };
          want_forked(0, outcome([&] { session->run([](Transaction&) {}); }));
          want_forked(1, outcome([&] { (void)session->run_async([](Transaction&) {}); }));
          want_forked(2, outcome([&] { session->flush(); }));
          want_forked(3, outcome([&] { session->close(); }));
          want_forked(4, outcome([&] { (void)pool->session(); }));
          want_forked(5, outcome([&] { pool->checkpoint(); }));
          want_forked(6, outcome([&] { pool->close(); }));
          if (outcome([&] { (void)Pool::open(path.path(), quiet_options(memory)); }) !=
              "pool_in_use") {
            failed |= 1 << 7;
          }
          return failed;
        },
        4);
    CHECK(code == 0);
    // Its ticket is the parent's too.
    CHECK(in_child([&] { return outcome([&] { ticket.wait(); }) == "forked" ? 0 : 1; }, 4) == 0);
    // Destroying the handles, as a child that returns from main does with static ones.
    CHECK(in_child(
              [&] {
                session.reset();
                pool.reset();
                return 0;
              },
              4) == 0);
    CHECK(in_child(
              [&] {
                pool.reset();
                session.reset();
                return 0;
              },
              4) == 0);
    ticket.wait();
    CHECK(read_cell(*session) == 4);
    CHECK(outcome([&] { (void)Pool::open(path.path(), quiet_options(memory)); }) == "pool_in_use");
    session->close();
    pool->close();
    CHECK(Pool::check(path.path()).sound());
    CHECK(Pool::inspect(path.path()).clean);
  }
}

TEST_CASE("a child that was forked inside a body does not commit") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    for (const bool makes : {false, true}) {
      TempPath path;
      Pool pool = Pool::create(path.path(), kTinyPool, quiet_options(memory));
      Session session = pool.session();
      const auto cell = make_cell(session);
      pid_t child = -1;
      // The child leaves by the error; what is behind it is the parent's alone.
      const std::string found = outcome([&] {
        session.run([&](Transaction& tx) {
          if (child < 0) child = ::fork();
          ++tx.write(cell).value;
          if (makes) static_cast<void>(tx.make<Cell>());
        });
      });
      if (child == 0) ::_exit(found == "forked" ? 0 : 1);
      int status = -1;
      REQUIRE(::waitpid(child, &status, 0) == child);
      CHECK(status == 0);
      CHECK(found == "no error");
      CHECK(read_cell(session) == 1);
      session.close();
      pool.close();
      CHECK(Pool::check(path.path()).sound());
    }
  }
}

// What it had read was not durable yet: to make it so is the parent's.
TEST_CASE("a child that was forked inside a reading body waits for nothing") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    for (const bool throws : {false, true}) {
      TempPath path;
      Pool pool = Pool::create(path.path(), kTinyPool, quiet_options(memory));
      Session session = pool.session();
      Session other = pool.session();
      const auto cell = make_cell(session);
      Ticket ticket = other.run_async([&](Transaction& tx) { ++tx.write(cell).value; });
      pid_t child = -1;
      std::string found;
      try {
        found = outcome([&] {
          session.run([&](Transaction& tx) {
            if (child < 0) child = ::fork();
            static_cast<void>(tx.read(cell).value);
            if (child == 0 && throws) throw std::runtime_error("its own");
          });
        });
      } catch (const std::runtime_error&) {
        found = "its own";
      }
      if (child == 0) ::_exit(found == (throws ? "its own" : "forked") ? 0 : 1);
      int status = -1;
      REQUIRE(::waitpid(child, &status, 0) == child);
      CHECK(status == 0);
      CHECK(found == "no error");
      ticket.wait();
      session.close();
      other.close();
      pool.close();
      CHECK(Pool::check(path.path()).sound());
    }
  }
}

TEST_CASE("a child destroys its session whatever other threads of the parent were doing") {
  OnePool p;
  auto session = std::make_unique<Session>(p.pool.session());
  make_cell(*session);
  std::atomic<bool> stop{false};
  // Statistics lock what versions are given back to, as a session does in its end.
  std::thread other([&] {
    while (!stop) static_cast<void>(p.pool.statistics());
  });
  int failed = 0;
  for (int i = 0; i < 100; ++i) {
    failed += in_child(
                  [&] {
                    session.reset();
                    return 0;
                  },
                  4) == 0
                  ? 0
                  : 1;
  }
  stop = true;
  other.join();
  CHECK(failed == 0);
}

TEST_CASE("a child of a pool with background threads ends without hanging") {
  TempPath path;
  Options options = tiny_options();
  options.checkpoint.interval_ms = 1;
  auto pool = std::make_unique<Pool>(Pool::create(path.path(), kTinyPool, options));
  auto session = std::make_unique<Session>(pool->session());
  const auto cell = make_cell(*session);
  for (int i = 0; i < 20; ++i) {
    session->run([&](Transaction& tx) { tx.write(cell).value += 1; });
    REQUIRE(in_child(
                [&] {
                  session.reset();
                  pool.reset();
                  return 0;
                },
                4) == 0);
  }
  CHECK(read_cell(*session) == 20);
}

TEST_CASE("a child is told that the pool is its parent's by every call, whatever the parent held") {
  TempPath path;
  Pool pool = Pool::create(path.path(), kTinyPool, quiet_options());
  std::atomic<bool> stop = false;
  std::thread other([&] {
    while (!stop) (void)pool.statistics();
  });
  int failed = 0;
  for (int i = 0; i < 100; ++i) {
    failed += in_child(
        [&] {
          const std::string codes = outcome([&] { (void)pool.info(); }) + " " +
                                    outcome([&] { (void)pool.statistics(); }) + " " +
                                    outcome([&] { pool.checkpoint(); }) + " " +
                                    outcome([&] { (void)pool.session(); });
          return codes == "forked forked forked forked" ? 0 : 1;
        },
        4);
  }
  stop = true;
  other.join();
  CHECK(failed == 0);
}

TEST_CASE("an inherited pool does not keep the parent's file locked") {
  TempPath path;
  Pool pool = Pool::create(path.path(), kTinyPool, quiet_options());
  int stop[2];
  REQUIRE(::pipe(stop) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(stop[1]);
    char byte = 0;
    (void)!::read(stop[0], &byte, 1);  // until the parent closes its end
    ::_exit(0);
  }
  pool.close();
  CHECK(outcome([&] { Pool::open(path.path(), quiet_options()).close(); }) == "no error");
  ::close(stop[1]);
  ::close(stop[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
}

// As the first process of a container, and what it starts in another.
TEST_CASE("a child with the parent's process ID leaves the file locked") {
  const TempPath path;
  const auto first_of_its_own = [](const std::function<int()>& body) {
    return ::unshare(CLONE_NEWPID) == 0 ? in_child(body) : 99;
  };
  CHECK(in_child([&] {
          const bool may = ::unshare(::geteuid() == 0 ? 0 : CLONE_NEWUSER) == 0;
          if (!may || ::unshare(CLONE_NEWPID) != 0) return 0;  // not let
          return in_child([&] {
            auto file = pool::PoolFile::create(path.path(), kTinyPool, quiet_options());
            const int child = first_of_its_own([&] {
              file.reset();
              return ::getpid() == 1 ? 0 : 1;
            });
            if (child != 0) return child;
            const std::string found = code_of([&] {
              (void)pool::PoolFile::open(path.path(), quiet_options(),
                                         pool::PoolFile::Access::read_write);
            });
            return found == "pool_in_use" ? 0 : 2;
          });
        }) == 0);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // which hang themselves
// Somebody of the parent's holds at any time what giving back a large object's slot locks.
TEST_CASE("a child that was forked inside a body gives back nothing") {
  struct Large {
    std::array<std::byte, 40'000> bytes;
  };
  TempPath path;
  Options options;
  options.memory = MemoryKind::emulated;
  Pool pool = Pool::create(path.path(), 64 << 20, options);
  Session session = pool.session();
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) (void)pool.statistics();
  });
  for (int round = 0; round < 200; ++round) {
    pid_t child = -1;
    const std::string found = outcome([&] {
      session.run([&](Transaction& tx) {
        std::array<Ptr<Large>, 8> made;
        for (Ptr<Large>& each : made) each = tx.make<Large>();
        if (child < 0) child = ::fork();
        if (child == 0) return;
        for (const Ptr<Large>& each : made) tx.destroy(each);
      });
    });
    if (child == 0) ::_exit(found == "forked" ? 0 : 1);
    CHECK(wait_for(child, 20) == 0);
    CHECK(found == "no error");
  }
  stop = true;
  busy.join();
}
#endif

}  // namespace sp3::test

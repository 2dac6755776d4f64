// fork, and disks that fail: what the process that holds a pool cannot choose.
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>

#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "emu/memory.h"
#include "pool/pool_file.h"
#include "tests/pool/support.h"
#include "tests/runtime/one_pool.h"

namespace sp3::test {
namespace {

struct Cell {
  std::uint64_t value = 0;
};

Ptr<Cell> make_cell(Session& session) {
  return session.run([](Transaction& tx) {
    const auto cell = tx.make<Cell>();
    tx.set_root("cell", cell);
    return cell;
  });
}

std::uint64_t read_cell(Session& session) {
  return session.run([](Transaction& tx) { return tx.read(tx.root<Cell>("cell")).value; });
}

// Fails every fence from now on, until it is destroyed.
struct BrokenDisk {
  explicit BrokenDisk(int error = EIO, std::uint64_t countdown = 1) {
    emu::inject_io_error(error, countdown);
  }
  ~BrokenDisk() { emu::inject_io_error(0, 0); }
};

template <class Call>
std::string outcome(Call&& call) {
  return code_of([&] {
    call();
    return 0;
  });
}

}  // namespace

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

TEST_CASE("after a failed flush nothing is promised any more, and reopening recovers") {
  for (const Mode& mode : all_modes()) {
    if (mode.async) continue;
    INFO(mode.name());
    TempPath path;
    Options options = quiet_options();
    mode.apply(options);
    {
      Pool pool = Pool::create(path.path(), kTinyPool, options);
      Session session = pool.session();
      Session other = pool.session();
      const auto cell = make_cell(session);
      for (int i = 0; i < 5; ++i) session.run([&](Transaction& tx) { tx.write(cell).value += 1; });
      Ticket ticket = session.run_async([&](Transaction& tx) { tx.write(cell).value += 1; });
      {
        const BrokenDisk broken;
        const auto error = error_of([&] {
          other.run([&](Transaction& tx) { tx.write(cell).value += 1; });
          return 0;
        });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::outcome_unknown);
        CHECK(error->facts().path == path.string());
        CHECK_FALSE(error->facts().found.empty());
      }
      // The disk works again; what is known does not come back.
      CHECK(outcome([&] { ticket.wait(); }) == "outcome_unknown");
      CHECK(outcome([&] { session.run([](Transaction&) {}); }) == "outcome_unknown");
      CHECK(outcome([&] { (void)session.run_async([](Transaction&) {}); }) == "outcome_unknown");
      CHECK(outcome([&] { session.flush(); }) == "outcome_unknown");
      CHECK(outcome([&] { pool.checkpoint(); }) == "outcome_unknown");
      CHECK(outcome([&] { (void)pool.session(); }) == "outcome_unknown");
      CHECK(outcome([&] { session.close(); }) == "outcome_unknown");
      CHECK(outcome([&] { other.close(); }) == "outcome_unknown");
      CHECK(outcome([&] { pool.close(); }) == "outcome_unknown");
      CHECK_FALSE(pool.is_open());
    }
    Pool pool = Pool::open(path.path(), options);
    Session session = pool.session();
    const std::uint64_t value = read_cell(session);
    CHECK(value >= 5);
    CHECK(value <= 7);
    session.run([&](Transaction& tx) { tx.write(tx.root<Cell>("cell")).value = 70; });
    CHECK(read_cell(session) == 70);
  }
}

TEST_CASE("every waiter learns of a failed flush") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    TempPath path;
    Options options = tiny_options(memory);
    Pool pool = Pool::create(path.path(), kTinyPool, options);
    Ptr<Cell> cell;
    {
      Session session = pool.session();
      cell = make_cell(session);
    }
    std::atomic<std::uint64_t> acknowledged{0};
    std::atomic<int> unknown{0};
    {
      const BrokenDisk broken(ENOSPC, 60);
      on_threads(4, [&](int) {
        const std::string code = outcome([&] {
          Session session = pool.session();
          for (int i = 0; i < 100'000; ++i) {
            session.run([&](Transaction& tx) { tx.write(cell).value += 1; });
            ++acknowledged;
          }
        });
        if (code == "outcome_unknown") ++unknown;
      });
    }
    CHECK(unknown == 4);
    CHECK(outcome([&] { pool.close(); }) == "outcome_unknown");
    Pool again = Pool::open(path.path(), options);
    Session session = again.session();
    CHECK(read_cell(session) >= acknowledged);
    CHECK(read_cell(session) <= acknowledged + 4);
  }
}

TEST_CASE("a checkpoint that fails is reported and costs nothing that was acknowledged") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    for (std::uint64_t countdown = 1; countdown <= 4; ++countdown) {
      TempPath path;
      const Options options = quiet_options(memory);
      {
        Pool pool = Pool::create(path.path(), kTinyPool, options);
        Session session = pool.session();
        const auto cell = make_cell(session);
        session.run([&](Transaction& tx) { tx.write(cell).value = 5; });
        {
          const BrokenDisk broken(EIO, countdown);
          CHECK(outcome([&] { pool.checkpoint(); }) == "outcome_unknown");
        }
        CHECK(outcome([&] { session.close(); }) == "outcome_unknown");
      }
      Pool pool = Pool::open(path.path(), options);
      Session session = pool.session();
      CHECK(read_cell(session) == 5);
    }
  }
}

TEST_CASE("close reports a checkpoint that fails, and the next open recovers") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    for (std::uint64_t countdown = 1; countdown <= 4; ++countdown) {
      TempPath path;
      const Options options = quiet_options(memory);
      Pool pool = Pool::create(path.path(), kTinyPool, options);
      Session session = pool.session();
      const auto cell = make_cell(session);
      session.run([&](Transaction& tx) { tx.write(cell).value = 6; });
      session.close();
      {
        const BrokenDisk broken(EIO, countdown);
        CHECK(outcome([&] { pool.close(); }) == "outcome_unknown");
      }
      CHECK_FALSE(pool.is_open());
      pool = Pool::open(path.path(), options);
      session = pool.session();
      CHECK(read_cell(session) == 6);
      session.close();
      pool.close();
    }
  }
}

TEST_CASE("a session stays open inside its own body, also when the pool has failed") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    OnePool p(quiet_options(memory));
    const auto cell = make_cell(p.session);
    Session other = p.pool.session();
    std::atomic<bool> failed{false};
    std::atomic<bool> looked{false};
    std::string from_elsewhere;
    std::thread elsewhere([&] {
      while (!failed) std::this_thread::yield();
      from_elsewhere = outcome([&] { p.session.close(); });
      looked = true;
    });
    const std::string ended = outcome([&] {
      p.session.run([&](Transaction& tx) {
        const std::uint64_t before = tx.read(cell).value;
        {
          const BrokenDisk broken;
          CHECK(outcome([&] { other.run([](Transaction& second) { second.make<Cell>(); }); }) ==
                "outcome_unknown");
        }
        failed = true;
        while (!looked) std::this_thread::yield();
        CHECK(outcome([&] { p.session.close(); }) == "nested_transaction");
        CHECK(outcome([&] { p.session.flush(); }) == "nested_transaction");
        CHECK(p.session.is_open());
        tx.write(cell).value = before + 1;
      });
    });
    // The fence of its own lines succeeds, where lines are fenced one by one.
    CHECK(ended == (memory == MemoryKind::emulated ? "no error" : "outcome_unknown"));
    elsewhere.join();
    CHECK(from_elsewhere == "session_busy");
    CHECK(outcome([&] { other.close(); }) == "outcome_unknown");
    CHECK(outcome([&] { p.session.close(); }) == "outcome_unknown");
    CHECK(outcome([&] { p.pool.close(); }) == "outcome_unknown");
  }
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

TEST_CASE("a ticket says what its failed pool knew of it, also when that is gone") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    Ticket durable;
    Ticket lost;
    {
      OnePool p(quiet_options(memory));
      const auto cell = make_cell(p.session);
      durable = p.session.run_async([&](Transaction& tx) { tx.write(cell).value = 1; });
      p.session.flush();
      lost = p.session.run_async([&](Transaction& tx) { tx.write(cell).value = 2; });
      const BrokenDisk broken;
      CHECK(outcome([&] { p.session.close(); }) == "outcome_unknown");
      CHECK(outcome([&] { p.pool.close(); }) == "outcome_unknown");
    }
    const OnePool next;  // may use the memory of the one that is gone
    CHECK(durable.ready());
    CHECK_FALSE(lost.ready());
    CHECK(outcome([&] { durable.wait(); }) == "no error");
    CHECK(outcome([&] { lost.wait(); }) == "outcome_unknown");
  }
}

#if !defined(__SANITIZE_THREAD__)  // which has a thread of its own
TEST_CASE("a pool whose background cannot be started is an error, and is not left behind") {
  const TempPath path;
  CHECK(in_child([&]() -> int {
          // A limit binds all users but one.
          const rlimit none{1, 1};
          if (::geteuid() == 0 && ::setuid(65534) != 0) return 2;
          if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 3;
          const auto create = [&] {
            return Pool::create(path.path(), kTinyPool, quiet_options(MemoryKind::emulated));
          };
          return code_of(create) == "io_error" && !exists(path.path()) ? 0 : 1;
        }) == 0);
}
#endif

TEST_CASE("what the destructor of a session could not say, closing the pool says") {
  TempPath path;
  Pool pool = Pool::create(path.path(), kTinyPool, quiet_options());
  {
    Session session = pool.session();
    const auto cell = make_cell(session);
    Ticket ticket = session.run_async([&](Transaction& tx) { tx.write(cell).value = 1; });
    emu::inject_io_error(EIO, 1);
  }
  emu::inject_io_error(0, 0);
  CHECK(outcome([&] { pool.close(); }) == "outcome_unknown");
}

TEST_CASE("a pool goes no further when a bitmap that it mended is not made durable") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    OnePool p(quiet_options(memory));
    make_cell(p.session);
    p.session.close();
    p.pool.close();
    {
      const auto file =
          pool::PoolFile::open(p.path.path(), Options{}, pool::PoolFile::Access::read_only);
      const pool::Layout& layout = file->layout();
      const pool::SlabDirectory directory = file->directory();
      for (std::uint32_t slab = 1; slab < layout.slabs; ++slab) {
        const pool::SlabRecord& record = directory.record(slab);
        if (record.live == 0) continue;
        const pool::SlabShape shape = pool::slab_shape(layout.slab_size, record.slot_size);
        const std::byte wrong[] = {std::byte{0xaa}};
        write_file(p.path.path(), wrong, layout.slab_offset(slab) + shape.bitmap(1));
      }
    }

    p.pool = Pool::open(p.path.path(), quiet_options(memory));
    p.session = p.pool.session();
    {
      const BrokenDisk broken;
      CHECK(outcome([&] { read_cell(p.session); }) == "io_error");
    }
    // The disk is well again, and what it holds of the bitmap is not known.
    const auto writes = [&] {
      p.session.run([](Transaction& tx) { tx.write(tx.root<Cell>("cell")).value = 5; });
    };
    CHECK(outcome(writes) == "outcome_unknown");
    CHECK(outcome([&] { p.pool.checkpoint(); }) == "outcome_unknown");
    CHECK(outcome([&] { p.session.close(); }) == "outcome_unknown");
    CHECK(outcome([&] { p.pool.close(); }) == "outcome_unknown");

    CHECK_FALSE(Pool::inspect(p.path.path()).clean);
    p.pool = Pool::open(p.path.path(), quiet_options(memory));
    p.session = p.pool.session();
    CHECK(read_cell(p.session) == 0);
    writes();
    p.session.close();
    p.pool.close();
    CHECK(Pool::check(p.path.path()).sound());
  }
}

TEST_CASE("opening on a disk that fails is an error, and opening later succeeds") {
  TempPath path;
  const Options options = quiet_options(MemoryKind::file);
  CHECK(in_child([&]() -> int {
          Pool pool = Pool::create(path.path(), kTinyPool, options);
          Session session = pool.session();
          session.run([](Transaction& tx) { tx.set_root("cell", tx.make<Cell>(12U)); });
          ::_exit(3);
        }) == 3);
  std::uint64_t countdown = 1;
  for (; countdown <= 20; ++countdown) {
    const BrokenDisk broken(EIO, countdown);
    const std::string code = outcome([&] { (void)Pool::open(path.path(), options); });
    if (code == "no error") break;
    INFO("countdown " << countdown << ": " << code);
    CHECK((code == "io_error" || code == "outcome_unknown"));
  }
  CHECK(countdown >= 4);
  CHECK(countdown < 20);
  Pool pool = Pool::open(path.path(), options);
  Session session = pool.session();
  CHECK(read_cell(session) == 12);
}

TEST_CASE("creating on a disk that fails leaves nothing behind") {
  for (std::uint64_t countdown = 1; countdown <= 4; ++countdown) {
    TempPath path;
    const BrokenDisk broken(ENOSPC, countdown);
    const std::string code = outcome(
        [&] { (void)Pool::create(path.path(), kTinyPool, quiet_options(MemoryKind::file)); });
    INFO("countdown " << countdown << ": " << code);
    CHECK((code == "no_space" || code == "io_error" || code == "outcome_unknown"));
    CHECK_FALSE(std::filesystem::exists(path.path()));
  }
}

}  // namespace sp3::test

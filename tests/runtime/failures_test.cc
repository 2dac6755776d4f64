// Disks and systems that fail: what the process that holds a pool cannot choose.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "log/format.h"
#include "pool/pool_file.h"
#include "tests/pool/support.h"
#include "tests/runtime/failing.h"
#include "tests/runtime/newest_run.h"

namespace sp3::test {

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
      CHECK_FALSE(ticket.valid());
      CHECK(outcome([&] { ticket.wait(); }) == "ticket_spent");
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

// The other has gone, but what it left is not known to be durable.
TEST_CASE("a session that the failure of its pool leaves alone is told of it") {
  OnePool p;
  Session other = p.pool.session();
  const auto cell = make_cell(p.session);
  const BrokenDisk broken;
  CHECK(p.code([&](Transaction& tx) {
    if (other.is_open()) {
      (void)other.run_async([&](Transaction& theirs) { theirs.write(cell).value = 1; });
      CHECK(outcome([&] { other.close(); }) == "outcome_unknown");
    }
    return tx.read(cell).value;
  }) == "outcome_unknown");
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

namespace {

// A session with two records in its log, and so many objects that a checkpoint reads the log rather
// than all entries.
struct TwoRecords : OnePool {
  explicit TwoRecords(const Options& options) : OnePool(options) {
    cell = make_cell(session);
    for (int i = 0; i < 40; ++i) {
      session.run([](Transaction& tx) {
        for (int j = 0; j < 50; ++j) tx.make<Cell>();
      });
    }
    pool.checkpoint();
    write();
    write();  // vouches for the first
  }
  void write() {
    session.run([&](Transaction& tx) { ++tx.write(cell).value; });
  }
  // As a stray write to the file would: the record is not the one that belongs there any more.
  void damage_record() {
    const std::uint64_t newest = newest_run(read_bytes(path.path()), Options{});
    if (newest == 0) return;                      // a checkpoint has let go of it
    const std::byte wrong[] = {std::byte{0x40}};  // no LSN gets there
    write_file(path.path(), wrong,
               newest + sizeof(log::SegmentHeader) + offsetof(log::RecordHeader, lsn) + 7);
  }
  Ptr<Cell> cell;
};

}  // namespace

// It ended the process.
TEST_CASE("a log that is damaged under an open pool is an error of the checkpoint that reads it") {
  TwoRecords p(quiet_options());
  p.damage_record();
  const auto error = error_of([&] {
    p.pool.checkpoint();
    return 0;
  });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::damaged_log);
  CHECK(error->facts().path == p.path.string());
  CHECK_THAT(error->what(), Catch::Contains("session 1"));
  CHECK_THAT(error->facts().wanted, Catch::Contains("LSN"));
  CHECK_THAT(error->facts().found, Catch::Contains("LSN"));
  // What failed is known to all who come later.
  const auto later = error_of([&] {
    p.write();
    return 0;
  });
  REQUIRE(later);
  CHECK(later->code() == ErrorCode::outcome_unknown);
  CHECK(later->facts().found == error->what());
  CHECK(outcome([&] { p.session.close(); }) == "outcome_unknown");
  CHECK(outcome([&] { p.pool.close(); }) == "outcome_unknown");
  CHECK(outcome([&] { (void)Pool::open(p.path.path(), quiet_options()); }) == "damaged_log");
}

TEST_CASE("why a checkpoint in the background failed is told to whoever calls next") {
  Options options = quiet_options();
  options.checkpoint.background = true;
  options.checkpoint.interval_ms = 0;  // only when the log has grown
  options.checkpoint.log_percent = 10;
  TwoRecords p(options);
  std::optional<Error> error;
  for (int i = 0; i < 5000 && !error; ++i) {
    // Again, since a checkpoint that was under way may have let go of it.
    if (i % 50 == 0) p.damage_record();
    error = error_of([&] {
      p.write();
      return 0;
    });
    ::usleep(1000);
  }
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::outcome_unknown);
  CHECK_THAT(error->facts().found, Catch::Contains("session 1"));
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

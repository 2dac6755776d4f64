// Which generation comes into force where the log is newer than the superblocks.
#include <catch2/catch.hpp>

#include "pool/limits.h"
#include "recovery/finish.h"
#include "recovery/inspect_log.h"
#include "tests/recovery/support.h"
#include "tests/support/pools.h"

namespace sp3::test {
namespace {

constexpr std::uint64_t kBefore = 7;      // generation of the superblocks
constexpr std::uint64_t kCheckpoint = 3;  // and their checkpoint number

// By session 2: an object in slab 2.
void append_make(SyntheticPool& pool, Stamp stamp) {
  const auto shape = pool::slab_shape(pool.layout.slab_size, 48);
  const std::vector<std::byte> object(48, std::byte{9});
  RecordBuilder builder;
  builder.add_make(pool.layout.slab_offset(2) + shape.data, {5, 44, 48}, object.data(), 48);
  pool.append(2, builder, stamp);
}

// A pool whose superblocks are older than its log, by one generation and two checkpoints: a backup,
// or those of a disk that lost the writes of both. The log holds one whole record.
std::unique_ptr<pool::PoolFile> open_with_newer_log(SyntheticPool& pool) {
  pool.superblock.fixed.generation = kBefore + 1;
  pool.superblock.fixed.checkpoint_number = kCheckpoint + 2;
  append_make(pool, 10);
  pool.superblock.fixed.generation = kBefore;
  pool.superblock.fixed.checkpoint_number = kCheckpoint;
  return pool.open();
}

}  // namespace

TEST_CASE("a log that was given up stays given up") {
  SyntheticPool pool;
  auto file = open_with_newer_log(pool);
  CHECK(code_of([&] { return recovery::recover(*file, {}); }) == "damaged_log");
  RecoveryOptions options;
  options.accept_loss = true;
  const auto result = recovery::recover(*file, options);
  CHECK_FALSE(result.report.damage.empty());
  CHECK(result.superblock.fixed.generation == kBefore + 2);
  CHECK(result.superblock.fixed.checkpoint_number == kCheckpoint + 3);
  file = nullptr;
  file = pool.reopen();
  const auto again = recovery::recover(*file, {});
  CHECK(again.report.records == 0);
  CHECK(again.report.damage.empty());
}

TEST_CASE("a header that names an impossible generation does not use up those that are left") {
  SyntheticPool pool;
  pool.append_simple(1, 5);
  log::SegmentHeader header;
  header.generation = ~std::uint64_t{0};
  header.checkpoint_number = ~std::uint64_t{0};
  header.first_lsn = 1;
  header.segments = 1;
  header.session = 1;
  pool.put_header(header, 0);
  auto file = pool.open();
  RecoveryOptions options;
  options.accept_loss = true;
  const auto result = recovery::recover(*file, options);
  CHECK(result.superblock.fixed.generation == kBefore + 1);
  CHECK(result.superblock.fixed.checkpoint_number == kCheckpoint + 1);
}

TEST_CASE("a header of a generation that no pool gets to is none, now and after") {
  for (const std::uint64_t beyond : {log::kFarthest + 100, std::uint64_t{1} << 40}) {
    SyntheticPool pool;
    pool.superblock.fixed.generation = kBefore;
    append_make(pool, 5);
    log::SegmentHeader header;
    header.generation = kBefore + beyond;
    header.first_lsn = 1;
    header.segments = 1;
    header.session = 1;
    pool.put_header(header, pool.layout.segments - 1);
    for (int time = 0; time < 2; ++time) {
      auto file = time == 0 ? pool.open() : pool.reopen();
      const auto result = recovery::recover(*file, {});
      CHECK(result.report.damage.empty());
      CHECK(result.report.records == (time == 0 ? 1 : 0));
    }
  }
}

// Of a backup, say. Its log goes on in the generation that would come next, and was once replayed
// behind what that had acknowledged.
TEST_CASE("closed superblocks that are older than the log are not believed") {
  struct Cell {
    std::uint64_t value = 0;
  };
  TempPath path;
  Pool pool = Pool::create(path.path(), kTinyPool, quiet_options());
  {
    Session session = pool.session();
    session.run([](Transaction& tx) { tx.set_root("cell", tx.make<Cell>()); });
  }
  pool.close();
  const auto closed = read_bytes(path.path());
  // What a process leaves that dies.
  const auto crash_with = [&](std::uint64_t value, int increments) {
    Options options = quiet_options();
    options.recovery.accept_loss = true;
    std::vector<char> left;
    {
      Pool again = Pool::open(path.path(), options);
      Session session = again.session();
      for (int i = 0; i < increments; ++i) {
        session.run([&](Transaction& tx) {
          auto& cell = tx.write(tx.root<Cell>("cell"));
          cell.value = value == 0 ? cell.value + 1 : value;
        });
      }
      left = read_bytes(path.path());
    }
    write_bytes(path.path(), left);
  };
  crash_with(0, 100);
  auto bytes = read_bytes(path.path());
  const std::size_t superblocks =
      2 * pool::superblock_bytes(quiet_options().geometry.max_sessions + pool::kOwnSessions);
  std::copy_n(closed.begin(), superblocks, bytes.begin());
  write_bytes(path.path(), bytes);
  CHECK(code_of([&] { return Pool::open(path.path(), quiet_options()); }) == "damaged_log");
  CHECK(Pool::check(path.path()).damage.size() == 1);
  CHECK((read_bytes(path.path()) == bytes));
  // What is acknowledged once the loss was accepted is not mixed with what was given up.
  crash_with(5000, 1);
  pool = Pool::open(path.path(), quiet_options());
  {
    Session session = pool.session();
    CHECK(session.run([](Transaction& tx) { return tx.read(tx.root<Cell>("cell")).value; }) ==
          5000);
  }
}

// The session that took segment 0 had not stored anything yet.
TEST_CASE("a later log is found in whatever segment it is") {
  for (const std::uint32_t segment : {0U, 5U}) {
    SyntheticPool pool;
    pool.superblock.fixed.state = static_cast<std::uint32_t>(pool::State::clean);
    log::SegmentHeader header;
    header.generation = pool.superblock.fixed.generation + 1;
    header.first_lsn = 1;
    header.segments = 1;
    header.session = 1;
    header.checkpoint_number = pool.superblock.fixed.checkpoint_number;
    pool.put_header(header, segment);
    if (segment != 0) {  // one that cannot be true, but is of the past
      header.generation = pool.superblock.fixed.generation;
      header.first_lsn = 0;
      pool.put_header(header, segment - 1);
    }
    auto file = pool.open();
    CHECK(code_of([&] { return recovery::start_generation(*file); }) == "damaged_log");
    RecoveryOptions options;
    options.accept_loss = true;
    RecoveryReport report;
    const auto image = recovery::start_generation(*file, options, &report);
    CHECK(image.fixed.generation == pool.superblock.fixed.generation + 2);
    REQUIRE(report.damage.size() == 1);
    CHECK(report.damage[0].offset == pool.layout.segment_offset(segment));
  }
}

TEST_CASE("numbers that no pool gets to are refused before anything is written") {
  constexpr std::uint64_t kFar = std::uint64_t{1} << 62;
  for (const bool clean : {false, true}) {
    for (int which = 0; which < 5; ++which) {
      INFO("number " << which << (clean ? " of a closed pool" : ""));
      SyntheticPool pool;
      pool.append_simple(1, 5);
      pool::Superblock& s = pool.superblock.fixed;
      if (clean) s.state = static_cast<std::uint32_t>(pool::State::clean);
      if (which == 0) s.number = kFar;
      if (which == 1) s.generation = kFar;
      if (which == 2) s.checkpoint_number = kFar;
      if (which == 3) s.floor = kFar - 1;
      if (which == 4) s.largest_stamp = kFar - 1;
      auto file = pool.open();
      const auto before = read_file(pool.path().path());
      RecoveryOptions options;
      options.accept_loss = true;
      const std::string found =
          clean ? code_of([&] { return recovery::start_generation(*file, options); })
                : code_of([&] { return recovery::recover(*file, options); });
      CHECK(found == "damaged_superblock");
      CheckReport check;
      recovery::check_log(*file, check);
      CHECK_FALSE(check.sound());
      CHECK((read_file(pool.path().path()) == before));
    }
  }
}

}  // namespace sp3::test

#include <cerrno>
#include <string_view>

#include <catch2/catch.hpp>

#include "recovery/durable.h"
#include "recovery/finish.h"
#include "recovery/inspect_log.h"
#include "tests/recovery/support.h"

namespace sp3::test {
namespace {

std::vector<std::byte> slab_bytes(const SyntheticPool& pool) {
  const auto bytes = read_file(pool.path().path());
  return {bytes.begin() + static_cast<std::ptrdiff_t>(pool.layout.slabs_offset), bytes.end()};
}

}  // namespace

TEST_CASE("both strategies bring about what replaying one by one would, on 600 histories") {
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    INFO("seed " << seed);
    // In large slabs few of the slots are written.
    const std::uint32_t slab_size = seed % 8 == 2 ? 256 * 1024 : 4096;
    Crashed crashed(seed, 20 + seed % 120, 2 + static_cast<std::uint32_t>(seed % 6), slab_size);
    const auto before = read_file(crashed.pool.path().path());
    std::optional<std::vector<std::byte>> image;
    const std::uint32_t most = seed % 10 == 0 ? 3 : 1;
    for (const RecoveryStrategy strategy : {RecoveryStrategy::stamp, RecoveryStrategy::dag}) {
      for (std::uint32_t threads = 1; threads <= most; ++threads) {
        write_file(crashed.pool.path().path(), before);
        auto file = crashed.pool.reopen();
        const auto result = recovery::recover(*file, recovery_options(strategy, threads));
        file.reset();
        REQUIRE(result.report.replayed == crashed.history.expected_replayed());
        REQUIRE(result.report.damage.empty());
        REQUIRE(result.superblock.fixed.floor == crashed.history.largest_stamp());
        check_recovered(crashed.pool, crashed.history, crashed.history.expected());
        const auto slabs = slab_bytes(crashed.pool);
        if (!image) image = slabs;
        REQUIRE(slabs == *image);
      }
    }
  }
}

TEST_CASE("recovery leaves an open pool of a new generation with empty logs") {
  Crashed crashed(3);
  const pool::Superblock before = crashed.pool.superblock.fixed;
  auto file = crashed.pool.reopen();
  const auto result = recovery::recover(*file, {});
  file = nullptr;
  file = crashed.pool.reopen();
  const pool::SuperblockImage& after = file->superblock();
  CHECK(file->copies_equal());
  CHECK(after.fixed.generation == before.generation + 1);
  CHECK(after.fixed.number == before.number + 1);
  CHECK(after.fixed.checkpoint_number == before.checkpoint_number + 1);
  CHECK(result.report.largest_stamp > before.floor);
  CHECK(after.fixed.floor == result.report.largest_stamp);
  CHECK(after.fixed.largest_stamp == after.fixed.floor);
  CHECK(after.fixed.state == static_cast<std::uint32_t>(pool::State::open));
  CHECK(std::all_of(after.heads.begin(), after.heads.end(), [](Lsn lsn) { return lsn == 1; }));
  CHECK(result.superblock.fixed.number == after.fixed.number);
  CHECK(result.report.records == result.report.replayed + result.report.dropped);
  const auto again = recovery::recover(*file, {});
  CHECK(again.report.records == 0);
}

TEST_CASE("of what recovery does in parallel no failure is lost, whoever succeeds behind it") {
  emu::Executor executor(1);
  for (const std::size_t failing : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    const emu::IoStatus status = recovery::parallel_status(
        executor, 3, [&](std::size_t i) { return emu::IoStatus{i == failing ? EIO : 0}; });
    CHECK(status.error == EIO);
  }
}

TEST_CASE("a clean pool is left alone by recovery and opened by a new generation") {
  SyntheticPool pool;
  pool.superblock.fixed.state = static_cast<std::uint32_t>(pool::State::clean);
  pool.superblock.heads[2] = 9;
  auto file = pool.open();
  const auto before = read_file(pool.path().path());
  CHECK(recovery::recover(*file, {}).report.was_clean);
  CHECK(read_file(pool.path().path()) == before);
  const auto image = recovery::start_generation(*file);
  CHECK(image.fixed.generation == pool.superblock.fixed.generation + 1);
  CHECK(image.fixed.checkpoint_number == pool.superblock.fixed.checkpoint_number);
  file = nullptr;
  file = pool.reopen();
  CHECK(file->copies_equal());
  CHECK(file->superblock().fixed.number == image.fixed.number);
  CHECK(file->superblock().heads[2] == 1);
}

TEST_CASE("a superblock copy that was torn is made whole, whichever it was") {
  for (const int torn : {0, 1}) {
    Crashed crashed(21);
    crashed.pool.bytes = read_file(crashed.pool.path().path());
    // The torn copy's metadata may be anything, too.
    const pool::Layout& layout = crashed.pool.layout;
    std::memset(crashed.pool.bytes.data() + layout.superblock_offset(torn) + 100, 0x77, 40);
    std::memset(crashed.pool.bytes.data() + layout.directory_offset[torn] + 8, 0x77, 60);
    write_file(crashed.pool.path().path(), crashed.pool.bytes);
    auto file = crashed.pool.reopen();
    REQUIRE(file->current_copy() == 1 - torn);
    (void)recovery::recover(*file, {});
    file = nullptr;
    check_recovered(crashed.pool, crashed.history, crashed.history.expected());
  }
}

// Threads of a child only: one that has had several forks children of one.
TEST_CASE("recovery killed at any step and repeated, by any strategy, equals one recovery") {
  using emu::Step;
  for (const std::uint64_t seed : {5ULL, 6ULL, 7ULL}) {
    Crashed crashed(seed, 40);
    const std::uint32_t threads = seed == 7 ? 3 : 1;
    const auto before = read_file(crashed.pool.path().path());
    for (const RecoveryStrategy strategy : {RecoveryStrategy::stamp, RecoveryStrategy::dag}) {
      for (int at = static_cast<int>(Step::recovery_scanned);
           at <= static_cast<int>(Step::recovery_superblock_b); ++at) {
        for (std::uint64_t countdown = 1;; ++countdown) {
          INFO(emu::step_name(static_cast<Step>(at)) << " " << countdown);
          write_file(crashed.pool.path().path(), before);
          const int status = in_child([&] {
            auto file = crashed.pool.reopen();
            emu::arm_kill(static_cast<Step>(at), countdown);
            (void)recovery::recover(*file, recovery_options(strategy, threads));
            return 0;
          });
          if (status == 0) break;
          REQUIRE(status == 128 + SIGKILL);
          auto file = crashed.pool.reopen();
          const RecoveryStrategy again =
              countdown % 2 == 0 ? RecoveryStrategy::dag : RecoveryStrategy::stamp;
          (void)recovery::recover(*file, recovery_options(again, 1));
          file = nullptr;
          check_recovered(crashed.pool, crashed.history, crashed.history.expected());
          if (countdown >= 6 && countdown % 7 != 0) ++countdown;
        }
      }
    }
  }
}

TEST_CASE("a slab with objects is never carved anew") {
  SyntheticPool pool;
  describe_slab(pool, 1, 4);
  const auto shape = pool::slab_shape(pool.layout.slab_size, 48);
  const std::vector<std::byte> object(48, std::byte{9});
  RecordBuilder builder;
  builder.add_make(pool.layout.slab_offset(1) + shape.data, {5, 44, 48}, object.data(), 48);
  pool.append(0, builder, 10);
  auto file = pool.open();
  CHECK(code_of([&] { return recovery::recover(*file, {}); }) == "damaged_log");
}

// Each record but the last writes to a slab that the next one carves. The last one writes to a slab
// that nobody carves, and without it the one before it does so.
TEST_CASE("records that fall one after the other are not assessed as often as there are records") {
  SyntheticPool pool(std::uint64_t{2} << 20);
  constexpr std::uint32_t kRecords = 300;
  const std::vector<std::byte> object(48, std::byte{9});
  const auto shape = pool::slab_shape(pool.layout.slab_size, 48);
  RecordBuilder builder;
  for (std::uint32_t i = 1; i <= kRecords; ++i) {
    builder.reset();
    builder.add_image(pool.layout.slab_offset(i) + shape.data, object.data(), 48);
    builder.add_make(pool.layout.slab_offset(i - 1) + shape.data, {5, 44, 48}, object.data(), 48);
    pool.append(0, builder, 10 + i);
  }
  auto file = pool.open();
  CheckReport check;
  recovery::check_log(*file, check);
  CHECK_FALSE(check.sound());
  CHECK(check.damage.size() < 20);  // one for each round
  RecoveryOptions options;
  options.accept_loss = true;
  const auto report = recovery::recover(*file, options).report;
  CHECK(report.records == kRecords);
  CHECK(report.replayed == 0);
  CHECK(report.dropped_records.size() == kRecords);
  CHECK(report.damage.size() < 20);
}

TEST_CASE("a slab is carved anew when every object in it was made above the floor") {
  for (const bool interrupted : {false, true}) {
    SyntheticPool pool;
    const std::uint32_t slab = 1;
    describe_slab(pool, slab, 0);  // all gone
    const auto shape = pool::slab_shape(pool.layout.slab_size, 48);
    const std::uint64_t slot = pool.layout.slab_offset(slab) + shape.data;
    std::vector<std::byte> object(48, std::byte{9});
    RecordBuilder builder;
    builder.add_make(slot, {5, 44, 48}, object.data(), 48);
    builder.add_make(slot + 48, {5, 44, 48}, object.data(), 48);
    pool.append(0, builder, 10);
    builder.reset();
    builder.add_destroy(slot + 48);
    builder.add_dependency(0, 10);
    pool.append(1, builder, 20);
    auto file = pool.open();
    if (interrupted) {
      file = nullptr;
      CHECK(in_child([&] {
              auto child = pool.reopen();
              emu::arm_kill(emu::Step::recovery_homes_flushed, 1);
              (void)recovery::recover(*child, recovery_options(RecoveryStrategy::stamp, 1));
              return 0;
            }) == 128 + SIGKILL);
      file = pool.reopen();
    }
    const auto result = recovery::recover(*file, {});
    CHECK(result.report.replayed == 2);
    file = nullptr;
    file = pool.reopen();
    for (const int copy : {0, 1}) {
      const auto directory =
          pool::SlabDirectory::load(file->memory(), pool.layout, file->identity(), copy);
      CHECK(directory.record(slab).type == 5);
      CHECK(directory.record(slab).slot_size == 48);
      CHECK(directory.record(slab).live == 1);
      CHECK(directory.load_bitmap(file->memory(), slab, copy)[0] == 1);
    }
    CHECK(std::memcmp(file->memory().view() + slot, object.data(), 48) == 0);
  }
}

TEST_CASE("a write that contradicts its slab is damage and nothing is written") {
  SyntheticPool pool;
  const std::vector<std::byte> object(48, std::byte{9});
  const auto shape = pool::slab_shape(pool.layout.slab_size, 48);
  const std::uint64_t slot = pool.layout.slab_offset(2) + shape.data;
  RecordBuilder builder;
  builder.add_make(slot, {5, 44, 48}, object.data(), 48);
  pool.append(0, builder, 10);
  builder.reset();
  SECTION("an image outside any slab") { builder.add_image(64, object.data(), 48); }
  SECTION("an image in a free slab") {
    builder.add_image(pool.layout.slab_offset(5) + 128, object.data(), 48);
  }
  SECTION("an image between slots") { builder.add_image(slot + 8, object.data(), 48); }
  SECTION("an image of another size") { builder.add_image(slot, object.data(), 40); }
  SECTION("a change behind the object's end") {
    std::vector<std::byte> larger(64);
    const std::vector<std::byte> before = larger;
    larger.back() = std::byte{1};
    builder.add_update(slot, before.data(), larger.data(), 64);
  }
  SECTION("a destroy behind the last slot") {
    builder.add_destroy(slot + std::uint64_t{shape.slots} * 48);
  }
  SECTION("a make of another class in the same slab") {
    builder.add_make(slot + 64 * 3, {6, 64, 64}, object.data(), 48);
  }
  SECTION("a make of a second class") {
    const std::vector<std::byte> large(64);
    const auto other = pool::slab_shape(pool.layout.slab_size, 64);
    builder.add_make(pool.layout.slab_offset(2) + other.data, {6, 64, 64}, large.data(), 64);
  }
  SECTION("a make with an impossible slot size") {
    builder.add_make(slot + 48, {5, 44, 4096}, object.data(), 48);
  }
  SECTION("a make with the slot size of another type") {
    const auto other = pool::slab_shape(pool.layout.slab_size, 56);
    builder.add_make(pool.layout.slab_offset(3) + other.data, {5, 44, 56}, object.data(), 48);
  }
  SECTION("a make of another size than its type has") {
    builder.add_make(slot + 48, {5, 44, 48}, object.data(), 40);
  }
  SECTION("a make of no type") { builder.add_make(slot + 48, {0, 44, 48}, object.data(), 48); }
  const auto place = pool.append(0, builder, 20);
  builder.reset();
  builder.add_destroy(slot);
  builder.add_dependency(0, 20);
  pool.append(1, builder, 30);
  auto file = pool.open();
  const auto before = read_file(pool.path().path());
  const auto error = error_of([&] { return recovery::recover(*file, {}); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::damaged_log);
  CHECK(error->facts().path == pool.path().string());
  CHECK(error->facts().offset == place.offset);
  CHECK(read_file(pool.path().path()) == before);
  CheckReport check;
  recovery::check_log(*file, check);
  CHECK_FALSE(check.sound());
  RecoveryOptions options;
  options.accept_loss = true;
  const auto result = recovery::recover(*file, options);
  CHECK(result.report.replayed == 1);
  CHECK(result.report.records == 3);
  CHECK(result.report.dropped == 2);
  CHECK(result.report.dropped_records.size() == 2);
  CHECK_FALSE(result.report.damage.empty());
}

TEST_CASE(
    "a damaged bitmap of a slab that the log does not touch is found before anything is written") {
  SyntheticPool pool;
  describe_slab(pool, 5, 0b110);
  const std::vector<std::byte> object(48, std::byte{9});
  const auto shape = pool::slab_shape(pool.layout.slab_size, 48);
  RecordBuilder builder;
  builder.add_make(pool.layout.slab_offset(2) + shape.data, {5, 44, 48}, object.data(), 48);
  pool.append(0, builder, 10);
  auto file = pool.open();
  const int current = file->current_copy();
  file = nullptr;
  const auto described = pool::slab_shape(pool.layout.slab_size, 8);
  for (const int copy : {0, 1}) {
    pool.bytes[pool.layout.slab_offset(5) + described.bitmap(copy)] ^= std::byte{1};
  }
  file = pool.open();
  const auto error = error_of([&] { return recovery::recover(*file, {}); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::damaged_metadata);
  CHECK(error->facts().offset == pool.layout.slab_offset(5) + described.bitmap(current));
  CHECK((read_file(pool.path().path()) == pool.bytes));
}

TEST_CASE("damage refuses by default, and accepting the loss recovers the rest and lists it") {
  SyntheticPool pool;
  const std::vector<std::byte> object(48, std::byte{9});
  const auto shape = pool::slab_shape(pool.layout.slab_size, 48);
  const std::uint64_t slot = pool.layout.slab_offset(2) + shape.data;
  RecordBuilder builder;
  std::vector<SyntheticPool::Place> places;
  for (std::uint64_t i = 0; i < 10; ++i) {
    builder.reset();
    builder.add_make(slot + 48 * i, {5, 44, 48}, object.data(), 48);
    places.push_back(pool.append(0, builder, 10 + i, i));
  }
  builder.reset();
  builder.add_destroy(slot + 48 * 8);
  builder.add_dependency(0, 18);
  pool.append(1, builder, 100);
  builder.reset();
  builder.add_destroy(slot + 48 * 2);
  builder.add_dependency(0, 12);
  pool.append(3, builder, 101);
  pool.bytes[places[5].offset + 30] ^= std::byte{4};
  auto file = pool.open();
  const auto before = read_file(pool.path().path());
  CHECK(code_of([&] { return recovery::recover(*file, {}); }) == "damaged_log");
  CHECK(read_file(pool.path().path()) == before);
  CheckReport check;
  recovery::check_log(*file, check);
  REQUIRE(check.damage.size() == 1);
  CHECK(check.damage[0].offset == places[5].offset);
  CHECK(read_file(pool.path().path()) == before);

  RecoveryOptions options;
  options.accept_loss = true;
  const auto report = recovery::recover(*file, options).report;
  CHECK(report.replayed == 6);  // records 1 to 5 of session 0, session 3's
  CHECK(report.dropped == 5);   // records 7 to 10, session 1's
  CHECK(report.dropped_records.size() == 5);
  CHECK(report.damage.size() == 1);
  file = nullptr;
  file = pool.reopen();
  const auto directory =
      pool::SlabDirectory::load(file->memory(), pool.layout, file->identity(), 0);
  CHECK(directory.load_bitmap(file->memory(), 2, 0)[0] == 0b11011);
  CHECK(recovery::recover(*file, {}).report.damage.empty());
}

TEST_CASE("what will be lost is told while nothing has been written, and may be refused") {
  SyntheticPool pool;
  const std::vector<std::byte> object(48, std::byte{9});
  const auto shape = pool::slab_shape(pool.layout.slab_size, 48);
  RecordBuilder builder;
  std::vector<SyntheticPool::Place> places;
  for (std::uint64_t i = 0; i < 4; ++i) {
    builder.reset();
    builder.add_make(pool.layout.slab_offset(2) + shape.data + 48 * i, {5, 44, 48}, object.data(),
                     48);
    places.push_back(pool.append(0, builder, 10 + i, i));
  }
  pool.bytes[places[2].offset + 30] ^= std::byte{4};
  auto file = pool.open();
  const auto before = read_file(pool.path().path());
  int told = 0;
  bool refuse = true;
  RecoveryOptions options;
  options.accept_loss = true;
  options.assessed = [&](const RecoveryReport& report) {
    ++told;
    CHECK(report.damage.size() == 1);
    CHECK(report.dropped_records.size() == 1);
    CHECK((read_file(pool.path().path()) == before));
    if (refuse) throw Error(ErrorCode::io_error, "nobody heard of it", {});
  };
  CHECK(code_of([&] { return recovery::recover(*file, options); }) == "io_error");
  CHECK((read_file(pool.path().path()) == before));
  refuse = false;
  CHECK(recovery::recover(*file, options).report.damage.size() == 1);
  CHECK(told == 2);
}

TEST_CASE("who makes a second class in a slab ends alone, and all its records are listed") {
  SyntheticPool pool;
  const std::vector<std::byte> object(64, std::byte{9});
  const auto slot_of = [&](std::uint32_t slab, std::uint32_t size) {
    return pool.layout.slab_offset(slab) + pool::slab_shape(pool.layout.slab_size, size).data;
  };
  RecordBuilder builder;
  const auto make = [&](SessionId session, Stamp stamp, std::uint32_t slab, std::uint32_t size) {
    builder.reset();
    builder.add_make(slot_of(slab, size), {60 + size, size, size}, object.data(), size);
    pool.append(session, builder, stamp);
  };
  const auto change = [&](SessionId session, Stamp stamp, std::uint32_t slab, std::uint32_t size) {
    builder.reset();
    builder.add_image(slot_of(slab, size), object.data(), size);
    pool.append(session, builder, stamp);
  };
  make(1, 1000, 3, 16);
  change(1, 1001, 3, 16);
  make(2, 1002, 5, 16);  // has nothing to do with slab 3
  change(2, 1003, 5, 16);
  make(4, 1004, 3, 24);
  change(4, 1005, 3, 24);
  auto file = pool.open();
  CheckReport check;
  recovery::check_log(*file, check);
  CHECK(check.records == 6);
  REQUIRE(check.damage.size() == 1);
  CHECK_THAT(check.damage[0].what, Catch::EndsWith("a make of a second class in one slab"));
  std::uint64_t dropped = 0;
  const auto summary = recovery::list_log(*file, [&](const recovery::LoggedRecord& record) {
    if (record.state == recovery::RecordState::dropped) dropped += record.session == 4 ? 1 : 100;
  });
  CHECK(summary.records == 6);
  CHECK(dropped == 2);
  RecoveryOptions options;
  options.accept_loss = true;
  const auto result = recovery::recover(*file, options);
  CHECK(result.report.sessions == 3);
  CHECK(result.report.replayed == 4);
  CHECK(result.report.dropped == 2);
}

TEST_CASE("progress is told for every phase and never goes backwards") {
  Crashed crashed(9, 200);
  std::map<std::string, std::uint64_t> done;
  RecoveryOptions options;
  options.progress = [&](const Progress& progress) {
    CHECK(progress.done >= done[progress.phase]);
    CHECK(progress.done <= progress.total);
    done[progress.phase] = progress.done;
  };
  auto file = crashed.pool.reopen();
  (void)recovery::recover(*file, options);
  for (const char* phase : {"scan", "cut", "replay", "flush"}) CHECK(done.count(phase) == 1);
}

TEST_CASE("what progress throws leaves recovery, which may be repeated") {
  const auto strategy = GENERATE(RecoveryStrategy::stamp, RecoveryStrategy::dag);
  const auto threads = GENERATE(1U, 3U);
  for (const std::string_view phase : {"scan", "cut", "replay", "flush"}) {
    for (const bool begun : {false, true}) {
      INFO(phase << ", " << (begun ? "begun" : "done"));
      Crashed crashed(14);
      RecoveryOptions options = recovery_options(strategy, threads);
      struct Enough {};
      bool told = false;
      options.progress = [&](const Progress& progress) {
        if (progress.phase != phase || (progress.done == progress.total) == begun) return;
        told = true;
        throw Enough();
      };
      auto file = crashed.pool.reopen();
      bool left = false;
      try {
        (void)recovery::recover(*file, options);
      } catch (const Enough&) {
        left = true;
      }
      CHECK(left == told);
      if (!begun) CHECK(told);
      file = nullptr;
      file = crashed.pool.reopen();
      (void)recovery::recover(*file, {});
      file = nullptr;
      check_recovered(crashed.pool, crashed.history, crashed.history.expected());
    }
  }
}

TEST_CASE("a failing disk is reported and recovery may be repeated") {
  const auto strategy = GENERATE(RecoveryStrategy::stamp, RecoveryStrategy::dag);
  for (std::uint64_t countdown = 1; countdown <= 6; ++countdown) {
    Crashed crashed(12);
    auto file = crashed.pool.reopen();
    const auto before = read_file(crashed.pool.path().path());
    emu::inject_io_error(EIO, countdown);
    CHECK(code_of([&] { return recovery::recover(*file, recovery_options(strategy, 1)); }) ==
          "io_error");
    emu::inject_io_error(0, 0);
    // Not before the log that was found is durable is anything stored.
    if (countdown == 1) CHECK((read_file(crashed.pool.path().path()) == before));
    file = nullptr;
    file = crashed.pool.reopen();
    (void)recovery::recover(*file, {});
    file = nullptr;
    check_recovered(crashed.pool, crashed.history, crashed.history.expected());
  }
}

// Between the last store and the flushes, and no longer.
TEST_CASE("a disk that fails while homes are made durable is reported though it works again") {
  Crashed crashed(12);
  RecoveryOptions options = recovery_options(RecoveryStrategy::dag, 1);
  options.progress = [](const Progress& progress) {
    const bool fails = std::string_view(progress.phase) == "replay";
    emu::inject_io_error(fails ? EIO : 0, fails ? 1 : 0);
  };
  auto file = crashed.pool.reopen();
  CHECK(code_of([&] { return recovery::recover(*file, options); }) == "io_error");
  emu::inject_io_error(0, 0);
}

// From the scan to the end of replay along the DAG, which has fences of its own, and no longer.
TEST_CASE(
    "a disk that fails while values are stored past caches is reported though it works again") {
  Crashed crashed(12);
  const std::size_t logs = crashed.pool.scan().sessions.size();
  RecoveryOptions options = recovery_options(RecoveryStrategy::dag, 1);
  auto file = crashed.pool.reopen();
  for (std::size_t countdown = 1; countdown <= logs + 2; ++countdown) {
    INFO("of " << logs << " logs, fence " << countdown);
    options.progress = [&](const Progress& progress) {
      if (std::string_view(progress.phase) == "cut") emu::inject_io_error(EIO, countdown);
      if (std::string_view(progress.phase) == "replay") emu::inject_io_error(0, 0);
    };
    CHECK(code_of([&] { return recovery::recover(*file, options); }) == "io_error");
    emu::inject_io_error(0, 0);
  }
}

TEST_CASE("the log can be listed and checked without changing a byte") {
  Crashed crashed(31);
  const auto before = read_file(crashed.pool.path().path());
  auto file = pool::PoolFile::open(crashed.pool.path().path(), crashed.pool.options(),
                                   pool::PoolFile::Access::read_only);
  std::size_t replayable = 0;
  const auto summary = recovery::list_log(*file, [&](const recovery::LoggedRecord& record) {
    if (record.state == recovery::RecordState::replayable) ++replayable;
  });
  CHECK(summary.damage.empty());
  CHECK(replayable == crashed.history.expected_replayed());
  CheckReport check;
  recovery::check_log(*file, check);
  CHECK(check.sound());
  CHECK(read_file(crashed.pool.path().path()) == before);
}

}  // namespace sp3::test

// Who flushes what: every line of the log by somebody, and in file memory nothing outside its run.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include <catch2/catch.hpp>

#include "log/format.h"
#include "pool/pool_file.h"
#include "tests/runtime/newest_run.h"
#include "tests/runtime/one_pool.h"

namespace sp3::test {
namespace {

struct Cell {
  std::uint64_t value = 0;
};
// Its record fills a run of two segments so far that the next one needs another run.
struct Big {
  std::array<std::uint64_t, 484> words{};
};

// The cell, as found by whoever opens the file after the process vanished now.
std::uint64_t value_after_crash(const std::filesystem::path& path, const Options& options) {
  TempPath copy;
  write_bytes(copy.path(), read_bytes(path));
  Pool pool = Pool::open(copy.path(), options);
  Session session = pool.session();
  return session.run([](Transaction& tx) { return tx.read(tx.root<Cell>("cell")).value; });
}

// A group in an old run is flushed after its owner has reserved a new run and before it has used
// it.
int flush_behind_a_new_run() {
  const Options options = quiet_options(MemoryKind::file);
  TempPath path;
  Pool pool = Pool::create(path.path(), kTinyPool, options);
  Session session = pool.session();
  Session other = pool.session();
  const auto big = session.run([](Transaction& tx) { return tx.make<Big>(); });
  const auto cell = session.run([](Transaction& tx) {
    const auto made = tx.make<Cell>();
    tx.set_root("cell", made);
    return made;
  });
  const auto contended = session.run([](Transaction& tx) { return tx.make<Cell>(); });
  for (std::uint64_t i = 1; i <= 40; ++i) {
    pool.checkpoint();
    Ticket old = session.run_async([&](Transaction& tx) { tx.write(big).words.fill(i); });
    int attempt = 0;
    Ticket first = session.run_async([&](Transaction& tx) {
      (void)tx.read(contended);
      tx.write(cell).value = 2 * i - 1;
      // The first attempt fails at commit, with its log space reserved.
      if (++attempt == 1)
        other.run([&](Transaction& theirs) { theirs.write(contended).value = i; });
      if (attempt == 2) old.wait();
    });
    Ticket second = session.run_async([&](Transaction& tx) { tx.write(cell).value = 2 * i; });
    second.wait();
    if (attempt != 2) return 2;
    if (value_after_crash(path.path(), options) != 2 * i) return 1;
  }
  return 0;
}

// Whether the loss of the newest run of session 1 is damage to who opens a copy of the file as it
// is now, in which that run's header has a flipped bit.
bool loss_of_newest_run_is_noticed(const std::filesystem::path& path, const Options& options) {
  std::vector<char> bytes = read_bytes(path);
  const std::uint64_t newest = newest_run(bytes, options);
  bytes[newest + offsetof(log::SegmentHeader, first_lsn)] ^= 1;
  TempPath copy;
  write_bytes(copy.path(), bytes);
  return code_of([&] { return Pool::open(copy.path(), options); }) == "damaged_log";
}

}  // namespace

TEST_CASE("a flush of an old run does not move the owner out of its new one") {
  CHECK(in_child(flush_behind_a_new_run) == 0);
}

// What vouched for its records lay in the very run that is not found.
TEST_CASE("a damaged header of the run that a busy session writes is noticed") {
  Options options = quiet_options();
  options.geometry = {4 << 20, 1 << 20, 64 * 1024, 3};
  options.watermark_ms = 50;
  options.latency = {LatencyModel::line, 20'000, 0};  // so that a run lasts
  OnePool p(options, 6 << 20);
  std::atomic<bool> done{false};
  std::thread busy([&] {
    const auto cell = p.session.run([](Transaction& tx) { return tx.make<Cell>(); });
    while (!done) p.session.run([&](Transaction& tx) { ++tx.write(cell).value; });
  });
  const auto is_noticed = [&] {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      if (loss_of_newest_run_is_noticed(p.path.path(), options)) return true;
    }
    return false;
  };
  CHECK(is_noticed());
  // The same run goes on, but the watermark vouches for nothing that is still needed.
  p.pool.checkpoint();
  CHECK(is_noticed());
  done = true;
  busy.join();
}

// A disk that lost what a checkpoint wrote of both, and kept the log that was written afterwards.
TEST_CASE("superblocks that are older than the log are noticed") {
  OnePool p;
  const auto cell = p.session.run([](Transaction& tx) { return tx.make<Cell>(); });
  const std::vector<char> before = read_bytes(p.path.path());
  p.pool.checkpoint();
  p.session.run([&](Transaction& tx) { tx.write(cell).value = 1; });
  std::vector<char> after = read_bytes(p.path.path());
  pool::Superblock superblock;
  std::memcpy(&superblock, before.data(), sizeof superblock);
  std::copy_n(before.begin(), 2 * superblock.copy_bytes, after.begin());
  TempPath copy;
  write_bytes(copy.path(), after);
  const auto error = error_of([&] { return Pool::open(copy.path(), quiet_options()); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::damaged_log);
  CHECK_THAT(error->what(), Catch::Contains("a log segment started after checkpoint"));
}

TEST_CASE("every line of the log is flushed by somebody, however threads help each other") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Options options = quiet_options();
    options.geometry = {24 << 20, 1 << 20, 64 * 1024, 7};
    options.async.group_records = 8;
    options.latency = {LatencyModel::yield, 2000, 0};
    TempPath path;
    Pool pool = Pool::create(path.path(), 32 << 20, options);
    Ptr<Cell> cells[3];
    {
      Session session = pool.session();
      for (auto& cell : cells) cell = session.run([](Transaction& tx) { return tx.make<Cell>(); });
    }
    on_threads(4, [&](int thread) {
      Session session = pool.session();
      Random random(seed * 10 + static_cast<std::uint64_t>(thread));
      for (int i = 0; i < 4000; ++i) {
        const auto cell = cells[random.below(3)];
        const std::uint64_t kind = random.below(8);
        if (kind == 0) {
          (void)session.run([&](Transaction& tx) { return tx.read(cell).value; });
        } else if (kind < 5) {
          session.run([&](Transaction& tx) { tx.write(cell).value += 1; });
        } else {
          (void)session.run_async([&](Transaction& tx) { tx.write(cell).value += 1; });
        }
      }
      session.close();
    });
    const PoolStatistics s = pool.statistics();
    REQUIRE(s.checkpoints == 0);
    const std::uint64_t flushed = s.sessions.lines + s.sessions.helped_lines + s.flusher_lines;
    CHECK(flushed * 64 >= s.sessions.log_bytes);
  }
}

}  // namespace sp3::test

// What stamps promise (docs/COMMIT_PROTOCOL.md, docs/adr/0002-hybrid-logical-clock.md), checked on
// the logs that killed processes leave behind.
#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include <catch2/catch.hpp>

#include "emu/clock.h"
#include "emu/step.h"
#include "pool/limits.h"
#include "recovery/inspect_log.h"
#include "runtime/clock.h"
#include "tests/runtime/bank.h"

namespace sp3::test {
namespace {

using recovery::LoggedRecord;
using recovery::RecordState;

struct Log {
  std::vector<LoggedRecord> records;
  std::uint64_t floor = 0;
  bool damaged = false;
};

// As words, for the way from the child that reads the log to us.
std::vector<std::uint64_t> list_words(const std::filesystem::path& path, const Options& options) {
  const auto file = pool::PoolFile::open(path, options, pool::PoolFile::Access::read_only);
  std::vector<std::uint64_t> words{file->info().checkpoint_floor, 0};
  const auto summary = recovery::list_log(*file, [&](const LoggedRecord& record) {
    if (record.watermark) return;
    words.insert(words.end(),
                 {record.session, record.lsn, record.stamp,
                  static_cast<std::uint64_t>(record.state), record.dependencies.size()});
    for (const base::Tid& tid : record.dependencies) {
      words.insert(words.end(), {tid.stamp, tid.session});
    }
  });
  words[1] = summary.damage.size();
  return words;
}

// In a child, because reading starts threads, and a process that has some should not fork.
Log read_log(const std::filesystem::path& path, const Options& options) {
  TempPath result;
  const int ended = in_child([&] {
    const std::vector<std::uint64_t> words = list_words(path, options);
    std::vector<char> bytes(words.size() * sizeof(std::uint64_t));
    std::memcpy(bytes.data(), words.data(), bytes.size());
    write_bytes(result.path(), bytes);
    return 0;
  });
  REQUIRE(ended == 0);
  const std::vector<char> bytes = read_bytes(result.path());
  std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  Log log;
  log.floor = words.at(0);
  log.damaged = words.at(1) != 0;
  for (std::size_t at = 2; at < words.size();) {
    LoggedRecord record;
    record.session = static_cast<base::SessionId>(words.at(at++));
    record.lsn = words.at(at++);
    record.stamp = words.at(at++);
    record.state = static_cast<RecordState>(words.at(at++));
    for (std::uint64_t left = words.at(at++); left > 0; --left, at += 2) {
      record.dependencies.push_back({words.at(at), static_cast<base::SessionId>(words.at(at + 1))});
    }
    log.records.push_back(std::move(record));
  }
  return log;
}

// Runs the bank in a child that is killed at its n-th seal.
void crash(const std::filesystem::path& path, const Options& options, bool async,
           std::uint64_t seed) {
  (void)in_child([&] {
    Pool pool = Pool::open(path, options);
    emu::arm_kill(emu::Step::commit_seal, 60 + seed * 13);
    run_bank(pool, 3, 400, async, seed, [](std::size_t, std::uint64_t) {});
    return 0;
  });
}

// Consequence 1 and 3: numeric order is a topological order, and what is up to L is closed.
void check_log(const Log& log, std::map<std::uint16_t, std::uint64_t>& largest) {
  CHECK_FALSE(log.damaged);
  std::map<std::uint16_t, std::vector<const LoggedRecord*>> sessions;
  for (const LoggedRecord& record : log.records) {
    CHECK(record.stamp > log.floor);
    for (const base::Tid& tid : record.dependencies) {
      CHECK(tid.stamp < record.stamp);
      CHECK(tid.session != record.session);
    }
    auto& session = sessions[record.session];
    if (!session.empty()) {
      CHECK(session.back()->stamp < record.stamp);
      CHECK(session.back()->lsn < record.lsn);
    }
    session.push_back(&record);
    largest[0] = std::max(largest[0], record.stamp);
  }
  // The replayable ones are closed under dependency.
  for (const LoggedRecord& record : log.records) {
    if (record.state != RecordState::replayable) continue;
    for (const base::Tid& tid : record.dependencies) {
      if (tid.stamp <= log.floor) continue;
      bool there = false;
      for (const LoggedRecord* other : sessions[tid.session]) {
        there = there || (other->stamp == tid.stamp && other->state == RecordState::replayable);
      }
      CHECK(there);
    }
  }
}

}  // namespace

TEST_CASE(
    "dependencies have smaller stamps, and stamps grow in every session and over every crash") {
  std::uint64_t seed = 0;
  std::size_t dependencies = 0;
  for (const Mode& mode : all_modes()) {
    INFO(mode.name());
    TempPath path;
    Options options = tiny_options();
    mode.apply(options);
    // Slow flushes, so that transactions do meet predecessors that are not committed yet.
    if (options.memory == MemoryKind::emulated) options.latency.nanoseconds = 20'000;
    Pool pool = Pool::create(path.path(), kTinyPool, options);
    make_bank(pool);
    pool.close();
    std::map<std::uint16_t, std::uint64_t> largest;
    for (int round = 0; round < 4; ++round) {
      const std::uint64_t before = largest[0];
      crash(path.path(), options, mode.async, ++seed);
      const Log log = read_log(path.path(), options);
      for (const LoggedRecord& record : log.records) {
        REQUIRE(record.stamp > before);  // no stamp comes twice, whatever was dropped
        dependencies += record.dependencies.size();
      }
      check_log(log, largest);
    }
  }
  CHECK(dependencies > 0);
}

TEST_CASE("a version's stamp is above that of what it replaced, also when other clocks run ahead") {
  Options options = quiet_options();
  options.geometry.log_size = 128 * 1024;
  TempPath path;
  CHECK(in_child([&]() -> int {
          Pool pool = Pool::create(path.path(), kTinyPool, options);
          std::vector<Session> sessions;
          for (int i = 0; i < 4; ++i) sessions.push_back(pool.session());
          const auto cell = sessions[0].run([](Transaction& tx) { return tx.make<BankAccount>(); });
          // One chain of versions, handed from session to session as fast as it goes.
          for (std::size_t i = 0; i < 400; ++i) {
            sessions[i % 4].run([&](Transaction& tx) { tx.write(cell).balance += 1; });
          }
          ::_exit(5);
        }) == 5);
  const Log log = read_log(path.path(), options);
  std::map<std::uint64_t, std::uint16_t> by_stamp;
  for (const LoggedRecord& record : log.records) by_stamp[record.stamp] = record.session;
  REQUIRE(by_stamp.size() == log.records.size());
  // The chain in the order of its stamps is the order in which it was run.
  std::uint16_t last = 0;
  int turns = 0;
  for (const auto& [stamp, session] : by_stamp) {
    turns += session == last ? 0 : 1;
    last = session;
  }
  CHECK(turns >= 400);
}

TEST_CASE("where the counter has started again there is no snapshot") {
  // Large, so that a snapshot of 0 is not among those that are accepted below.
  const runtime::StampClock clock(/*largest_stamp=*/1'000'000);
  CHECK(clock.snapshot_at(0) == 0);
  const base::Stamp before = clock.now();
  CHECK(clock.snapshot_at(emu::ticks_before_loads()) + 1000 >= before);
}

TEST_CASE("a counter that jumps ahead does not use up the stamps that superblocks can say") {
  const runtime::StampClock clock(/*largest_stamp=*/1'000'000);
  const std::uint64_t ticks = emu::ticks();
  base::Stamp before = 0;
  for (const int bits : {40, 61, 62}) {
    const std::uint64_t ahead = ticks + (std::uint64_t{1} << bits);
    INFO("ahead by 2^" << bits);
    CHECK(clock.stamp_at(ahead) < pool::kMostStampToGoOnFrom);
    // Nor is a stamp ever below an earlier snapshot.
    CHECK(clock.stamp_at(ahead) >= before);
    before = clock.snapshot_at(ahead);
    CHECK(before > 1'000'000);
  }
}

TEST_CASE("a checkpoint's floor is above every stamp that was taken before it") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    const Options options = quiet_options(memory);
    TempPath path;
    CHECK(in_child([&]() -> int {
            Pool pool = Pool::create(path.path(), kTinyPool, options);
            make_bank(pool);
            std::uint64_t floor = pool.info().checkpoint_floor;
            for (int i = 0; i < 10; ++i) {
              run_bank(pool, 2, 10, i % 2 == 0, static_cast<std::uint64_t>(i),
                       [](std::size_t, std::uint64_t) {});
              pool.checkpoint();
              if (pool.info().checkpoint_floor <= floor) ::_exit(1);
              floor = pool.info().checkpoint_floor;
            }
            ::_exit(5);
          }) == 5);
    // So after the last one there is nothing to replay.
    CHECK(read_log(path.path(), options).records.empty());
    Pool pool = Pool::open(path.path(), options);
    CHECK(pool.recovery_report().replayed == 0);
    BankProgress progress{{100, 100, 0}};
    CHECK(find_bank_fault(pool, progress, 0) == "");
  }
}

}  // namespace sp3::test

// Pools with damaged bytes: recovery ends with a typed error or with a state that a
// dependency-closed set of the transactions explains. A signal or a hang fails the whole
// executable.
#include <catch2/catch.hpp>

#include "recovery/inspect_log.h"
#include "tests/recovery/support.h"

namespace sp3::test {
namespace {

// Applies one record to a model of the homes. A lost make is not missed by those that changed the
// object after it was committed, so an update does not bring an object to life.
void apply(const std::byte* record, History::State& state) {
  log::trusted_record(record).for_each_write([&](const log::WriteView& write) {
    History::Object& object = state.at(write.slot);
    if (write.kind == log::WriteKind::make) object.alive = true;
    if (write.kind == log::WriteKind::destroy) object.alive = false;
    if (write.kind == log::WriteKind::make || write.kind == log::WriteKind::image) {
      object.bytes.assign(write.object().begin(), write.object().end());
    } else if (write.kind == log::WriteKind::delta) {
      log::for_each_run(write.payload, [&](std::uint64_t at, std::span<const std::byte> run) {
        std::memcpy(object.bytes.data() + at, run.data(), run.size());
      });
    }
  });
}

// What replaying the records that list_log() calls replayable must give, after making sure that
// they are a closed set of real ones. `whole` is the file before it was damaged.
History::State explain(pool::PoolFile& file, const History& history,
                       const std::vector<std::byte>& whole) {
  std::map<base::Tid, const History::Transaction*> real;
  for (const auto& tx : history.transactions()) real[tx.tid] = &tx;
  std::set<base::Tid> replayed;
  (void)recovery::list_log(file, [&](const recovery::LoggedRecord& record) {
    if (record.state != recovery::RecordState::replayable || record.watermark) return;
    REQUIRE(real.count({record.stamp, record.session}) == 1);
    replayed.insert({record.stamp, record.session});
  });
  History::State state = history.homes();
  for (auto& [slot, object] : state) {
    const std::byte* home = whole.data() + slot;
    object.bytes.assign(home, home + base::round_up(history.class_of(slot).size, 8));
  }
  std::map<SessionId, bool> ended;
  for (const auto& tx : history.transactions()) {
    if (tx.tid.stamp <= history.floor()) continue;
    if (replayed.count(tx.tid) == 0) {
      ended[tx.tid.session] = true;
      continue;
    }
    REQUIRE_FALSE(ended[tx.tid.session]);
    for (const base::Tid& tid : tx.recorded) {
      REQUIRE((tid.stamp <= history.floor() || replayed.count(tid) == 1));
    }
    apply(whole.data() + tx.offset, state);
  }
  return state;
}

struct Outcome {
  int recovered = 0;
  int refused = 0;
};

}  // namespace

TEST_CASE("flipped bytes in the log are refused or cut off, never believed") {
  Outcome outcome;
  std::mt19937_64 random(77);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SyntheticPool pool;
    History history(seed);
    history.set_layout(pool.layout);
    history.run(80);
    history.crash(pool);
    pool.save();
    const auto before = read_file(pool.path().path());
    const std::uint64_t begin = pool.layout.log_offset;
    const std::uint64_t length = std::uint64_t{pool.next_segment} * pool.layout.segment_size;
    for (int round = 0; round < 100; ++round) {
      auto bytes = before;
      for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
        bytes[begin + random() % length] ^= static_cast<std::byte>(1 + random() % 255);
      }
      write_file(pool.path().path(), bytes);
      auto file = pool.reopen();
      RecoveryOptions options =
          recovery_options(round % 2 == 0 ? RecoveryStrategy::stamp : RecoveryStrategy::dag, 1);
      options.accept_loss = round % 3 == 0;
      try {
        INFO("seed " << seed << " round " << round);
        const History::State expected = explain(*file, history, before);
        (void)recovery::recover(*file, options);
        file = nullptr;
        check_recovered(pool, history, expected);
        ++outcome.recovered;
      } catch (const Error& error) {
        REQUIRE(error.code() == ErrorCode::damaged_log);
        REQUIRE_FALSE(options.accept_loss);
        REQUIRE(read_file(pool.path().path()) == bytes);
        ++outcome.refused;
      }
    }
  }
  CHECK(outcome.recovered > 500);
  CHECK(outcome.refused > 500);
}

TEST_CASE("flipped bytes anywhere in the file give a typed error or an open pool") {
  Outcome outcome;
  std::mt19937_64 random(78);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SyntheticPool pool;
    History history(seed);
    history.set_layout(pool.layout);
    history.run(60);
    history.crash(pool);
    pool.save();
    const auto before = read_file(pool.path().path());
    const std::uint64_t metadata = pool.layout.log_offset;
    for (int round = 0; round < 150; ++round) {
      auto bytes = before;
      const std::uint64_t length = round % 2 == 0 ? metadata : bytes.size();
      for (std::uint64_t n = 1 + random() % 8; n > 0; --n) {
        bytes[random() % length] = static_cast<std::byte>(random());
      }
      write_file(pool.path().path(), bytes);
      try {
        auto file = pool.reopen();
        RecoveryOptions options = recovery_options(RecoveryStrategy::stamp, 1);
        options.accept_loss = round % 4 == 0;
        (void)recovery::recover(*file, options);
        ++outcome.recovered;
      } catch (const Error&) {
        ++outcome.refused;
      }
    }
  }
  CHECK(outcome.recovered > 0);
  CHECK(outcome.refused > 0);
}

}  // namespace sp3::test

// What the library counts, and where.
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>

#include <catch2/catch.hpp>

#include "tests/runtime/cells.h"

namespace sp3::test {

TEST_CASE("long transactions are counted, and watermarks written, each at their own times") {
  for (const std::uint32_t watermark_ms : {0U, 60'000U, 4'294'967'295U}) {
    Options options = quiet_options();
    options.watermark_ms = watermark_ms;
    options.long_transaction_ms = 20;
    Cells p(options);
    p.session.run([&](Transaction& tx) {
      (void)p.read(tx, 0);
      for (int ms = 0; ms < 20'000 && p.pool.statistics().long_transactions == 0; ++ms)
        ::usleep(1000);
    });
    CHECK(p.pool.statistics().long_transactions == 1);
    CHECK(p.pool.statistics().flusher_lines == 0);
  }
}

TEST_CASE("what a session flushes of its own records while it waits is its own") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    Cells p(quiet_options(memory));
    Session other = p.pool.session();
    const auto add_async = [&](Session& session, int from, int to) {
      (void)session.run_async(
          [&](Transaction& tx) { tx.write(p.cells[to]).value += p.read(tx, from) + 1; });
    };
    const auto cost_of_read = [&](int i) {
      const SessionStatistics before = p.session.statistics();
      (void)p.session.run([&](Transaction& tx) { return p.read(tx, i); });
      SessionStatistics cost = p.session.statistics();
      cost.lines -= before.lines;
      cost.fences -= before.fences;
      cost.helped_lines -= before.helped_lines;
      cost.helped_fences -= before.helped_fences;
      return cost;
    };

    add_async(p.session, 0, 1);
    const SessionStatistics alone = cost_of_read(1);
    CHECK(alone.lines >= 1);
    CHECK(alone.fences == 1);
    CHECK(alone.helped_lines == 0);
    CHECK(alone.helped_fences == 0);

    // Another's, which depends on its own.
    add_async(p.session, 1, 2);
    add_async(other, 2, 3);
    const SessionStatistics both = cost_of_read(3);
    CHECK(both.lines == alone.lines);
    CHECK(both.fences == 1);
    CHECK(both.helped_lines >= 1);
    CHECK(both.helped_fences == 1);
  }
}

TEST_CASE("what is flushed for a ticket, by whoever waits for it, is among what was helped") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    Cells p(quiet_options(memory));
    auto ticket = p.session.run_async([&](Transaction& tx) { ++tx.write(p.cells[0]).value; });
    const SessionStatistics before = p.pool.statistics().sessions;
    ticket.wait();
    const SessionStatistics after = p.pool.statistics().sessions;
    CHECK(after.helped_lines > before.helped_lines);
    CHECK(after.helped_fences == before.helped_fences + 1);
    CHECK(after.lines == before.lines);
    CHECK(after.fences == before.fences);
    CHECK(p.pool.statistics().flusher_fences == 0);
  }
}

TEST_CASE("the bytes of watermarks are among those of all sessions") {
  const auto log_bytes = [](std::uint32_t watermark_ms) {
    Options options = quiet_options();
    options.watermark_ms = watermark_ms;
    const Cells p(options);
    for (int ms = 0; ms < 20'000 && watermark_ms != 0; ++ms) {
      if (p.pool.statistics().flusher_fences != 0) break;
      ::usleep(1000);
    }
    return p.pool.statistics().sessions.log_bytes;
  };
  CHECK(log_bytes(1) > log_bytes(0));
}

TEST_CASE("a failed attempt is counted by what it met") {
  const auto differences = [](const SessionStatistics& before, const SessionStatistics& after) {
    return std::array{after.aborts - before.aborts, after.aborts_locked - before.aborts_locked,
                      after.aborts_validation - before.aborts_validation};
  };
  Options options = quiet_options();
  Cells p(options);
  Session other = p.pool.session();
  // Found at commit: what was read has changed, or what is written.
  for (const bool writes : {false, true}) {
    const SessionStatistics before = p.session.statistics();
    int attempts = 0;
    p.session.run([&](Transaction& tx) {
      if (!writes) (void)p.read(tx, 0);
      tx.write(p.cells[writes ? 0 : 1]).value = 2;
      if (++attempts == 1) p.add(other, {0}, 1);
    });
    CHECK(differences(before, p.session.statistics()) == std::array<std::uint64_t, 3>{1, 0, 1});
  }
  // Found where an exception leaves the body.
  const SessionStatistics before = p.session.statistics();
  CHECK(p.code([&, attempts = 0](Transaction& tx) mutable {
    (void)p.read(tx, 0);
    if (++attempts == 1) p.add(other, {0}, 1);
    throw Error(ErrorCode::not_found, "the program's own");
    return 0;
  }) == "not_found");
  CHECK(differences(before, p.session.statistics()) == std::array<std::uint64_t, 3>{1, 0, 1});

  options.locks = LockTiming::encounter;
  Cells locked(options);
  Session reader = locked.pool.session();
  const std::string code = locked.code([&](Transaction& tx) {
    tx.write(locked.cells[0]).value = 1;
    return reader.run([&](Transaction& inner) { return locked.read(inner, 0); });
  });
  CHECK(code == "nested_transaction");
  CHECK(reader.statistics().aborts > 0);
  CHECK(reader.statistics().aborts_locked == reader.statistics().aborts);
}

TEST_CASE("a commit that waits for a predecessor is counted, and others are not") {
  Cells p(quiet_options());
  Session other = p.pool.session();
  p.add(p.session, {0}, 1);
  CHECK(p.session.statistics().waits == 0);
  (void)other.run_async([&](Transaction& tx) { ++tx.write(p.cells[0]).value; });
  p.add(p.session, {0}, 1);
  CHECK(p.session.statistics().waits == 1);
  p.add(p.session, {0}, 1);
  CHECK(p.session.statistics().waits == 1);
}

TEST_CASE("what commits, checkpoints and watermarks cost is counted") {
  Options options = quiet_options();
  options.watermark_ms = 1;
  Cells p(options);
  const SessionStatistics begun = p.session.statistics();
  for (int i = 0; i < 10; ++i) p.add(p.session, {0, 1, 2}, 1);
  const SessionStatistics done = p.session.statistics();
  CHECK((done.lines - begun.lines) * 64 == done.log_bytes - begun.log_bytes);

  const PoolStatistics before = p.pool.statistics();
  const PoolInfo info = p.pool.info();
  p.pool.checkpoint();
  const PoolStatistics after = p.pool.statistics();
  CHECK(after.checkpoint_bytes > before.checkpoint_bytes);
  CHECK(after.checkpoint_lines >= before.checkpoint_lines + 2);  // of two superblocks at least
  CHECK(after.checkpoint_fences == before.checkpoint_fences + 4);
  CHECK(after.checkpoint_longest_ns > 0);
  CHECK(p.pool.info().checkpoint_number == info.checkpoint_number + 1);
  CHECK(p.pool.info().checkpoint_floor > info.checkpoint_floor);
  CHECK(p.pool.info().objects >= 8);
  CHECK(p.pool.info().slabs_carved == 2);
  CHECK_FALSE(p.pool.info().clean);

  for (int ms = 0; ms < 20'000 && p.pool.statistics().flusher_fences == 0; ++ms) ::usleep(1000);
  CHECK(p.pool.statistics().flusher_fences > 0);
  CHECK(p.pool.statistics().flusher_lines > 0);
  CHECK(p.pool.statistics().log_bytes_used % 4096 == 0);
}

// Large objects, so that a block or a slot lost in each round shows.
TEST_CASE("what comes to nothing leaves neither memory nor slots taken") {
  struct Large {
    unsigned char bytes[8000];
  };
  Options options = quiet_options();
  options.geometry.slab_size = 65536;
  options.geometry.log_size = std::uint64_t{256} * 1024;
  options.policy = GENERATE(CommitPolicy::speculative, CommitPolicy::volatile_only);
  OnePool p(options, std::uint64_t{1} << 20);
  const auto large = p.session.run([](Transaction& tx) { return tx.make<Large>(); });
  const auto one_round = [&] {
    CHECK_THROWS_AS(p.session.run([&](Transaction& tx) {
      tx.write(large).bytes[0] = 1;
      tx.destroy(tx.make<Large>());
      tx.cancel();
    }),
                    Cancelled);
    Session other = p.pool.session();
    other.run([](Transaction& tx) { tx.destroy(tx.make<Large>()); });  // which changes nothing
    other.close();
    const auto doomed = p.session.run([&](Transaction& tx) {
      tx.destroy(tx.make<Large>());  // beside one that stays
      return tx.make<Large>();
    });
    p.session.run([&](Transaction& tx) {
      tx.write(doomed).bytes[0] = 1;
      tx.destroy(doomed);
    });
    if (options.policy == CommitPolicy::speculative) p.pool.checkpoint();
  };
  for (int i = 0; i < 4; ++i) one_round();
  const PoolStatistics before = p.pool.statistics();
  for (int i = 0; i < 200; ++i) one_round();
  const PoolStatistics after = p.pool.statistics();
  CHECK(after.slabs_used == before.slabs_used);
  CHECK(after.version_bytes < before.version_bytes + 100 * sizeof(Large));
}

}  // namespace sp3::test

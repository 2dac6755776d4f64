// What the library counts, and where.
#include <unistd.h>

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

}  // namespace sp3::test

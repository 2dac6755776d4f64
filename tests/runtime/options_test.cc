// What options ask for happens, and when.
#include <unistd.h>

#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/runtime/cells.h"
#include "tests/runtime/one_pool.h"

namespace sp3::test {

TEST_CASE("opening takes the pool's own geometry, whatever the options say") {
  OnePool one;
  const std::uint32_t sessions = one.pool.info().geometry.max_sessions;
  Options options = quiet_options();
  options.geometry = {.log_size = 3, .segment_size = 5, .slab_size = 7, .max_sessions = 99'999};
  one.reopen(options);
  CHECK(one.pool.info().geometry.max_sessions == sessions);
}

TEST_CASE("an asynchronous group is flushed at so many bytes") {
  Options options = quiet_options();
  options.async.group_bytes = 1024;
  Cells p(options);
  std::vector<Ticket> tickets;
  const SessionStatistics before = p.session.statistics();
  while (p.session.statistics().fences == before.fences && tickets.size() < 100) {
    tickets.push_back(p.session.run_async([&](Transaction& tx) {
      for (const auto cell : p.cells) ++tx.write(cell).value;
    }));
  }
  const SessionStatistics after = p.session.statistics();
  CHECK(after.fences == before.fences + 1);
  CHECK(tickets.size() > 1);
  CHECK(tickets.size() < options.async.group_records);
  CHECK(after.log_bytes - before.log_bytes >= 1024);
  for (const Ticket& ticket : tickets) CHECK(ticket.ready());
}

// The mark waits for another session, so that one item is not persisted when the next group begins.
TEST_CASE("an asynchronous group begins with the first record after a flush, not with a mark") {
  Options options = quiet_options();
  options.async.group_records = 2;
  Cells p(options);
  Session other = p.pool.session();
  const auto write = [&](Session& session, std::size_t cell) {
    return session.run_async([&](Transaction& tx) { ++tx.write(p.cells[cell]).value; });
  };
  const auto fences = [&] { return p.session.statistics().fences; };
  (void)write(p.session, 0);
  (void)write(p.session, 0);
  const std::uint64_t flushed = fences();
  const Ticket predecessor = write(other, 1);
  const Ticket mark = p.session.run_async([&](Transaction& tx) { (void)tx.read(p.cells[1]); });
  CHECK_FALSE(predecessor.ready());
  CHECK_FALSE(mark.ready());
  (void)write(p.session, 0);
  CHECK(fences() == flushed);
  (void)write(p.session, 0);
  CHECK(fences() == flushed + 1);
}

TEST_CASE("a checkpoint starts when so much of the log is in use") {
  Options options = quiet_options();
  options.checkpoint.background = true;
  options.checkpoint.interval_ms = 0;
  options.checkpoint.log_percent = 25;
  Cells p(options);
  const auto used = [&] { return p.pool.statistics().log_bytes_used; };
  const std::uint64_t quarter = p.pool.statistics().log_bytes_total / 4;
  const auto write = [&] {
    p.session.run([&](Transaction& tx) {
      for (const auto cell : p.cells) ++tx.write(cell).value;
    });
  };
  while (used() + 4096 < quarter) write();
  CHECK(p.pool.statistics().checkpoints == 0);
  // One is asked for when the log grows to a quarter; each write after that waits for it a little.
  for (int i = 0; i < 20'000 && p.pool.statistics().checkpoints == 0; ++i) {
    if (used() < 2 * quarter) write();
    ::usleep(1000);
  }
  CHECK(p.pool.statistics().checkpoints != 0);
  CHECK(p.session.statistics().aborts_log_full == 0);
}

TEST_CASE("a transaction takes the serial gate after so many aborts") {
  Options options = quiet_options();
  options.serial_after_aborts = 3;
  Cells p(options);
  Session other = p.pool.session();
  std::vector<std::uint64_t> taken;
  p.session.run([&](Transaction& tx) {
    taken.push_back(p.session.statistics().serial_transactions);
    const std::int64_t seen = p.read(tx, 0);
    if (taken.size() <= 3) p.add(other, {0}, 1);
    tx.write(p.cells[1]).value = seen;
  });
  CHECK(taken == std::vector<std::uint64_t>{0, 0, 0, 1});
}

}  // namespace sp3::test

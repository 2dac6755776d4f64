// What is particular to libpmemobj: what its transactions flush and fence, seen from between it and
// libpmem, and that the emulated latency is paid there.
#include <stdexcept>

#include <catch2/catch.hpp>

#include "emu/clock.h"
#include "tests/support/skip.h"
#include "tests/workloads/support.h"
#include "workloads/runner.h"

using namespace sp3::workloads;
using sp3::test::has_system;
using sp3::test::small_options;
using sp3::test::TempPath;

namespace {

ClientCounters count(WorkloadKind kind, double insert_ratio, int operations) {
  const TempPath path("pmdk");
  WorkloadSpec spec;
  spec.kind = kind;
  spec.entries = 1000;
  spec.insert_ratio = insert_ratio;
  const auto system = make_system("pmdk");
  system->create(spec, small_options("pmdk", path));
  system->populate();
  const Zipf zipf(spec.entries, spec.zipf);
  OperationStream stream(spec, zipf, 0, 500);
  ClientCounters counters;
  {
    const auto client = system->connect();
    // The first transactions of a thread set up its lane and arena.
    for (int i = 0; i < 10; ++i) client->execute(stream.next());
    const ClientCounters before = client->counters();
    for (int i = 0; i < operations; ++i) client->execute(stream.next());
    counters = client->counters();
    counters -= before;
  }
  system->close();
  return counters;
}

}  // namespace

TEST_CASE("An undo-log transaction of libpmemobj fences as often as docs/PEERS.md says") {
  if (!has_system("pmdk")) SP3_SKIP("built without libpmemobj");
  // Two snapshots of two fences each, the data, and the log's end.
  const ClientCounters swaps = count(WorkloadKind::sps, 0, 100);
  CHECK(swaps.writing_commits == 100);
  CHECK(swaps.fences == 600);
  CHECK(swaps.lines == 1300);
  for (const WorkloadKind map :
       {WorkloadKind::hashtable, WorkloadKind::rbtree, WorkloadKind::bptree}) {
    const ClientCounters updates = count(map, 1, 100);
    CHECK(updates.writing_commits == 100);
    CHECK(updates.fences == 400);
    const ClientCounters searches = count(map, 0, 100);
    CHECK(searches.commits == 100);
    CHECK(searches.writing_commits == 0);
    CHECK(searches.fences == 0);
    CHECK(searches.lines == 0);
  }
}

TEST_CASE("The emulated latency is added to each of libpmemobj's fences or lines") {
  if (!has_system("pmdk")) SP3_SKIP("built without libpmemobj");
  const sp3::LatencyModel model =
      GENERATE(sp3::LatencyModel::line, sp3::LatencyModel::fence, sp3::LatencyModel::yield);
  const TempPath path("pmdk");
  WorkloadSpec spec;
  spec.entries = 100;
  SystemOptions options = small_options("pmdk", path);
  options.pool.latency = {.model = model, .nanoseconds = 20'000};
  const auto system = make_system("pmdk");
  system->create(spec, options);
  system->populate();
  {
    const auto client = system->connect();
    const std::uint64_t start = sp3::emu::ticks();
    for (std::uint64_t i = 0; i < 20; ++i) client->execute({OperationKind::swap, i, i + 1});
    const double passed = sp3::emu::nanoseconds_from_ticks(sp3::emu::ticks() - start);
    const ClientCounters counters = client->counters();
    const std::uint64_t charged =
        model == sp3::LatencyModel::line ? counters.lines : counters.fences;
    REQUIRE(charged >= 20 * 6);
    CHECK(passed >= 0.99 * 20'000 * static_cast<double>(charged));
  }
  system->close();
}

TEST_CASE("pmdk refuses what libpmem decides, and stores that hold something else") {
  if (!has_system("pmdk")) SP3_SKIP("built without libpmemobj");
  const TempPath path("pmdk");
  WorkloadSpec spec;
  spec.entries = 100;
  SystemOptions options = small_options("pmdk", path);
  {
    const auto system = make_system("pmdk");
    system->create(spec, options);
    system->close();
  }
  WorkloadSpec other = spec;
  other.entry_size = 256;
  CHECK_THROWS_AS(make_system("pmdk")->open(other, options), std::runtime_error);
  options.pool.flush = sp3::FlushInstruction::clflush;
  CHECK(why_unsupported("pmdk", spec, options) != "");
  CHECK_THROWS_AS(make_system("pmdk")->open(spec, options), std::invalid_argument);
}

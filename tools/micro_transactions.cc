// What transactions take: as little as there is, beside the floor of their lines, and beside
// checkpoints.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>
#include <sp3/sp3.h>

#include "tools/bench_run.h"
#include "tools/median.h"
#include "tools/micro.h"
#include "workloads/entry.h"
#include "workloads/pool_remover.h"
#include "workloads/runner.h"

namespace sp3::tools {

using workloads::SystemOptions;

namespace {

// A workload on sp3, on a fresh pool.
workloads::RunResult run_sp3(const SystemOptions& options, workloads::WorkloadKind kind,
                             unsigned threads, double seconds, bool latency) {
  workloads::WorkloadSpec spec;
  spec.kind = kind;
  const workloads::RunOptions run{.threads = threads,
                                  .seconds = seconds,
                                  .operations = 0,
                                  .warmup_seconds = 0.2,
                                  .latency = latency};
  return run_once({"sp3", spec, run, options, {}}, workloads::Zipf(spec.entries, spec.zipf), false);
}

// Keeps the compiler from moving or merging what is timed.
inline void barrier() { asm volatile("" ::: "memory"); }

// The median time of `operation` over that of an empty loop.
template <class F>
double ns_over_empty_loop(unsigned repeat, F&& operation) {
  constexpr std::uint64_t kCount = 1'000'000;
  const auto timed = [&] {
    operation();
    barrier();
  };
  std::vector<double> times;
  static_cast<void>(ns_each(kCount / 10, timed));
  for (unsigned r = 0; r < repeat; ++r) {
    const double empty = ns_each(kCount, [] { barrier(); });
    times.push_back(ns_each(kCount, timed) - empty);
  }
  return median(times);
}

}  // namespace

std::vector<MicroRow> measure_floor_ratio(const SystemOptions& given, double seconds,
                                          unsigned repeat) {
  SystemOptions options = given;
  if (options.pool_size == 0) options.pool_size = workloads::default_pool_size({});
  std::vector<double> transactions, writes, ratios;
  unsigned lines = 0;
  for (unsigned r = 0; r < repeat; ++r) {
    const auto sps = run_sp3(options, workloads::WorkloadKind::sps, 1, seconds, false);
    lines = std::max(1U, static_cast<unsigned>(std::lround(sps.lines_per_tx())));
    const auto floor = measure_floor(options, lines, seconds);
    transactions.push_back(sps.throughput());
    writes.push_back(floor.writes_per_s);
    ratios.push_back(sps.throughput() / floor.writes_per_s);
  }
  return {{"floor", median(writes), "writes/s",
           fmt::format("{} lines, one fence, nothing else", lines), options},
          {"floor_sps", median(transactions), "tx/s", "sps, 1 thread, same memory", options},
          {"floor_ratio", median(ratios), "", "sps over floor; aim >= 0.7 without added latency",
           options}};
}

std::vector<MicroRow> measure_small(const SystemOptions& given, unsigned repeat, bool empty,
                                    bool read) {
  using Entry = workloads::Entry<128>;
  SystemOptions options = given;
  options.pool_size = std::uint64_t{64} << 20;
  workloads::PoolRemover remover(options.path);
  Pool pool =
      remover.making([&] { return Pool::create(options.path, options.pool_size, options.pool); });
  Session session = pool.session();
  const Ptr<Entry> object =
      session.run([](Transaction& tx) { return tx.make<Entry>(Entry::of(1)); });
  std::vector<MicroRow> rows;
  if (empty) {
    const double ns = ns_over_empty_loop(repeat, [&] { session.run([](Transaction&) {}); });
    rows.push_back({"empty_transaction", ns, "ns", "over an empty loop; aim <= 40 ns", options});
  }
  if (read) {
    std::uint64_t sum = 0;
    const auto body = [&](Transaction& tx) { sum += tx.read(object).tag(); };
    const double fresh = ns_over_empty_loop(repeat, [&] { session.run(body); });
    pool.checkpoint();
    const double home = ns_over_empty_loop(repeat, [&] { session.run(body); });
    rows.push_back(
        {"read_transaction", home, "ns", "one cached object at home; aim <= 60 ns", options});
    rows.push_back(
        {"read_transaction_version", fresh, "ns", "one cached object in a DRAM version", options});
    if (sum == 0) throw std::runtime_error("the object that was read is not the one that was made");
  }
  session.close();
  pool.close();
  return rows;
}

std::vector<MicroRow> measure_checkpoint(const SystemOptions& options, double seconds,
                                         unsigned repeat) {
  std::vector<double> longest_without, longest_with, late_without, late_with, slow_without,
      slow_with;
  std::uint64_t checkpoints = 0;
  SystemOptions with = options;
  with.pool.checkpoint.interval_ms = 50;
  SystemOptions without = options;
  without.pool.checkpoint.interval_ms = 0;
  without.pool.checkpoint.background = false;
  // A log that the run does not fill, so that no session has to make room for itself.
  without.pool_size = with.pool_size = kCheckpointPool;
  without.pool.geometry.log_size = with.pool.geometry.log_size = std::uint64_t{4} << 30;
  for (unsigned r = 0; r < repeat; ++r) {
    const auto quiet = run_sp3(without, workloads::WorkloadKind::sps, 2, seconds, true);
    const auto busy = run_sp3(with, workloads::WorkloadKind::sps, 2, seconds, true);
    longest_without.push_back(quiet.longest_ns());
    longest_with.push_back(busy.longest_ns());
    late_without.push_back(quiet.latency_ns(0.9999));
    late_with.push_back(busy.latency_ns(0.9999));
    slow_without.push_back(quiet.slower_per_s(1e6));
    slow_with.push_back(busy.slower_per_s(1e6));
    checkpoints += busy.background.checkpoints;
  }
  const double without_ns = median(longest_without);
  const double with_ns = median(longest_with);
  const char* const percentile = "99.99th percentile";
  const char* const slow = "transactions of more than 1 ms";
  return {{"checkpoint_longest_without", without_ns / 1000, "us", "2 threads, sps, no checkpoints",
           without},
          {"checkpoint_longest_with", with_ns / 1000, "us",
           fmt::format("a checkpoint every 50 ms, {} in all", checkpoints), with},
          {"checkpoint_added_pause", (with_ns - without_ns) / 1000, "us", "aim < 1000 us", with},
          {"checkpoint_p9999_without", median(late_without) / 1000, "us", percentile, without},
          {"checkpoint_p9999_with", median(late_with) / 1000, "us", percentile, with},
          {"checkpoint_slow_without", median(slow_without), "1/s", slow, without},
          {"checkpoint_slow_with", median(slow_with), "1/s", slow, with}};
}

}  // namespace sp3::tools

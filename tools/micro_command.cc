// sp3 micro: the parts that a transaction's cost is made of.
#include "tools/micro.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <sp3/sp3.h>
#include <nlohmann/json.hpp>

#include "tools/bench_options.h"
#include "tools/bench_run.h"
#include "tools/command.h"
#include "tools/median.h"
#include "tools/repeats.h"
#include "workloads/entry.h"
#include "workloads/machine.h"
#include "workloads/pool_remover.h"
#include "workloads/runner.h"

namespace sp3::tools {

namespace {

using workloads::SystemOptions;

struct MicroArguments {
  StoreArguments store;
  OpenArguments open;
  std::string open_size = "4G";
  double seconds = 1.0;
  unsigned repeat = 3;
  bool floor = false, empty = false, read = false, checkpoint = false, opening = false, all = false;
  bool calibrate = false;
  std::string json;
};

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

// SPS beside a loop that only writes and flushes as many lines, alternating.
std::vector<MicroRow> measure_floor_ratio(const SystemOptions& options, const MicroArguments& a) {
  std::vector<double> transactions, writes, ratios;
  unsigned lines = 0;
  for (unsigned r = 0; r < a.repeat; ++r) {
    const auto sps = run_sp3(options, workloads::WorkloadKind::sps, 1, a.seconds, false);
    lines = std::max(1U, static_cast<unsigned>(std::lround(sps.lines_per_tx())));
    const auto floor = measure_floor(options, lines, a.seconds);
    transactions.push_back(sps.throughput());
    writes.push_back(floor.writes_per_s);
    ratios.push_back(sps.throughput() / floor.writes_per_s);
  }
  return {{"floor", median(writes), "writes/s",
           fmt::format("{} lines, one fence, nothing else", lines)},
          {"floor_sps", median(transactions), "tx/s", "sps, 1 thread, same memory"},
          {"floor_ratio", median(ratios), "", "sps over floor; aim >= 0.7 without added latency"}};
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

std::vector<MicroRow> measure_small(const SystemOptions& options, const MicroArguments& a,
                                    bool empty, bool read) {
  using Object = workloads::Entry<128>;
  const workloads::PoolRemover remover(options.path);
  Pool pool = Pool::create(options.path, std::uint64_t{64} << 20, options.pool);
  Session session = pool.session();
  const Ptr<Object> object =
      session.run([](Transaction& tx) { return tx.make<Object>(Object::of(1)); });
  std::vector<MicroRow> rows;
  if (empty) {
    const double ns = ns_over_empty_loop(a.repeat, [&] { session.run([](Transaction&) {}); });
    rows.push_back({"empty_transaction", ns, "ns", "over an empty loop; aim <= 40 ns"});
  }
  if (read) {
    std::uint64_t sum = 0;
    const auto body = [&](Transaction& tx) { sum += tx.read(object).tag(); };
    const double fresh = ns_over_empty_loop(a.repeat, [&] { session.run(body); });
    pool.checkpoint();
    const double home = ns_over_empty_loop(a.repeat, [&] { session.run(body); });
    rows.push_back({"read_transaction", home, "ns", "one cached object at home; aim <= 60 ns"});
    rows.push_back(
        {"read_transaction_version", fresh, "ns", "one cached object in a DRAM version"});
    if (sum == 0) throw std::runtime_error("the object that was read is not the one that was made");
  }
  session.close();
  pool.close();
  return rows;
}

// The longest transactions of two writing threads, with checkpoints and without.
std::vector<MicroRow> measure_checkpoint(const SystemOptions& options, const MicroArguments& a) {
  std::vector<double> longest_without, longest_with, late_without, late_with, slow_without,
      slow_with;
  std::uint64_t checkpoints = 0;
  SystemOptions with = options;
  with.pool.checkpoint.interval_ms = 50;
  SystemOptions without = options;
  without.pool.checkpoint.interval_ms = 0;
  without.pool.checkpoint.background = false;
  // A log that the run does not fill, so that no session has to make room for itself.
  without.pool_size = with.pool_size = std::uint64_t{6} << 30;
  without.pool.geometry.log_size = with.pool.geometry.log_size = std::uint64_t{4} << 30;
  for (unsigned r = 0; r < a.repeat; ++r) {
    const auto quiet = run_sp3(without, workloads::WorkloadKind::sps, 2, a.seconds, true);
    const auto busy = run_sp3(with, workloads::WorkloadKind::sps, 2, a.seconds, true);
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
  return {
      {"checkpoint_longest_without", without_ns / 1000, "us", "2 threads, sps, no checkpoints"},
      {"checkpoint_longest_with", with_ns / 1000, "us",
       fmt::format("a checkpoint every 50 ms, {} in all", checkpoints)},
      {"checkpoint_added_pause", (with_ns - without_ns) / 1000, "us", "aim < 1000 us"},
      {"checkpoint_p9999_without", median(late_without) / 1000, "us", "99.99th percentile"},
      {"checkpoint_p9999_with", median(late_with) / 1000, "us", "99.99th percentile"},
      {"checkpoint_slow_without", median(slow_without), "1/s", "transactions of more than 1 ms"},
      {"checkpoint_slow_with", median(slow_with), "1/s", "transactions of more than 1 ms"}};
}

nlohmann::json to_json_rows(const std::vector<MicroRow>& rows, const SystemOptions& options) {
  const workloads::Machine machine = workloads::describe_machine();
  nlohmann::json all = nlohmann::json::array();
  for (const MicroRow& r : rows) {
    nlohmann::json row = to_json(options);
    row.update({{"micro", r.name},
                {"value", r.value},
                {"unit", r.unit},
                {"note", r.note},
                {"commit", workloads::built_from()},
                {"machine", to_json(machine)}});
    all.push_back(row);
  }
  return all;
}

int run(MicroArguments a) {
  check_repeat(a.repeat);
  check_seconds(a.seconds);
  const bool chosen = a.floor || a.empty || a.read || a.checkpoint || a.opening || a.calibrate;
  if (!chosen || a.all) a.floor = a.empty = a.read = a.checkpoint = true;
  if (a.all) a.opening = true;
  a.open.pool_size = parse_size(a.open_size);
  const SystemOptions options = system_options(a.store);
  std::vector<MicroRow> rows;
  const auto add = [&](std::vector<MicroRow> more) {
    std::ranges::move(more, std::back_inserter(rows));
  };
  if (a.empty || a.read) add(measure_small(options, a, a.empty, a.read));
  if (a.floor) add(measure_floor_ratio(options, a));
  if (a.checkpoint) add(measure_checkpoint(options, a));
  if (a.opening) add(measure_open(options, a.open));
  if (a.calibrate) add(measure_costs(options, a.repeat));

  std::FILE* out = a.json == "-" ? stderr : stdout;
  for (const MicroRow& row : rows) {
    fmt::print(out, "{:<28} {:>14.2f} {:<9} {}\n", row.name, row.value, row.unit, row.note);
  }
  if (!a.json.empty()) write_output(a.json, to_json_rows(rows, options).dump(2) + "\n");
  return kOk;
}

}  // namespace

void add_micro_command(CLI::App& app, int& exit_code) {
  auto a = std::make_shared<MicroArguments>();
  CLI::App* micro = app.add_subcommand(
      "micro", "measure what transactions are made of (default: all but --open)");
  micro->add_flag("--floor", a->floor, "sps over only writing and flushing the same lines");
  micro->add_flag("--empty", a->empty, "an empty transaction");
  micro->add_flag("--read", a->read, "a transaction that reads one cached object");
  micro->add_flag("--checkpoint", a->checkpoint,
                  "the longest pause that checkpoints add (makes a pool of 6 GiB)");
  micro->add_flag("--open", a->opening, "opening a cleanly closed pool");
  micro->add_flag("--all", a->all, "all of the above");
  micro->add_flag("--calibrate", a->calibrate, "what sp3 sim --calibrate makes its costs of");
  micro->add_option("--open-objects", a->open.objects, "in the pool of --open")
      ->check(at_least_one())
      ->capture_default_str();
  micro->add_option("--open-size", a->open_size, "of the pool of --open")->capture_default_str();
  micro->add_option("--seconds", a->seconds, "of each timed run")->capture_default_str();
  micro->add_option("--repeat", a->repeat, "runs; the median counts")->capture_default_str();
  add_output_option(*micro, "--json", a->json, "write the rows to this file, - for stdout");
  add_store_options(*micro, a->store);
  micro->callback([a, &exit_code] { exit_code = run(*a); });
}

}  // namespace sp3::tools

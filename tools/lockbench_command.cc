// sp3 lockbench: range locks side by side. Locks alternate within a run, so that a machine that
// slows down slows all of them; each row is the run with the median throughput, given with the
// spread.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "emu/clock.h"
#include "tools/bench_options.h"
#include "tools/command.h"
#include "tools/distance_rows.h"
#include "tools/failures.h"
#include "tools/lockbench/run.h"
#include "tools/median.h"
#include "tools/print_to.h"
#include "tools/progress_bar.h"
#include "tools/repeats.h"
#include "workloads/machine.h"

namespace sp3::tools {

namespace {

struct LockbenchArguments {
  std::string locks = "skiplist,grid";
  std::string workloads = "W1";
  std::string threads = "1";
  std::string held;
  std::uint64_t slots = 65536;
  std::uint64_t buckets = 65536;
  unsigned max_height = RangeLockOptions{}.max_height;
  double seconds = 0.5;
  std::uint64_t pairs = 0;
  unsigned repeat = 3;
  std::uint64_t seed = 1;
  bool instructions = false;
  std::string distance;
  std::string json;
};

struct Row {
  LockRun run;
  std::vector<LockResult> results;  // sorted by throughput when all are there
  double instructions = 0;          // per pair, if counted
  std::exception_ptr failure = nullptr;
  std::string skipped;  // why it cannot be run
};

std::vector<std::string> parse_locks(const std::string& text) {
  std::vector<std::string> names = split_list("--lock", text, lock_names());
  for (const std::string& name : names) {
    if (std::ranges::find(lock_names(), name) == lock_names().end()) {
      throw UsageError(fmt::format("--lock: wanted all, or some of {}, found '{}'",
                                   fmt::join(lock_names(), ", "), name));
    }
  }
  return names;
}

std::uint64_t parse_number(const std::string& option, const std::string& text) {
  const std::optional<std::uint64_t> number = whole_number(text);
  if (number) return *number;
  throw UsageError(fmt::format("{}: wanted a number, found '{}'", option, text));
}

// The points that a workload sweeps over, each a change to the run.
std::vector<LockRun> points_of(const LockRun& base, const LockbenchArguments& a) {
  std::vector<LockRun> points;
  const auto add = [&](auto&& change) {
    LockRun point = base;
    change(point);
    points.push_back(point);
  };
  switch (base.workload) {
    case LockWorkload::w1:
    case LockWorkload::w2:
      return {base};
    case LockWorkload::uncontended:
      for (const std::string& held : split_list("--held", a.held.empty() ? "0,256,65536" : a.held))
        add([&](LockRun& point) { point.held = parse_number("--held", held); });
      return points;
    case LockWorkload::height:
      for (unsigned height = 1; height <= 16; ++height)
        add([&](LockRun& point) { point.options.max_height = height; });
      return points;
    case LockWorkload::shared:
      for (const unsigned writes : {0U, 1U, 20U, 100U})
        add([&](LockRun& point) { point.writes = writes; });
      return points;
    case LockWorkload::overlap:
      for (const std::uint64_t slots : {65536U, 1024U, 64U, 8U})
        add([&](LockRun& point) { point.slots = slots; });
      return points;
  }
  return points;
}

// What each thread holds of W2 at once has to be there, or they wait for each other for ever.
void check_batches(const LockRun& run) {
  const std::uint64_t ranges = std::uint64_t{kLockBatch} * run.threads;
  if (run.workload == LockWorkload::w2 && run.slots < ranges) {
    throw UsageError(fmt::format("--slots: W2 wants {} for each thread, {} or more; found {}",
                                 kLockBatch, ranges, run.slots));
  }
}

// The grid checks its own. Ranges that share a bucket of `bare` exclude each other: with four for
// each range, those that W2 needs are in different ones.
void check_buckets(const LockRun& run) {
  if (run.lock != "bare") return;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  std::uint64_t least = 64;
  if (run.workload == LockWorkload::w2) {
    least = std::max(least, std::bit_ceil(std::uint64_t{4} * kLockBatch * run.threads));
  }
  const std::uint64_t found = run.options.buckets;
  if (!std::has_single_bit(found) || found < least || found > kMost) {
    throw UsageError(fmt::format("--buckets: wanted a power of two from {} to {}, found {}", least,
                                 kMost, found));
  }
}

// Before anything runs, which may take long: the grid refuses others itself.
void check_grid(const LockRun& run) {
  if (run.lock == "grid") GridRangeLock{run.options};
}

// One row for each lock that can do what the point asks for.
void add_rows(std::vector<Row>& rows, const LockRun& point, const LockbenchArguments& a) {
  if (point.held > point.slots) {
    throw UsageError(fmt::format("--held: at most {} ranges fit; see --slots", point.slots));
  }
  check_batches(point);
  for (const std::string& lock : parse_locks(a.locks)) {
    Row row{point, {}, 0};
    row.run.lock = lock;
    check_buckets(row.run);
    check_grid(row.run);
    if (point.workload == LockWorkload::shared && point.writes != 100 && !has_shared_mode(lock)) {
      continue;
    }
    rows.push_back(row);
  }
}

// Rows that differ in the lock only are neighbours: they alternate.
std::vector<Row> make_rows(const LockbenchArguments& a) {
  LockRun base;
  base.seconds = a.seconds;
  base.pairs = a.pairs;
  base.slots = a.slots;
  base.seed = a.seed;
  base.options.granule = 1024;  // the benchmark's ranges
  base.options.buckets = a.buckets;
  base.options.max_height = a.max_height;
  const std::vector<std::string> workloads = split_list("--workload", a.workloads);
  const std::vector<unsigned> all_threads = parse_thread_list(a.threads);
  const std::vector<unsigned> one_thread{1};
  std::vector<Row> rows;
  for (const std::string& name : workloads) {
    base.workload = parse_enum("--workload", name, LockWorkload::overlap);
    // One thread, whatever the others are run with; but who asks for it alone asks in vain.
    const bool alone = base.workload == LockWorkload::uncontended;
    if (alone && workloads.size() == 1 && all_threads != one_thread) {
      throw UsageError("--threads: 'uncontended' means one thread");
    }
    for (const unsigned threads : alone ? one_thread : all_threads) {
      base.threads = threads;
      for (const LockRun& point : points_of(base, a)) add_rows(rows, point, a);
    }
  }
  if (rows.empty()) throw UsageError("there is nothing to run");
  return rows;
}

bool same_point(const Row& one, const Row& other) {
  const LockRun& x = one.run;
  const LockRun& y = other.run;
  return x.workload == y.workload && x.threads == y.threads && x.held == y.held &&
         x.writes == y.writes && x.slots == y.slots && x.options.max_height == y.options.max_height;
}

void run_all(std::vector<Row>& rows, const LockbenchArguments& a, const DistanceLimits& distance) {
  ProgressBar progress;
  std::size_t done = 0;
  in_turn(rows, a.repeat, same_point, [&](Row& row, unsigned r) {
    if (row.failure != nullptr || !row.skipped.empty()) return;
    LockRun run = row.run;
    run.seed = a.seed + r;
    progress.show(fmt::format("{} {} x{}", run.lock, to_string(run.workload), run.threads), done++,
                  rows.size() * a.repeat);
    try {
      row.results.push_back(
          run_at_distance(distance, run.threads, [&run] { return run_lock(run); }));
    } catch (const CannotHold& reason) {
      row.skipped = reason.what();
    } catch (const std::exception&) {
      row.failure = std::current_exception();
    }
  });
  for (Row& row : rows) std::ranges::sort(row.results, {}, &LockResult::pairs_per_s);
}

const LockResult& median(const Row& row) { return median_of_sorted(row.results); }

double spread(const Row& row) {
  const double middle = median(row).pairs_per_s();
  if (middle <= 0) return 0;
  return (row.results.back().pairs_per_s() - row.results.front().pairs_per_s()) / middle;
}

bool is_timed(const LockResult& result) { return result.latency_ticks.count() != 0; }
double latency_ns(const LockResult& result, double fraction) {
  return emu::nanoseconds_from_ticks(result.latency_ticks.percentile(fraction));
}

nlohmann::json row_json(const Row& row, const nlohmann::json& machine) {
  const LockRun& run = row.run;
  nlohmann::json json = {{"lock", run.lock},
                         {"workload", to_string(run.workload)},
                         {"threads", run.threads},
                         {"held", run.held},
                         {"slots", run.slots},
                         {"writes_percent", run.writes},
                         {"max_height", run.options.max_height},
                         {"buckets", run.options.buckets},
                         {"seed", run.seed},
                         {"commit", workloads::built_from()},
                         {"machine", machine}};
  if (row.results.empty()) {
    json["instructions_per_pair"] =
        std::isnan(row.instructions) ? nlohmann::json() : nlohmann::json(row.instructions);
    return json;
  }
  const LockResult& r = median(row);
  // null says that it was not measured.
  const auto ns = [&](double fraction) {
    return is_timed(r) ? nlohmann::json(latency_ns(r, fraction)) : nlohmann::json();
  };
  json.update({{"seconds", r.seconds},
               {"pairs", r.pairs},
               {"pairs_per_s", r.pairs_per_s()},
               {"ns_per_pair", 1e9 * run.threads / std::max(r.pairs_per_s(), 1.0)},
               {"repeat", row.results.size()},
               {"spread", spread(row)},
               {"conflicts", r.conflicts},
               {"latency_p50_ns", ns(0.5)},
               {"latency_p99_ns", ns(0.99)},
               {"fairness", r.fairness},
               {"line_transfer_ns", distance_json(r.line_transfer_ns)}});
  for (const LockResult& each : row.results)
    json["line_transfers_ns"].push_back(distance_json(each.line_transfer_ns));
  json["memory_per_held_bytes"] =
      run.held != 0 ? nlohmann::json(r.memory_per_held_bytes) : nlohmann::json();
  return json;
}

// What tells the rows of a sweep apart.
std::string point_name(const LockRun& run) {
  switch (run.workload) {
    case LockWorkload::uncontended:
      return fmt::format("{} held", run.held);
    case LockWorkload::height:
      return fmt::format("height {}", run.options.max_height);
    case LockWorkload::shared:
      return fmt::format("{} % writes", run.writes);
    case LockWorkload::overlap:
      return fmt::format("{} ranges", run.slots);
    default:
      return "";
  }
}

void print_table(std::FILE* out, const std::vector<Row>& rows, bool instructions) {
  const auto print_name = [&](const Row& row) {
    print_to(out, "{:<12} {:<14} {:>7} {:<14}", to_string(row.run.workload), point_name(row.run),
             row.run.threads, row.run.lock);
  };
  print_to(out, "{:<12} {:<14} {:>7} {:<14}", "workload", "", "threads", "lock");
  if (instructions) {
    print_to(out, " {:>14}\n", "instructions");
    for (const Row& row : rows) {
      print_name(row);
      print_to(out, " {:>14}\n",
               std::isnan(row.instructions) ? "-" : fmt::format("{:.0f}", row.instructions));
    }
    return;
  }
  print_to(out, " {:>10} {:>7} {:>9} {:>9} {:>9} {:>9} {:>10} {:>7}\n", "kpairs/s", "spread",
           "ns/pair", "p50 ns", "p99 ns", "fairness", "bytes/held", "line ns");
  for (const Row& row : rows) {
    const LockResult& r = median(row);
    const auto ns = [&](double fraction) {
      return is_timed(r) ? fmt::format("{:.0f}", latency_ns(r, fraction)) : "-";
    };
    print_name(row);
    print_to(out, " {:>10.0f} {:>6.1f}% {:>9.1f} {:>9} {:>9} {:>9.2f} {:>10} {:>7}\n",
             r.pairs_per_s() / 1000, spread(row) * 100,
             1e9 * row.run.threads / std::max(r.pairs_per_s(), 1.0), ns(0.5), ns(0.99), r.fairness,
             row.run.held != 0 ? fmt::format("{:.0f}", r.memory_per_held_bytes) : "-",
             r.line_transfer_ns > 0 ? fmt::format("{:.0f}", r.line_transfer_ns) : "-");
  }
}

// Takes the rows that cannot be run out, and says so.
void set_skipped_aside(std::vector<Row>& rows, std::FILE* out) {
  std::vector<std::string> reasons;
  for (const Row& row : rows) {
    if (!row.skipped.empty()) reasons.push_back(row.skipped);
  }
  if (!reasons.empty() && reasons.size() == rows.size()) throw UsageError(reasons.front());
  for (const std::string& reason : reasons) print_to(out, "skipped: {}\n", reason);
  std::erase_if(rows, [](const Row& row) { return !row.skipped.empty(); });
}

// Takes the rows that failed out, and says so. Rethrows if no other is there.
Failures set_failures_aside(std::vector<Row>& rows, std::FILE* out) {
  Failures failures;
  for (const Row& row : rows) {
    if (row.failure == nullptr) continue;
    const std::string point = point_name(row.run);
    failures.add(
        fmt::format("{} on {}{} with {} threads", row.run.lock, to_string(row.run.workload),
                    point.empty() ? "" : ", " + point, row.run.threads),
        row.failure);
  }
  failures.require_some_of(rows.size());
  std::erase_if(rows, [](const Row& row) { return row.failure != nullptr; });
  for (const std::string& line : failures.lines()) print_to(out, "failed: {}\n", line);
  return failures;
}

// What none of the chosen workloads, or of the chosen locks, looks at.
void refuse_options_without_effect(const CLI::App& bench, const LockbenchArguments& a) {
  std::vector<std::string> workloads = split_list("--workload", a.workloads);
  if (a.instructions) workloads = {to_string(LockWorkload::uncontended)};
  const std::vector<std::string> locks = parse_locks(a.locks);
  const auto refuse = [&](const char* option, const std::vector<std::string>& chosen,
                          const auto& is_used_by) {
    if (bench.count(option) == 0 || std::ranges::any_of(chosen, is_used_by)) return;
    throw means_nothing(option, chosen);
  };
  refuse("--held", workloads, [](const std::string& name) { return name == "uncontended"; });
  // Those that go through all of them themselves.
  refuse("--slots", workloads, [](const std::string& name) { return name != "overlap"; });
  refuse("--max-height", workloads, [](const std::string& name) { return name != "height"; });
  refuse("--max-height", locks, has_towers);
  refuse("--buckets", locks, has_buckets);
  if (std::ranges::find(workloads, "height") != workloads.end() &&
      std::ranges::none_of(locks, has_towers)) {
    throw means_nothing("--workload height", locks);
  }
}

int run(const CLI::App& bench, const LockbenchArguments& a) {
  refuse_options_without_effect(bench, a);
  check_repeat(a.repeat);
  check_seconds(a.seconds);
  if (a.slots < 16 || a.slots > 65536) {
    throw UsageError(fmt::format("--slots: wanted 16 to 65536, found {}", a.slots));
  }
  const DistanceLimits distance = parse_distance_limits(a.distance);
  LockbenchArguments b = a;
  if (a.instructions) b.workloads = "uncontended";
  std::vector<Row> rows = make_rows(b);
  std::FILE* const out = a.json == "-" ? stderr : stdout;
  if (a.instructions) {
    std::erase_if(rows, [](const Row& row) { return row.run.lock == "none"; });
    if (rows.empty()) throw UsageError("--lock: 'none' has no instructions to count");
    std::vector<LockRun> runs;
    runs.reserve(rows.size());
    for (const Row& row : rows) runs.push_back(row.run);
    const std::vector<double> counts = count_instructions(runs);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].instructions = counts[i];
  } else {
    lockbench_array();
    run_all(rows, b, distance);
  }
  set_skipped_aside(rows, out);
  const std::size_t all = rows.size();
  const Failures failures = set_failures_aside(rows, out);
  print_origin(out);
  print_table(out, rows, a.instructions);
  const nlohmann::json machine = to_json(workloads::describe_machine());
  nlohmann::json json = nlohmann::json::array();
  for (const Row& row : rows) json.push_back(row_json(row, machine));
  if (!a.instructions) print_distances(out, json);
  if (!a.json.empty()) write_output(a.json, to_text(json) + "\n");
  failures.require_none_of(all);
  return kOk;
}

}  // namespace

void add_lockbench_command(CLI::App& app, int& exit_code) {
  auto a = std::make_shared<LockbenchArguments>();
  CLI::App* bench = app.add_subcommand("lockbench", "measure range locks");
  bench
      ->add_option("--lock", a->locks,
                   fmt::format("all, or a list of {}", fmt::join(lock_names(), ", ")))
      ->capture_default_str();
  auto* workload = bench
                       ->add_option("--workload", a->workloads,
                                    "a list of W1, W2, uncontended, height, shared, overlap")
                       ->capture_default_str();
  bench->add_option("--threads", a->threads, "a list of numbers; uncontended runs with one")
      ->capture_default_str();
  bench->add_option("--held", a->held, "uncontended: ranges that are held (default: 0,256,65536)");
  bench
      ->add_option(
          "--slots", a->slots,
          "different 1 KiB ranges to choose from, up to 65536; W2 wants 16 for each thread")
      ->capture_default_str();
  bench->add_option("--buckets", a->buckets, "of grid and bare")->capture_default_str();
  bench->add_option("--max-height", a->max_height, "of the skip list's towers")
      ->capture_default_str();
  auto* seconds = bench->add_option("--seconds", a->seconds, "of each run")->capture_default_str();
  auto* pairs = bench->add_option("--pairs", a->pairs, "of each thread, instead of a time")
                    ->check(at_least_one())
                    ->excludes(seconds);
  auto* repeat = bench->add_option("--repeat", a->repeat, "runs of each row; the median counts")
                     ->capture_default_str();
  bench->add_option("--seed", a->seed, "of the ranges")->capture_default_str();
  auto* distance = add_distance_option(*bench, a->distance);
  bench
      ->add_flag("--instructions", a->instructions,
                 "count instructions per uncontended pair with valgrind, instead of time")
      ->excludes(workload)
      ->excludes(seconds)
      ->excludes(pairs)
      ->excludes(repeat)
      ->excludes(distance);
  add_output_option(*bench, "--json", a->json, "write the rows to this file, - for stdout");
  bench->callback([a, bench, &exit_code] { exit_code = run(*bench, *a); });
}

}  // namespace sp3::tools

// sp3 bench: workloads on systems. Systems alternate within a run, so that a machine that slows down
// slows all of them; each cell is the run with the median throughput, given with the spread of all.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/bench_options.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "workloads/machine.h"
#include "workloads/runner.h"

namespace sp3::tools {

namespace {

using workloads::RunOptions;
using workloads::RunResult;
using workloads::SystemOptions;
using workloads::WorkloadSpec;

struct BenchArguments {
  StoreArguments store;
  std::string workloads = "all";
  std::string systems = "sp3";
  std::string threads = "1";
  WorkloadSpec spec;
  RunOptions run;
  unsigned repeat = 3;
  bool no_latency = false;
  bool check = false;
  std::string json;
};

// One line of the table: a system on a workload with some threads.
struct Cell {
  std::string system;
  WorkloadSpec spec;
  RunOptions run;
  SystemOptions options;
  std::vector<RunResult> results;  // sorted by throughput when all are there
};

struct Plan {
  std::vector<Cell> cells;
  std::vector<std::string> skipped;  // why some combinations are not there
};

std::vector<workloads::WorkloadKind> parse_workloads(const std::string& text) {
  if (text == "all")
    return {std::begin(workloads::kAllWorkloads), std::end(workloads::kAllWorkloads)};
  std::vector<workloads::WorkloadKind> kinds;
  for (const std::string& name : split_list("--workload", text)) {
    kinds.push_back(workloads::workload_from_name(name));
  }
  return kinds;
}

// Systems that share a workload and a number of threads are neighbours: they alternate.
Plan make_plan(const BenchArguments& a) {
  Plan plan;
  const SystemOptions options = system_options(a.store);
  for (const workloads::WorkloadKind kind : parse_workloads(a.workloads)) {
    for (const std::string& threads : split_list("--threads", a.threads)) {
      for (const std::string& system : split_list("--system", a.systems)) {
        Cell cell{system, a.spec, a.run, options, {}};
        cell.spec.kind = kind;
        cell.spec.validate();
        cell.run.threads = parse_threads(threads);
        cell.run.latency = !a.no_latency;
        cell.run.validate();
        const std::string reason = workloads::why_unsupported(system, cell.spec, options);
        if (reason.empty()) {
          plan.cells.push_back(std::move(cell));
        } else {
          plan.skipped.push_back(
              fmt::format("{} on {}: {}", system, workloads::to_string(kind), reason));
        }
      }
    }
  }
  if (plan.cells.empty()) {
    throw UsageError(plan.skipped.empty() ? "there is nothing to run" : plan.skipped.front());
  }
  return plan;
}

RunResult run_once(const Cell& cell, const workloads::Zipf& zipf, bool check) {
  const PoolRemover remover(cell.options.path);
  const std::unique_ptr<workloads::System> system = workloads::make_system(cell.system);
  system->create(cell.spec, cell.options);
  system->populate();
  RunResult result = workloads::run_workload(*system, cell.spec, zipf, cell.run);
  if (check) {
    const std::string violation = system->check();
    if (!violation.empty()) {
      throw std::runtime_error(fmt::format("{} on {}: {}", cell.system,
                                           workloads::to_string(cell.spec.kind), violation));
    }
  }
  system->close();
  return result;
}

void run_all(Plan& plan, const BenchArguments& a) {
  Progress progress;
  const workloads::Zipf zipf(a.spec.entries, a.spec.zipf);
  const std::size_t total = plan.cells.size() * a.repeat;
  std::size_t done = 0;
  const auto same_group = [](const Cell& x, const Cell& y) {
    return x.spec.kind == y.spec.kind && x.run.threads == y.run.threads;
  };
  for (std::size_t first = 0; first < plan.cells.size();) {
    std::size_t last = first;
    while (last < plan.cells.size() && same_group(plan.cells[first], plan.cells[last])) ++last;
    for (unsigned r = 0; r < a.repeat; ++r) {
      for (std::size_t i = first; i < last; ++i) {
        Cell& cell = plan.cells[i];
        progress.show(fmt::format("{} {} x{}", cell.system, workloads::to_string(cell.spec.kind),
                                  cell.run.threads),
                      done++, total);
        cell.spec.seed = a.spec.seed + r;  // another course each time, the same for every system
        cell.results.push_back(run_once(cell, zipf, a.check));
      }
    }
    first = last;
  }
  for (Cell& cell : plan.cells) {
    cell.spec.seed = a.spec.seed;
    std::ranges::sort(cell.results, {}, &RunResult::throughput);
  }
}

const RunResult& median(const Cell& cell) { return cell.results[(cell.results.size() - 1) / 2]; }

// How far the runs lie apart, relative to the median.
double spread(const Cell& cell) {
  const double middle = median(cell).throughput();
  if (middle <= 0) return 0;
  return (cell.results.back().throughput() - cell.results.front().throughput()) / middle;
}

nlohmann::json row_json(const Cell& cell, const FlushCost& flush, const nlohmann::json& machine) {
  const RunResult& r = median(cell);
  nlohmann::json row = to_json(cell.options);
  const bool async = cell.options.asynchronous || cell.system == "sp3-async";
  row.update({{"system", cell.system},
              {"workload", workloads::to_string(cell.spec.kind)},
              {"threads", cell.run.threads},
              {"entries", cell.spec.entries},
              {"entry_size", cell.spec.entry_size},
              {"zipf", cell.spec.zipf},
              {"insert_ratio", cell.spec.insert_ratio},
              {"fill", cell.spec.fill},
              {"seed", cell.spec.seed},
              {"durability", async ? "async" : "sync"},
              {"seconds", r.seconds},
              {"operations", r.operations},
              {"misses", r.misses},
              {"throughput_tx_per_s", r.throughput()},
              {"repeat", cell.results.size()},
              {"spread", spread(cell)}});
  row.update({{"commits", r.counters.commits},
              {"writing_commits", r.counters.writing_commits},
              {"aborts", r.counters.aborts},
              {"abort_ratio", r.abort_ratio()},
              {"fences_per_tx", r.fences_per_tx()},
              {"lines_per_tx", r.lines_per_tx()},
              {"helped_fences", r.counters.helped_fences},
              {"helped_lines", r.counters.helped_lines},
              {"waits", r.counters.waits},
              {"log_bytes", r.counters.log_bytes},
              {"checkpoints", r.background.checkpoints},
              {"checkpoint_lines", r.background.checkpoint_lines},
              {"checkpoint_fences", r.background.checkpoint_fences},
              {"flusher_lines", r.background.flusher_lines},
              {"flusher_fences", r.background.flusher_fences}});
  // Without --no-latency; null says that it was not measured.
  const bool timed = r.latency_ticks.count() != 0;
  const auto ns = [&](double fraction) {
    return timed ? nlohmann::json(r.latency_ns(fraction)) : nlohmann::json();
  };
  row.update({{"latency_p50_ns", ns(0.5)},
              {"latency_p99_ns", ns(0.99)},
              {"latency_p999_ns", ns(0.999)},
              {"latency_max_ns", timed ? nlohmann::json(r.longest_ns()) : nlohmann::json()},
              {"flush", to_string(flush.instruction)},
              {"flush_cost_ns", flush.nanoseconds},
              {"simulated", false},
              {"commit", workloads::built_from()},
              {"machine", machine}});
  nlohmann::json all = nlohmann::json::array();
  for (const RunResult& result : cell.results) all.push_back(result.throughput());
  row["throughputs"] = all;
  return row;
}

void print_table(std::FILE* out, const Plan& plan, const FlushCost& flush) {
  const Cell& any = plan.cells.front();
  fmt::print(
      out, "{} entries of {} bytes, zipf {}, {:.0f} % inserts; {} memory, {} flush, +{} ns ({})\n",
      any.spec.entries, any.spec.entry_size, any.spec.zipf, any.spec.insert_ratio * 100,
      to_string(any.options.pool.memory), to_string(flush.instruction),
      any.options.pool.latency.nanoseconds, to_string(any.options.pool.latency.model));
  fmt::print(out, "one line flushed and fenced costs {:.0f} ns here; seed {}, median of {}\n\n",
             flush.nanoseconds, any.spec.seed, any.results.size());
  fmt::print(out, "{:<10} {:>7} {:<10} {:>10} {:>7} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10}\n",
             "workload", "threads", "system", "ktx/s", "spread", "aborts/tx", "fences/wr",
             "lines/wr", "p50 ns", "p99 ns", "max ns");
  for (const Cell& cell : plan.cells) {
    const RunResult& r = median(cell);
    fmt::print(
        out,
        "{:<10} {:>7} {:<10} {:>10.1f} {:>6.1f}% {:>9.4f} {:>9.3f} {:>9.2f} {:>10.0f} {:>10.0f} "
        "{:>10.0f}\n",
        workloads::to_string(cell.spec.kind), cell.run.threads, cell.system, r.throughput() / 1000,
        spread(cell) * 100, r.abort_ratio(), r.fences_per_tx(), r.lines_per_tx(), r.latency_ns(0.5),
        r.latency_ns(0.99), r.longest_ns());
  }
  for (const std::string& reason : plan.skipped) fmt::print(out, "skipped: {}\n", reason);
}

int run(const BenchArguments& a) {
  if (a.repeat < 1 || a.repeat > 1000) {
    throw UsageError(fmt::format("--repeat: wanted 1 to 1000, found {}", a.repeat));
  }
  Plan plan = make_plan(a);
  const FlushCost flush = measure_flush(plan.cells.front().options);
  run_all(plan, a);
  print_table(a.json == "-" ? stderr : stdout, plan, flush);
  if (!a.json.empty()) {
    const nlohmann::json machine = to_json(workloads::describe_machine());
    nlohmann::json rows = nlohmann::json::array();
    for (const Cell& cell : plan.cells) rows.push_back(row_json(cell, flush, machine));
    write_output(a.json, rows.dump(2) + "\n");
  }
  return kOk;
}

std::string system_names() {
  std::string names;
  for (const workloads::SystemInfo& info : workloads::systems()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  return names;
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_code) {
  auto a = std::make_shared<BenchArguments>();
  CLI::App* bench = app.add_subcommand("bench", "measure workloads on systems");
  bench
      ->add_option("--workload", a->workloads,
                   "all, or a list of sps, queue, hashtable, rbtree, bptree")
      ->capture_default_str();
  bench->add_option("--system", a->systems, "a list of " + system_names())->capture_default_str();
  bench->add_option("--threads", a->threads, "a list of numbers")->capture_default_str();
  bench->add_option("--entries", a->spec.entries, "array length, keys, or values in the queue")
      ->capture_default_str();
  bench->add_option("--entry-size", a->spec.entry_size, "16, 64, 128, 256, 1024 or 4096 bytes")
      ->capture_default_str();
  bench->add_option("--zipf", a->spec.zipf, "skew, 0 (uniform) to below 1")->capture_default_str();
  bench->add_option("--insert-ratio", a->spec.insert_ratio, "share of inserts or enqueues")
      ->capture_default_str();
  bench->add_option("--fill", a->spec.fill, "share of the keys present at the start")
      ->capture_default_str();
  auto* seconds =
      bench->add_option("--seconds", a->run.seconds, "of each run")->capture_default_str();
  bench->add_option("--operations", a->run.operations, "of each run, instead of a time")
      ->excludes(seconds);
  bench->add_option("--warmup", a->run.warmup_seconds, "seconds before each run is measured")
      ->capture_default_str();
  bench->add_option("--repeat", a->repeat, "runs of each cell; the median counts")
      ->capture_default_str();
  bench->add_option("--seed", a->spec.seed, "of the operations")->capture_default_str();
  bench->add_flag("--no-latency", a->no_latency, "do not time each transaction");
  bench->add_flag("--check", a->check, "check the structure's invariants after each run");
  bench->add_option("--json", a->json, "write the rows to this file, - for stdout");
  add_store_options(*bench, a->store);
  bench->callback([a, &exit_code] { exit_code = run(*a); });
}

}  // namespace sp3::tools

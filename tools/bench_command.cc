// sp3 bench: workloads on systems. Systems alternate within a run, so that a machine that slows
// down slows all of them; each cell is the run with the median throughput, given with the spread of
// all.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/bench_options.h"
#include "tools/bench_rows.h"
#include "tools/bench_run.h"
#include "tools/command.h"
#include "tools/distance_rows.h"
#include "tools/option_effects.h"
#include "tools/probe/probes.h"
#include "tools/progress_bar.h"
#include "tools/repeats.h"
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
  std::string mixes = to_string(workloads::Mix::paper);
  WorkloadSpec spec;
  RunOptions run;
  unsigned repeat = 3;
  bool no_latency = false;
  bool check = false;
  std::string probes = "none";
  std::string distance;
  std::string json;
};

std::vector<workloads::Mix> parse_mixes(const std::string& text) {
  std::vector<workloads::Mix> mixes;
  for (const std::string& name : split_list("--mix", text)) {
    for (const workloads::Mix mix : workloads::mixes_from_name(name)) {
      if (std::ranges::find(mixes, mix) == mixes.end()) mixes.push_back(mix);
    }
  }
  return mixes;
}

// YCSB's mixes say themselves how much is inserted, and begin with all keys.
void refuse_what_mixes_settle(const CLI::App& bench, const BenchArguments& a) {
  for (const workloads::Mix mix : parse_mixes(a.mixes)) {
    if (mix == workloads::Mix::paper) continue;
    for (const char* option : {"--insert-ratio", "--fill"}) {
      if (bench.get_option(option)->count() == 0) continue;
      throw UsageError(fmt::format("{} excludes --mix {}", option, to_string(mix)));
    }
  }
}

// Systems that share a workload, a mix and a number of threads are neighbours: they alternate.
Plan make_plan(const BenchArguments& a) {
  Plan plan;
  const SystemOptions options = system_options(a.store);
  const auto add_cells = [&](workloads::WorkloadKind kind, workloads::Mix mix, unsigned threads) {
    for (const std::string& system : split_list("--system", a.systems)) {
      Cell cell{system, a.spec, a.run, options, {}};
      cell.spec.kind = kind;
      cell.spec.mix = mix;
      cell.run.threads = threads;
      cell.run.latency = !a.no_latency;
      add_cell(plan, std::move(cell));
    }
  };
  for (const workloads::WorkloadKind kind : parse_workloads(a.workloads)) {
    for (const workloads::Mix mix : parse_mixes(a.mixes)) {
      for (const unsigned threads : parse_thread_list(a.threads)) add_cells(kind, mix, threads);
    }
  }
  require_cells(plan);
  return plan;
}

void run_all(Plan& plan, const BenchArguments& a, const DistanceLimits& distance,
             const std::vector<std::string>& probes) {
  ProgressBar progress;
  const workloads::Zipf zipf(a.spec.entries, a.spec.zipf);
  const std::size_t total = plan.cells.size() * a.repeat;
  std::size_t done = 0;
  const auto same_group = [](const Cell& x, const Cell& y) {
    return x.spec.kind == y.spec.kind && x.spec.mix == y.spec.mix && x.run.threads == y.run.threads;
  };
  in_turn(plan.cells, a.repeat, same_group, [&](Cell& cell, unsigned r) {
    if (cell.failure != nullptr) return;
    progress.show(fmt::format("{} {} x{}", cell.system, name_of(cell.spec), cell.run.threads),
                  done++, total);
    cell.spec.seed = a.spec.seed + r;  // another course each time, the same for every system
    try {
      cell.results.push_back(run_once(cell, zipf, a.check, distance, probes));
    } catch (const std::exception&) {
      cell.failure = std::current_exception();
    }
  });
  for (Cell& cell : plan.cells) {
    cell.spec.seed = a.spec.seed;
    std::ranges::sort(cell.results, {}, &RunResult::throughput);
  }
}

int run(const BenchArguments& a) {
  check_repeat(a.repeat);
  check_seconds(a.run.seconds);
  Plan plan = make_plan(a);
  const std::vector<std::string> probes = parse_probes(a.probes);
  const DistanceLimits distance = parse_distance_limits(a.distance);
  const FlushCost flush = measure_flush(plan.cells.front().options);
  run_all(plan, a, distance, probes);
  const std::size_t cells = plan.cells.size();
  set_failures_aside(plan);
  std::FILE* const out = a.json == "-" ? stderr : stdout;
  print_origin(out);
  print_table(out, plan, flush);
  if (!a.json.empty()) {
    const nlohmann::json machine = to_json(workloads::describe_machine());
    nlohmann::json rows = nlohmann::json::array();
    for (const Cell& cell : plan.cells) rows.push_back(row_json(cell, flush, machine));
    write_output(a.json, to_text(rows) + "\n");
  }
  plan.failed.require_none_of(cells);
  return kOk;
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_code) {
  auto a = std::make_shared<BenchArguments>();
  CLI::App* bench = app.add_subcommand("bench", "measure workloads on systems");
  add_workload_option(*bench, a->workloads);
  bench->add_option("--system", a->systems, "a list of " + system_names())->capture_default_str();
  bench->add_option("--threads", a->threads, "a list of numbers")->capture_default_str();
  add_spec_options(*bench, a->spec);
  add_named_spec_options(*bench, a->spec);
  bench
      ->add_option(
          "--mix", a->mixes,
          "of hashtable and bptree, a list of " + workloads::mix_names() + "; ycsb: all six")
      ->capture_default_str();
  auto* seconds =
      bench->add_option("--seconds", a->run.seconds, "of each run")->capture_default_str();
  auto* warmup =
      bench
          ->add_option("--warmup", a->run.warmup_seconds,
                       "seconds before each run is measured; with --operations a tenth of them")
          ->capture_default_str();
  bench->add_option("--operations", a->run.operations, "of each run, instead of a time")
      ->check(at_least_one())
      ->excludes(seconds)
      ->excludes(warmup);
  bench->add_option("--repeat", a->repeat, "runs of each cell; the median counts")
      ->capture_default_str();
  bench->add_option("--seed", a->spec.seed, "of the operations")->capture_default_str();
  bench->add_flag("--no-latency", a->no_latency, "do not time each transaction");
  bench->add_flag("--check", a->check, "check the structure's invariants after each run");
  add_distance_option(*bench, a->distance);
  bench->add_option("--probe", a->probes, "none, or a list of perf and pcm: what counts beside it")
      ->capture_default_str();
  add_output_option(*bench, "--json", a->json, "write the rows to this file, - for stdout");
  add_store_options(*bench, a->store);
  bench->callback([a, bench, &exit_code] {
    refuse_what_mixes_settle(*bench, *a);
    refuse_options_without_effect(*bench, chosen(parse_workloads(a->workloads),
                                                 split_list("--system", a->systems), a->store));
    exit_code = run(*a);
  });
}

}  // namespace sp3::tools

// sp3 compare: the matrix of systems, workloads and memories in one go. Systems that share a
// setting run in turn, again for every repetition, so that a machine that changes its pace changes
// it for all.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/bench_run.h"
#include "tools/command.h"
#include "tools/compare/origin.h"
#include "tools/compare/plan.h"
#include "tools/compare/results.h"
#include "tools/distance_rows.h"
#include "tools/option_effects.h"
#include "tools/program_rows.h"
#include "tools/progress_bar.h"
#include "tools/recovery/rows.h"
#include "tools/repeats.h"
#include "tools/start_program.h"
#include "workloads/machine.h"

namespace sp3::tools {

namespace {

struct PlannedRun {
  const PlannedCell* cell;
  unsigned repetition;
};

// In the order in which they are run, without those that the results hold.
std::vector<PlannedRun> runs_left(const ComparePlan& plan, unsigned repeat,
                                  const CompareResults& results) {
  std::vector<PlannedRun> runs;
  const auto same_group = [](const PlannedCell& x, const PlannedCell& y) {
    return x.group() == y.group();
  };
  in_turn(plan.cells, repeat, same_group, [&](const PlannedCell& cell, unsigned r) {
    if (!results.has(cell, r)) runs.push_back({&cell, r});
  });
  return runs;
}

// How long the rest will take, by what runs of the same section took so far.
class TimeLeft {
 public:
  explicit TimeLeft(const std::vector<PlannedRun>& runs) {
    for (const PlannedRun& run : runs) ++sections_[run.cell->section].left;
  }
  void ran(const PlannedRun& run, double seconds) {
    Section& section = sections_[run.cell->section];
    --section.left;
    ++section.done;
    section.seconds += seconds;
  }
  [[nodiscard]] std::string text(const workloads::RunOptions& run) const {
    double seconds = 0;
    for (const auto& [name, section] : sections_) {
      // Setting up takes about half a second.
      const double one = section.done != 0 ? section.seconds / section.done
                                           : run.seconds + run.warmup_seconds + 0.5;
      seconds += one * section.left;
    }
    const auto whole = static_cast<long>(std::ceil(seconds));
    return whole >= 120 ? fmt::format("{} min left", (whole + 59) / 60)
                        : fmt::format("{} s left", whole);
  }

 private:
  struct Section {
    int left = 0;
    int done = 0;
    double seconds = 0;
  };
  std::map<std::string, Section> sections_;
};

// What a flush costs is measured once for each setting of the memory.
class FlushCosts {
 public:
  const FlushCost& of(const PlannedCell& cell) {
    const Options& pool = cell.cell.options.pool;
    const std::string setting =
        fmt::format("{} {} {}", to_string(pool.memory), pool.latency.nanoseconds,
                    to_string(pool.latency.model));
    const auto found = costs_.find(setting);
    if (found != costs_.end()) return found->second;
    return costs_.emplace(setting, measure_flush(cell.cell.options)).first->second;
  }

 private:
  std::map<std::string, FlushCost> costs_;
};

// Why cells and programs could not be measured, by name. The others go on.
using FailedCells = std::map<std::string, std::string>;

void run_all(const ComparePlan& plan, const CompareArguments& a, CompareResults& results,
             FailedCells& failures) {
  const std::vector<PlannedRun> runs = runs_left(plan, a.repeat, results);
  const std::size_t total = plan.cells.size() * a.repeat;
  const workloads::Zipf zipf(a.spec.entries, a.spec.zipf);
  FlushCosts flush;
  TimeLeft time_left(runs);
  ProgressBar progress;
  std::size_t done = total - runs.size();
  for (const PlannedRun& run : runs) {
    const std::string name = run.cell->name();
    progress.show(fmt::format("{}, {}", name, time_left.text(run.cell->cell.run)), done++, total);
    const auto start = std::chrono::steady_clock::now();
    Cell cell = run.cell->cell;
    cell.spec.seed = a.spec.seed + run.repetition;  // another course each time, the same for all
    if (!failures.contains(name)) {
      nlohmann::json measured;
      try {
        const FlushCost& cost = flush.of(*run.cell);
        measured = run_json(cell, run_once(cell, zipf, true, plan.distance), cost);
      } catch (const std::exception& error) {
        failures.emplace(name, error.what());
        results.fail(name, error.what());
      }
      if (!measured.is_null()) results.add(*run.cell, run.repetition, std::move(measured));
    }
    time_left.ran(run,
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
}

// The rows that the program measures. Throws if it fails, or if they are of another commit: what
// sp3 hands over to may have been built at another time.
nlohmann::json rows_of(const PlannedProgram& program, const CompareResults& results) {
  nlohmann::json rows = rows_of_program(kThisProgram, program.arguments);
  if (!program.checksum.empty() && checksum_of(program_beside(kSimulator)) != program.checksum) {
    throw std::runtime_error(fmt::format("{} was replaced while it ran", kSimulator));
  }
  for (const nlohmann::json& row : rows) {
    const std::string commit = row.value("commit", "");
    if (commit == results.commit()) continue;
    throw std::runtime_error(fmt::format("is built from {}, and this program from {}: build both",
                                         commit, results.commit()));
  }
  return rows;
}

// One after the other.
void run_programs(const ComparePlan& plan, CompareResults& results, FailedCells& failures) {
  ProgressBar progress;
  std::size_t done = 0;
  for (const PlannedProgram& program : plan.programs) {
    progress.show(program.name(), done++, plan.programs.size());
    if (results.has(program)) continue;
    nlohmann::json rows;
    try {
      rows = rows_of(program, results);
    } catch (const std::exception& error) {
      failures.emplace(program.name(), error.what());
      results.fail(program.name(), error.what());
    }
    if (!rows.is_null()) results.add(program, std::move(rows));
  }
}

// One table for each section and latency.
void print(const ComparePlan& plan, const CompareResults& results) {
  std::vector<std::pair<std::string, nlohmann::json>> tables;
  nlohmann::json recoveries = nlohmann::json::array();
  for (const nlohmann::json& row : results.rows()) {
    if (row.contains("recovery_seconds")) {
      recoveries.push_back(row);
      continue;
    }
    std::string title;
    for (const nlohmann::json& section : plan.sections) {
      if (section.at("name") == row.at("section")) title = section.at("title");
    }
    title += fmt::format(", +{} ns ({})", row.at("latency_ns").get<unsigned>(),
                         row.at("latency_model").get<std::string>());
    const auto where = row.find("file_system");
    if (where != row.end() && where->is_string()) title += ", on " + where->get<std::string>();
    const auto same = [&](const auto& table) { return table.first == title; };
    auto found = std::find_if(tables.begin(), tables.end(), same);
    if (found == tables.end()) found = tables.insert(found, {title, nlohmann::json::array()});
    found->second.push_back(row);
  }
  print_origin(stdout);
  for (const auto& [title, rows] : tables) {
    fmt::print("{}; a line flushed and fenced costs {:.0f} ns\n\n", title,
               rows.front().at("flush_cost_ns").get<double>());
    print_rows(stdout, rows);
    fmt::print("\n");
  }
  if (!recoveries.empty()) {
    print_recoveries(stdout, recoveries);
    fmt::print("\n");
  }
  for (const nlohmann::json& reason : results.skipped()) {
    fmt::print("skipped: {}\n", reason.get<std::string>());
  }
}

std::vector<workloads::WorkloadKind> workloads_of(const ComparePlan& plan) {
  std::set<workloads::WorkloadKind> kinds;
  for (const PlannedCell& planned : plan.cells) kinds.insert(planned.cell.spec.kind);
  for (const PlannedProgram& program : plan.programs) kinds.insert(program.workload);
  return {kinds.begin(), kinds.end()};
}

int run(const CLI::App& compare, const CompareArguments& a) {
  const ComparePlan plan = make_compare_plan(a);
  refuse_options_without_effect(compare, Chosen{.workloads = workloads_of(plan), .systems = {}});
  if (a.results == "-") throw UsageError("--results: wanted the name of a file, found '-'");
  CompareResults results(a.results, plan, to_json(workloads::describe_machine()),
                         workloads::built_from());
  FailedCells failures;
  run_all(plan, a, results, failures);
  run_programs(plan, results, failures);
  if (failures.empty()) results.finish();
  print(plan, results);
  if (failures.empty()) return kOk;
  throw std::runtime_error(fmt::format("{} of {} could not be measured, {}: {}", failures.size(),
                                       plan.cells.size() + plan.programs.size(),
                                       failures.begin()->first, failures.begin()->second));
}

}  // namespace

void add_compare_command(CLI::App& app, int& exit_code) {
  auto a = std::make_shared<CompareArguments>();
  CLI::App* compare = app.add_subcommand(
      "compare", "run the whole comparison with other systems, or go on with it");
  compare->add_flag("--full", a->full, "about half an hour, not two minutes");
  add_output_option(*compare, "--results", a->results,
                    "the file to write; one that is there is gone on with")
      ->capture_default_str();
  compare
      ->add_option("--section", a->sections,
                   "all, or a list of emulated, file, file-async, and with --full yield, "
                   "simulated, recovery")
      ->capture_default_str();
  compare
      ->add_option("--workload", a->workloads, "all, or a list of " + workloads::workload_names())
      ->capture_default_str();
  compare->add_option("--system", a->systems, "all, or a list of those of the sections")
      ->capture_default_str();
  compare->add_option("--threads", a->threads, "a list of numbers, for all sections");
  add_spec_options(*compare, a->spec);
  compare->get_option("--entries")->description("array length, keys, or values in the queue");
  compare->get_option("--insert-ratio")->description("share of inserts or enqueues");
  auto* seconds =
      compare->add_option("--seconds", a->seconds, "of each run (default: 0.3, with --full 0.7)");
  compare->add_option("--operations", a->operations, "of each run, instead of a time")
      ->check(at_least_one())
      ->excludes(seconds);
  compare->add_option("--repeat", a->repeat, "runs of each cell; the median counts")
      ->capture_default_str();
  compare->add_option("--seed", a->spec.seed, "of the operations")->capture_default_str();
  add_distance_option(*compare, a->distance);
  compare->add_option("--directory", a->directory, "where file memory is measured (default: here)");
  compare->callback([a, compare, &exit_code] { exit_code = run(*compare, *a); });
}

}  // namespace sp3::tools

// sp3 recovery-bench: logs that a process wrote until it died, recovered by each strategy with each
// number of threads (the paper's figure 8). All recoveries of a log start from the same crashed
// pool and must end in the same image; afterwards the workload's own check looks at it.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/bench_options.h"
#include "tools/bench_rows.h"
#include "tools/bench_run.h"
#include "tools/command.h"
#include "tools/failures.h"
#include "tools/median.h"
#include "tools/option_effects.h"
#include "tools/print_to.h"
#include "tools/progress_bar.h"
#include "tools/recovery/crashed_pool.h"
#include "tools/recovery/log_writer.h"
#include "tools/recovery/rows.h"
#include "tools/repeats.h"
#include "workloads/machine.h"
#include "workloads/pool_remover.h"
#include "workloads/process_usage.h"
#include "workloads/scratch_directory.h"

namespace sp3::tools {

namespace {

using recovery_bench::CrashedPool;
using recovery_bench::LogPlan;
using recovery_bench::RecoveryRun;
using recovery_bench::WrittenLog;

struct RecoveryArguments {
  StoreArguments store;
  workloads::WorkloadSpec spec;
  std::string workloads = "sps";
  std::string log_bytes = "1G";
  std::string checkpoints;
  std::string strategies = "stamp,dag";
  std::string threads = "1,2";
  unsigned writers = 2;
  unsigned repeat = 3;
  std::string json;
};

// One crashed pool, and the recoveries of it.
struct Recovered {
  RecoveryStrategy strategy;
  unsigned threads;
  std::vector<RecoveryRun> runs;  // by rising time once all are there
};
struct Log {
  LogPlan plan;
  WrittenLog written;
  std::vector<Recovered> cells;
};

std::vector<unsigned> checkpoint_intervals(const std::string& text) {
  if (text.empty()) return {0};
  std::vector<unsigned> intervals;
  for (const std::string& part : split_list("--checkpoint-ms", text)) {
    unsigned interval = 0;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), interval);
    if (error != std::errc() || *rest != '\0' || interval < 1 || interval > 3'600'000) {
      throw UsageError(
          fmt::format("--checkpoint-ms: wanted 1 to 3600000 milliseconds, found '{}'", part));
    }
    intervals.push_back(interval);
  }
  return intervals;
}

std::vector<Log> plan_logs(const RecoveryArguments& a) {
  std::vector<Recovered> cells;
  for (const std::string& strategy : split_list("--strategy", a.strategies)) {
    for (const unsigned threads : parse_thread_list(a.threads)) {
      cells.push_back({parse_strategy(strategy), threads, {}});
    }
  }
  std::vector<Log> logs;
  for (const workloads::WorkloadKind kind : parse_workloads(a.workloads)) {
    for (const std::string& text : split_list("--log-bytes", a.log_bytes)) {
      for (const unsigned interval : checkpoint_intervals(a.checkpoints)) {
        LogPlan plan{a.spec, system_options(a.store), a.writers, parse_size(text), interval};
        plan.spec.kind = kind;
        plan.spec.validate();
        if (plan.most_bytes < (1 << 20)) {
          throw UsageError(fmt::format("--log-bytes: wanted at least 1M, found {}", text));
        }
        logs.push_back({std::move(plan), {}, cells});
      }
    }
  }
  return logs;
}

// Of memory, beside a pool that is in memory itself: the homes kept aside, and what recovery takes,
// which for records of one small write each comes to half of the log.
std::uint64_t memory_beside(const LogPlan& plan) {
  return plan.pool_size() - plan.log_size() + plan.most_bytes / 2;
}

// Before anything is written: a machine that runs out of memory does not say so, it kills.
void require_space(const LogPlan& plan) {
  std::filesystem::path directory = plan.system.path.parent_path();
  if (directory.empty()) directory = ".";
  require_room("there is no room for the pool", directory, plan.pool_size(),
               workloads::left_in(directory));
  require_room("there is too little memory for recovery", directory,
               memory_beside(plan) + (workloads::is_in_memory(directory) ? plan.pool_size() : 0),
               workloads::available_memory());
}

void require_same(const Log& log, const RecoveryRun& run) {
  const RecoveryRun& first = log.cells.front().runs.front();
  if (run.image == first.image && run.report.replayed == first.report.replayed) return;
  throw std::runtime_error(
      fmt::format("{}: two recoveries of one log differ: {} records and image {:08x}, {} records "
                  "and image {:08x}",
                  log.plan.system.path.string(), first.report.replayed, first.image,
                  run.report.replayed, run.image));
}

void require_sound(const LogPlan& plan) {
  const auto system = workloads::make_system("sp3");
  system->open(plan.spec, plan.system);
  const std::string violation = workloads::check(*system, plan.spec);
  system->close();
  if (!violation.empty()) throw std::runtime_error("after recovery: " + violation);
}

// What makes the writing process plan this log, and no other.
std::vector<std::string> writer_arguments(const RecoveryArguments& a, const LogPlan& plan) {
  StoreArguments store = a.store;
  store.path = plan.system.path.string();
  std::vector<std::string> arguments = {"recovery-writer",
                                        "--workload",
                                        workloads::to_string(plan.spec.kind),
                                        "--log-bytes",
                                        fmt::to_string(plan.most_bytes),
                                        "--writers",
                                        fmt::to_string(plan.writers)};
  if (plan.milliseconds != 0) {
    arguments.insert(arguments.end(), {"--checkpoint-ms", fmt::to_string(plan.milliseconds)});
  }
  const Chosen all = chosen({plan.spec.kind}, {"sp3"}, store);
  for (const auto& more : {spec_arguments(plan.spec), memory_arguments(store, all)}) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  }
  return arguments;
}

// Strategies and threads alternate within each repetition.
void measure(Log& log, const RecoveryArguments& a) {
  require_space(log.plan);
  const workloads::PoolRemover remover(log.plan.system.path);
  log.written = recovery_bench::write_log(writer_arguments(a, log.plan));
  CrashedPool pool(log.plan.system.path, log.plan.system.pool);
  for (unsigned r = 0; r < a.repeat; ++r) {
    for (Recovered& cell : log.cells) {
      ProgressBar bar;
      const std::string what = fmt::format("{} x{}", to_string(cell.strategy), cell.threads);
      const auto show = [&](const Progress& progress) {
        bar.show(fmt::format("{}, {}", what, progress.phase), progress.done, progress.total);
      };
      cell.runs.push_back(pool.recover(cell.strategy, cell.threads, show));
      require_same(log, cell.runs.back());
    }
  }
  require_sound(log.plan);
  for (Recovered& cell : log.cells) std::ranges::sort(cell.runs, {}, &RecoveryRun::seconds);
}

std::string log_name(const LogPlan& plan) {
  const std::string interval =
      plan.milliseconds == 0 ? "" : fmt::format(" or {} ms", plan.milliseconds);
  return fmt::format("{}, {} of log{}", workloads::to_string(plan.spec.kind),
                     format_size(plan.most_bytes), interval);
}

double bytes_per_s(const RecoveryRun& run) {
  return static_cast<double>(run.report.bytes_scanned) / run.seconds;
}

nlohmann::json row_json(const Log& log, const Recovered& cell, const FlushCost& flush,
                        const nlohmann::json& machine) {
  const LogPlan& plan = log.plan;
  const RecoveryRun& run = median_of_sorted(cell.runs);
  const RecoveryReport& report = run.report;
  nlohmann::json all = nlohmann::json::array();
  for (const RecoveryRun& each : cell.runs) all.push_back(each.seconds);
  nlohmann::json row = to_json(plan.system, run.flush);
  row.update(to_json(plan.spec));
  row.update({{"strategy", to_string(report.strategy)},
              {"threads", cell.threads},
              {"workload", workloads::to_string(plan.spec.kind)},
              {"durability", plan.system.asynchronous ? "async" : "sync"},
              {"writers", plan.writers},
              {"checkpoint_ms", plan.milliseconds},
              {"log_limit_bytes", plan.most_bytes},
              {"write_seconds", log.written.seconds},
              {"pool_bytes", plan.pool_size()},
              {"flush_cost_ns", flush.nanoseconds}});
  row.update({{"recovery_seconds", run.seconds},
              {"recoveries", all},
              {"repeat", cell.runs.size()},
              {"spread", (all.back().get<double>() - all.front().get<double>()) / run.seconds},
              {"cpu_seconds", run.cpu_seconds},
              {"scan_seconds", report.scan_seconds},
              {"cut_seconds", report.cut_seconds},
              {"order_seconds", report.order_seconds},
              {"replay_seconds", report.replay_seconds},
              {"flush_seconds", report.flush_seconds},
              {"log_bytes", report.bytes_scanned},
              {"bytes_replayed", report.bytes_replayed},
              {"bytes_per_s", bytes_per_s(run)},
              {"records", report.records},
              {"replayed", report.replayed},
              {"dropped", report.dropped},
              {"torn", report.torn},
              {"sessions", report.sessions},
              {"dependencies", report.dependencies},
              {"memory_peak_bytes", run.memory_peak},
              {"commit", workloads::built_from()},
              {"machine", machine}});
  return row;
}

void print_log(std::FILE* out, const Log& log, const nlohmann::json& rows) {
  const LogPlan& plan = log.plan;
  const RecoveryReport& report = median_of_sorted(log.cells.front().runs).report;
  print_to(out, "{}, {}; {}, {}; seed {}\n", workloads::to_string(plan.spec.kind),
           describe_size(plan.spec), describe_memory(plan.system),
           describe(plan.system.pool.latency), plan.spec.seed);
  print_to(
      out, "{} threads wrote {} of log in {:.2f} s{}; {} records, {} dropped, {} dependencies\n",
      plan.writers, format_size(report.bytes_scanned), log.written.seconds,
      plan.milliseconds == 0
          ? ""
          : fmt::format(
                " (checkpoints every {} s{})", plan.milliseconds / 1000.0,
                log.written.log_bytes >= plan.most_bytes ? ", ended earlier by --log-bytes" : ""),
      report.records, report.dropped, report.dependencies);
  print_recoveries(out, rows);
  print_to(out, "\n");
}

int run(const RecoveryArguments& a) {
  check_repeat(a.repeat);
  if (a.writers < 1 || a.writers > 128) {
    throw UsageError(fmt::format("--writers: wanted 1 to 128, found {}", a.writers));
  }
  std::vector<Log> logs = plan_logs(a);
  std::FILE* const out = a.json == "-" ? stderr : stdout;
  const nlohmann::json machine = to_json(workloads::describe_machine());
  nlohmann::json rows = nlohmann::json::array();
  Failures failures;
  print_origin(out);
  const FlushCost flush = measure_flush(logs.front().plan.system);  // all are in one memory
  print_to(out, "{}\n", describe(flush));
  for (Log& log : logs) {
    try {
      measure(log, a);
    } catch (const std::exception&) {
      failures.add(log_name(log.plan), std::current_exception());
      print_to(out, "failed: {}\n\n", failures.lines().back());
      continue;
    }
    nlohmann::json some = nlohmann::json::array();
    for (const Recovered& cell : log.cells) some.push_back(row_json(log, cell, flush, machine));
    print_log(out, log, some);
    std::fflush(out);
    // If nobody reads this, and nothing else is written, there is nobody to go on for.
    if (a.json.empty()) require_output();
    rows.insert(rows.end(), some.begin(), some.end());
  }
  failures.require_some_of(logs.size());
  if (!a.json.empty()) write_output(a.json, to_text(rows) + "\n");
  failures.require_none_of(logs.size());
  return kOk;
}

// What a log is made of.
void add_log_options(CLI::App& command, RecoveryArguments& a) {
  command
      .add_option("--log-bytes", a.log_bytes,
                  "a list: the process dies with so much log, in bytes, with K, M, G")
      ->capture_default_str();
  command.add_option(
      "--checkpoint-ms", a.checkpoints,
      "a list: it dies so long after a checkpoint, if --log-bytes is not reached before");
  command.add_option("--writers", a.writers, "threads that write the log")->capture_default_str();
  add_workload_option(command, a.workloads);
  add_spec_options(command, a.spec);
  add_named_spec_options(command, a.spec);
  command.add_option("--seed", a.spec.seed, "of the operations")->capture_default_str();
  add_memory_options(command, a.store);
}

void add_writer_command(CLI::App& app) {
  auto a = std::make_shared<RecoveryArguments>();
  auto descriptor = std::make_shared<int>(-1);
  CLI::App* writer = app.add_subcommand("recovery-writer", "the process that writes a log");
  writer->group("");  // not in the help
  add_log_options(*writer, *a);
  writer->add_option("--descriptor", *descriptor)->required();
  writer->callback(
      [a, descriptor] { recovery_bench::live_and_die(plan_logs(*a).front().plan, *descriptor); });
}

}  // namespace

void add_recovery_command(CLI::App& app, int& exit_code) {
  add_writer_command(app);
  auto a = std::make_shared<RecoveryArguments>();
  CLI::App* bench = app.add_subcommand(
      "recovery-bench", "write logs until the process dies, then measure recovering them");
  add_log_options(*bench, *a);
  bench->add_option("--strategy", a->strategies, "a list of stamp, dag")->capture_default_str();
  bench->add_option("--threads", a->threads, "a list of numbers, of threads that recover")
      ->capture_default_str();
  bench->add_option("--repeat", a->repeat, "recoveries of each kind; the median counts")
      ->capture_default_str();
  add_output_option(*bench, "--json", a->json, "write the rows to this file, - for stdout");
  bench->callback([a, bench, &exit_code] {
    refuse_options_without_effect(*bench, chosen(parse_workloads(a->workloads), {"sp3"}, a->store));
    exit_code = run(*a);
  });
}

}  // namespace sp3::tools

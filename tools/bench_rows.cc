#include "tools/bench_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "emu/clock.h"
#include "tools/command.h"
#include "tools/distance_rows.h"
#include "tools/median.h"
#include "tools/print_to.h"
#include "workloads/machine.h"

namespace sp3::tools {

using workloads::RunResult;

namespace {

std::array<std::uint32_t, 3> parse_mix(const std::string& text) {
  std::array<std::uint32_t, 3> mix{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < mix.size(); ++i) {
    const auto [rest, error] = std::from_chars(at, end, mix[i]);
    const bool right = i + 1 < mix.size() ? rest != end && *rest == ':' : rest == end;
    if (error != std::errc() || !right) break;
    if (rest == end) return mix;
    at = rest + 1;
  }
  throw UsageError("--range-mix: wanted READS:WRITES:APPENDS, found '" + text + "'");
}

// Null where operations are counted instead of time.
nlohmann::json warmup_seconds(const workloads::RunOptions& run) {
  return run.operations != 0 ? nlohmann::json() : nlohmann::json(run.warmup_seconds);
}

// What was counted is there, for each operation; what was not is absent, and a note says why.
void add_probed(nlohmann::json& run, const RunResult& result) {
  for (const workloads::ProbeReading& reading : result.probed) {
    for (const auto& [name, count] : reading.counts) {
      if (result.operations != 0)
        run[name + "_per_tx"] = count / static_cast<double>(result.operations);
    }
    run["probes"][reading.probe] = reading.note.empty() ? "available" : reading.note;
  }
}

// The cell whose size tells most: entries mean nothing to tpcc, and inserts nothing to YCSB.
const workloads::WorkloadSpec& telling_spec(const Plan& plan) {
  const auto rank = [](const Cell& cell) {
    if (cell.spec.kind == workloads::WorkloadKind::tpcc) return 2;
    return cell.spec.mix == workloads::Mix::paper ? 0 : 1;
  };
  return std::ranges::min_element(plan.cells, {}, rank)->spec;
}

// What tpcc is told in.
void print_new_orders(std::FILE* out, const Plan& plan) {
  for (const Cell& cell : plan.cells) {
    if (cell.spec.kind != workloads::WorkloadKind::tpcc) continue;
    const RunResult& result = median_of_sorted(cell.results);
    print_to(out, "{:<10} {:>7} {:<10} {:.0f} new-orders/s, warehouses: {}\n",
             workloads::to_string(cell.spec.kind), cell.run.threads, cell.system,
             result.new_orders_per_s(), cell.spec.warehouses);
  }
}

// One line for what was counted of each cell, and one for each different note.
void print_probed(std::FILE* out, const Plan& plan) {
  std::set<std::string> notes;
  for (const Cell& cell : plan.cells) {
    const RunResult& result = median_of_sorted(cell.results);
    std::string counts;
    for (const workloads::ProbeReading& reading : result.probed) {
      if (!reading.note.empty()) notes.insert(fmt::format("{}: {}", reading.probe, reading.note));
      for (const auto& [name, count] : reading.counts) {
        counts +=
            fmt::format("  {} {:.4g}", name,
                        count / static_cast<double>(std::max<std::uint64_t>(1, result.operations)));
      }
    }
    if (counts.empty()) continue;
    print_to(out, "{:<10} {:>7} {:<10} per transaction:{}\n", name_of(cell.spec), cell.run.threads,
             cell.system, counts);
  }
  for (const std::string& note : notes) print_to(out, "{}\n", note);
}

}  // namespace

void add_spec_options(CLI::App& command, workloads::WorkloadSpec& spec) {
  command
      .add_option("--entries", spec.entries, "array length, keys, accounts, or values in the queue")
      ->capture_default_str();
  command.add_option("--entry-size", spec.entry_size, "16, 64, 128, 256, 1024 or 4096 bytes")
      ->capture_default_str();
  command.add_option("--zipf", spec.zipf, "skew, 0 (uniform) to below 1")->capture_default_str();
  command
      .add_option("--insert-ratio", spec.insert_ratio,
                  "share of inserts, enqueues, transfers (bank) or new-orders (tpcc)")
      ->capture_default_str();
  command.add_option("--fill", spec.fill, "share of the keys present at the start")
      ->capture_default_str();
}

void add_named_spec_options(CLI::App& command, workloads::WorkloadSpec& spec) {
  command.add_option("--range-least", spec.range_least, "ranges: bytes of the shortest")
      ->capture_default_str();
  command.add_option("--range-most", spec.range_most, "ranges: bytes of the longest")
      ->capture_default_str();
  command.add_option("--range-zipf", spec.range_zipf, "ranges: skew over sizes, 0 is uniform")
      ->capture_default_str();
  command.add_option_function<std::string>(
      "--range-mix", [&spec](const std::string& text) { spec.range_mix = parse_mix(text); },
      "ranges: shares of reads:writes:log appends (default 1:1:0; files under OLTP: 39:9:1)");
  command.add_option("--range-chunk", spec.range_chunk, "ranges: bytes of the object's chunks")
      ->capture_default_str();
  command
      .add_option("--warehouses", spec.warehouses,
                  "tpcc: how large it is; entries, their size, zipf and fill mean nothing to it")
      ->capture_default_str();
}

void add_workload_option(CLI::App& command, std::string& workloads) {
  command
      .add_option("--workload", workloads,
                  "all, or a list of " + workloads::workload_names() +
                      "; ranges, bank and tpcc by name only, also beside all")
      ->capture_default_str();
}

std::vector<std::string> spec_arguments(const workloads::WorkloadSpec& spec) {
  return arguments_with_effect({{"--entries", fmt::to_string(spec.entries)},
                                {"--entry-size", fmt::to_string(spec.entry_size)},
                                {"--zipf", fmt::to_string(spec.zipf)},
                                {"--insert-ratio", fmt::to_string(spec.insert_ratio)},
                                {"--fill", fmt::to_string(spec.fill)},
                                {"--seed", fmt::to_string(spec.seed)},
                                {"--range-least", fmt::to_string(spec.range_least)},
                                {"--range-most", fmt::to_string(spec.range_most)},
                                {"--range-zipf", fmt::to_string(spec.range_zipf)},
                                {"--range-mix", fmt::to_string(fmt::join(spec.range_mix, ":"))},
                                {"--range-chunk", fmt::to_string(spec.range_chunk)},
                                {"--warehouses", fmt::to_string(spec.warehouses)}},
                               {.workloads = {spec.kind}, .systems = {}});
}

nlohmann::json to_json(const workloads::WorkloadSpec& spec) {
  // Rows without it are of the paper's.
  nlohmann::json json = {{"entries", spec.entries}, {"entry_size", spec.entry_size},
                         {"zipf", spec.zipf},       {"insert_ratio", spec.insert_ratio},
                         {"fill", spec.fill},       {"seed", spec.seed}};
  if (spec.mix != workloads::Mix::paper) json["mix"] = to_string(spec.mix);
  if (spec.kind == workloads::WorkloadKind::tpcc) json["warehouses"] = spec.warehouses;
  if (spec.kind == workloads::WorkloadKind::ranges) {
    json.update({{"range_least", spec.range_least},
                 {"range_most", spec.range_most},
                 {"range_zipf", spec.range_zipf},
                 {"range_mix", spec.range_mix},
                 {"range_chunk", spec.range_chunk}});
  }
  return json;
}

std::string describe_size(const workloads::WorkloadSpec& spec) {
  const double percent = spec.insert_ratio * 100;
  if (spec.kind == workloads::WorkloadKind::tpcc) {
    return fmt::format("warehouses: {}, {:.0f} % new-orders", spec.warehouses, percent);
  }
  std::string entries =
      fmt::format("{} entries of {} bytes, zipf {}", spec.entries, spec.entry_size, spec.zipf);
  if (spec.mix != workloads::Mix::paper) return entries;
  return fmt::format("{}, {:.0f} % inserts", entries, percent);
}

std::string system_names() {
  std::string names;
  for (const workloads::SystemInfo& info : workloads::systems()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  return names;
}

std::vector<workloads::WorkloadKind> parse_workloads(const std::string& text) {
  std::vector<std::string> all;
  for (const workloads::WorkloadKind kind : workloads::kAllWorkloads) {
    all.emplace_back(to_string(kind));
  }
  std::vector<workloads::WorkloadKind> kinds;
  for (const std::string& name : split_list("--workload", text, all)) {
    kinds.push_back(workloads::workload_from_name(name));
  }
  return kinds;
}

void add_cell(Plan& plan, Cell cell) {
  cell.spec.validate();
  cell.run.validate();
  const std::string reason =
      workloads::why_unsupported(cell.system, cell.spec, cell.options, cell.run.threads);
  if (reason.empty()) {
    plan.cells.push_back(std::move(cell));
  } else {
    // Once, at however many numbers of threads.
    std::string why = fmt::format("{} on {}: {}", cell.system, name_of(cell.spec), reason);
    if (std::find(plan.skipped.begin(), plan.skipped.end(), why) == plan.skipped.end()) {
      plan.skipped.push_back(std::move(why));
    }
  }
}

void require_cells(const Plan& plan) {
  if (!plan.cells.empty()) return;
  throw UsageError(plan.skipped.empty() ? "there is nothing to run" : plan.skipped.front());
}

void set_failures_aside(Plan& plan) {
  const std::size_t all = plan.cells.size();
  for (const Cell& cell : plan.cells) {
    if (cell.failure == nullptr) continue;
    plan.failed.add(
        fmt::format("{} on {} with {} threads", cell.system, name_of(cell.spec), cell.run.threads),
        cell.failure);
  }
  plan.failed.require_some_of(all);
  std::erase_if(plan.cells, [](const Cell& cell) { return cell.failure != nullptr; });
}

double undisturbed_mean_ns(const RunResult& result) {
  constexpr double kUndisturbed = 0.99;
  return emu::nanoseconds_from_ticks(
      static_cast<std::uint64_t>(result.latency_ticks.mean_of_smallest(kUndisturbed)));
}

nlohmann::json run_json(const Cell& cell, const RunResult& r, const FlushCost& flush) {
  nlohmann::json run = to_json(cell.options, flush.instruction);
  run.update(to_json(cell.spec));
  const bool async = cell.options.asynchronous || cell.system == "sp3-async";
  run.update({{"system", cell.system},
              {"workload", workloads::to_string(cell.spec.kind)},
              {"threads", cell.run.threads},
              {"durability", async ? "async" : "sync"},
              {"pool_size", cell.options.pool_size != 0 ? cell.options.pool_size
                                                        : workloads::default_pool_size(cell.spec)},
              {"warmup_seconds", warmup_seconds(cell.run)},
              {"seconds", r.seconds},
              {"operations", r.operations},
              {"misses", r.misses},
              {"throughput_tx_per_s", r.throughput()}});
  if (cell.spec.kind == workloads::WorkloadKind::tpcc) {
    run.update({{"new_orders", r.new_orders}, {"new_orders_per_s", r.new_orders_per_s()}});
  }
  run.update({{"commits", r.counters.commits},
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
  run.update({{"latency_p50_ns", ns(0.5)},
              {"latency_p99_ns", ns(0.99)},
              {"latency_p999_ns", ns(0.999)},
              {"latency_max_ns", timed ? nlohmann::json(r.longest_ns()) : nlohmann::json()},
              {"latency_undisturbed_mean_ns",
               timed ? nlohmann::json(undisturbed_mean_ns(r)) : nlohmann::json()},
              {"flush_cost_ns", flush.nanoseconds},
              {"line_transfer_ns", distance_json(r.line_transfer_ns)},
              {"clocks_agree", r.clocks_agree},
              {"simulated", cell.options.simulated},
              {"commit", workloads::built_from()}});
  add_probed(run, r);
  return run;
}

nlohmann::json row_of_runs(std::vector<nlohmann::json> runs) {
  const auto throughput = [](const nlohmann::json& run) {
    return run.at("throughput_tx_per_s").get<double>();
  };
  const nlohmann::json first_seed = runs.front().at("seed");
  std::ranges::sort(runs, {}, throughput);
  nlohmann::json row = median_of_sorted(runs);
  const double middle = throughput(row);
  const double distance = throughput(runs.back()) - throughput(runs.front());
  nlohmann::json all = nlohmann::json::array();
  nlohmann::json transfers = nlohmann::json::array();
  for (const nlohmann::json& run : runs) {
    all.push_back(throughput(run));
    transfers.push_back(run.at("line_transfer_ns"));
  }
  row.update({{"seed", first_seed},
              {"repeat", runs.size()},
              {"spread", middle > 0 ? distance / middle : 0.0},
              {"throughputs", all},
              {"line_transfers_ns", transfers}});
  return row;
}

nlohmann::json row_json(const Cell& cell, const FlushCost& flush, const nlohmann::json& machine) {
  std::vector<nlohmann::json> runs;
  for (const RunResult& result : cell.results) runs.push_back(run_json(cell, result, flush));
  nlohmann::json row = row_of_runs(std::move(runs));
  row["machine"] = machine;
  return row;
}

void print_rows(std::FILE* out, const nlohmann::json& rows) {
  const auto name = [](const nlohmann::json& row) {
    const std::string mix = row.value("mix", "");
    return row.at("workload").get<std::string>() + (mix.empty() ? "" : " " + mix);
  };
  std::size_t width = 10;
  for (const nlohmann::json& row : rows) width = std::max(width, name(row).size());
  print_to(out, "{:<{}} {:>7} {:<10} {:>10} {:>7} {:>9} {:>9} {:>9} {:>10} {:>10} {:>10} {:>7}\n",
           "workload", width, "threads", "system", "ktx/s", "spread", "aborts/tx", "fences/wr",
           "lines/wr", "p50 ns", "p99 ns", "max ns", "line ns");
  for (const nlohmann::json& row : rows) {
    const auto number = [&](const char* member) { return row.at(member).get<double>(); };
    const auto ns = [&](const char* member) {
      return row.at(member).is_null() ? "-" : fmt::format("{:.0f}", number(member));
    };
    const double thousands = number("throughput_tx_per_s") / 1000;
    print_to(
        out,
        "{:<{}} {:>7} {:<10} {:>10.{}f} {:>6.1f}% {:>9.4f} {:>9.3f} {:>9.2f} {:>10} {:>10} {:>10} "
        "{:>7}\n",
        name(row), width, row.at("threads").get<unsigned>(), row.at("system").get<std::string>(),
        thousands, thousands < 10 ? 3 : 1, number("spread") * 100, number("abort_ratio"),
        number("fences_per_tx"), number("lines_per_tx"), ns("latency_p50_ns"), ns("latency_p99_ns"),
        ns("latency_max_ns"), ns("line_transfer_ns"));
  }
  print_distances(out, rows);
}

void print_table(std::FILE* out, const Plan& plan, const FlushCost& flush) {
  const Cell& any = plan.cells.front();
  print_to(out, "{}; {}, {} flush, {}\n", describe_size(telling_spec(plan)),
           describe_memory(any.options), to_string(flush.instruction),
           describe(any.options.pool.latency));
  print_to(out, "{}; seed {}, median of {}\n", describe(flush), any.spec.seed, any.results.size());
  if (!any.results.front().clocks_agree) {
    print_to(out, "the clocks of the cores are not known to agree: who reads much pays for it\n");
  }
  print_to(out, "\n");
  nlohmann::json rows = nlohmann::json::array();
  for (const Cell& cell : plan.cells) rows.push_back(row_json(cell, flush, {}));
  print_rows(out, rows);
  print_new_orders(out, plan);
  print_probed(out, plan);
  for (const std::string& reason : plan.skipped) print_to(out, "skipped: {}\n", reason);
  for (const std::string& reason : plan.failed.lines()) print_to(out, "failed: {}\n", reason);
}

}  // namespace sp3::tools

// sp3 sim --workload: throughput in virtual time. The rows are those of `sp3 bench`, and say that
// they are simulated, the costs, and the hash of the trace.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "emu/sim/random.h"
#include "tools/command.h"
#include "tools/print_to.h"
#include "tools/progress_bar.h"
#include "tools/repeats.h"
#include "tools/sim/arguments.h"
#include "tools/sim/timed.h"
#include "workloads/machine.h"

namespace sp3::tools {
namespace {

Plan make_plan(const SimArguments& a) {
  Plan plan;
  const workloads::SystemOptions options = simulated_options(a.store);
  for (const workloads::WorkloadKind kind : parse_workloads(a.workloads)) {
    for (const unsigned cores : parse_thread_list(a.cores, "--cores")) {
      for (const std::string& system : split_list("--system", a.systems)) {
        Cell cell{system, a.spec, a.run, options, {}};
        cell.spec.kind = kind;
        cell.run.threads = cores;
        add_cell(plan, std::move(cell));
      }
    }
  }
  require_cells(plan);
  return plan;
}

// What a line and a fence cost there follows from the costs.
FlushCost flush_cost(const Plan& plan, const emu::sim::Costs& costs) {
  const Options& pool = plan.cells.front().options.pool;
  const double ns = (costs.flush_line + costs.fence) / 1000.0 + pool.latency.nanoseconds +
                    pool.latency.per_line_nanoseconds;
  return {ns, flush_instruction(pool)};
}

nlohmann::json sim_row(const Cell& cell, std::uint64_t trace_hash, const FlushCost& flush,
                       const CostsFile& costs) {
  nlohmann::json row = row_json(cell, flush, costs.machine);
  row.update({{"cores", cell.run.threads},
              {"trace_hash", fmt::format("{:016x}", trace_hash)},
              {"costs_ns", to_json(costs.costs)}});
  return row;
}

}  // namespace

int run_timed_command(const SimArguments& a) {
  check_repeat(a.repeat);
  CostsFile costs = read_costs(a.costs_file);
  apply_factors(costs.costs, a.factors);
  Plan plan = make_plan(a);
  const workloads::Zipf zipf(a.spec.entries, a.spec.zipf);
  const FlushCost flush = flush_cost(plan, costs.costs);
  nlohmann::json rows = nlohmann::json::array();
  double wall = 0;
  double operations = 0;
  const std::size_t cells = plan.cells.size();
  {
    ProgressBar progress;
    std::size_t done = 0;
    for (Cell& cell : plan.cells) {
      std::uint64_t trace_hash = 0;
      try {
        for (unsigned r = 0; r < a.repeat; ++r) {
          progress.show(fmt::format("{} {} on {} cores", cell.system,
                                    workloads::to_string(cell.spec.kind), cell.run.threads),
                        done++, cells * a.repeat);
          cell.spec.seed = a.spec.seed + r;
          TimedRun run = run_timed(cell, zipf, costs.costs, a.check);
          trace_hash = emu::sim::mix(trace_hash ^ run.trace_hash);
          wall += run.wall_seconds;
          operations += static_cast<double>(run.result.operations) * 1.1;  // and warm-up
          cell.results.push_back(run.result);
        }
      } catch (const std::exception&) {
        cell.failure = std::current_exception();
        continue;
      }
      cell.spec.seed = a.spec.seed;
      std::ranges::sort(cell.results, {}, &workloads::RunResult::throughput);
      rows.push_back(sim_row(cell, trace_hash, flush, costs));
    }
  }
  set_failures_aside(plan);
  std::FILE* const out = a.json == "-" ? stderr : stdout;
  print_table(out, plan, flush);
  print_to(out, "simulated at {:.0f} transactions a second\n", operations / wall);
  if (!a.json.empty()) write_output(a.json, to_text(rows) + "\n");
  plan.failed.require_none_of(cells);
  return kOk;
}

}  // namespace sp3::tools

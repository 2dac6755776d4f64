// sp3 sim --validate: what the simulator predicts beside what the machine it is calibrated on does.
//
// The native side is `sp3 bench`, started as a program of its own, in short runs that alternate. On
// a machine that others use, throughput says how much of it they left; so what is held against the
// simulator is the mean latency of all transactions but the slowest hundredth, which are those that
// lost their core. The throughputs are printed beside it. Neither side makes checkpoints meanwhile:
// the simulated checkpointer has a core of its own, which here would be one of the two.
//
// Such a machine is also faster or slower from one minute to the next. So, unless costs were given,
// they are measured again before each run of a workload, which is then simulated with them. What
// others do only ever takes time: of three runs the fastest counts, as of three measurements of
// each cost. And of several rounds the median ratio.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/median.h"
#include "tools/print_to.h"
#include "tools/program_rows.h"
#include "tools/progress_bar.h"
#include "tools/sim/arguments.h"
#include "tools/sim/calibrate.h"
#include "tools/sim/timed.h"
#include "tools/start_program.h"

namespace sp3::tools {
namespace {

constexpr double kTolerated = 0.3;
constexpr int kRuns = 3;                   // of each round: as many as sp3 micro measures each cost
constexpr const char* kPoolSize = "512M";  // a log that such a run does not fill by half

nlohmann::json run_natively(const std::vector<std::string>& arguments) {
  return rows_of_program(program_beside("sp3").string(), arguments);
}

std::vector<std::string> bench_arguments(const SimArguments& a, workloads::WorkloadKind kind,
                                         unsigned threads) {
  std::vector<std::string> arguments = {"bench",
                                        "--workload",
                                        std::string(workloads::to_string(kind)),
                                        "--system",
                                        a.systems,
                                        "--threads",
                                        std::to_string(threads),
                                        "--pool-size",
                                        kPoolSize,
                                        "--seconds",
                                        "0.1"};
  workloads::WorkloadSpec spec = a.spec;
  spec.kind = kind;
  const Chosen all = chosen({kind}, split_list("--system", a.systems), a.store);
  for (const auto& more : {spec_arguments(spec), memory_arguments(a.store, all),
                           arguments_with_effect({{"--checkpoint-ms", "0"}}, all)}) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  }
  return arguments;
}

// One cell of the table: what each round found.
struct Compared {
  std::string workload;
  std::string system;
  unsigned cores = 1;
  std::vector<double> native_ns;
  std::vector<double> native_throughput;
  std::vector<double> simulated_ns;
  std::vector<double> simulated_throughput;
  std::vector<double> ratio;  // native over simulated time: of throughputs, were nobody else there
};

class Validation {
 public:
  explicit Validation(const SimArguments& a)
      : a_(a),
        given_(read_costs(a.costs_file).costs),
        zipf_(a.spec.entries, a.spec.zipf),
        options_(without_checkpoints(a.store)) {}

  // Of one workload under all systems.
  void compare(workloads::WorkloadKind kind, unsigned cores) {
    emu::sim::Costs costs = given_;
    if (a_.costs_file.empty()) {
      const auto measured = run_natively({"micro", "--calibrate", "--flush", a_.store.flush});
      costs = costs_from(measured_in(measured), options_.pool.flush);
    }
    apply_factors(costs, a_.factors);
    std::map<std::string, nlohmann::json> fastest;  // by system
    for (int run = 0; run < kRuns; ++run) {
      for (const auto& row : run_natively(bench_arguments(a_, kind, cores))) {
        nlohmann::json& known = fastest[row.at("system")];
        if (known.is_null() || mean_ns(row) < mean_ns(known)) known = row;
      }
    }
    for (const auto& [system, row] : fastest) {
      Cell cell{system, a_.spec, a_.run, options_, {}};
      cell.spec.kind = kind;
      cell.run.threads = cores;
      const workloads::RunResult simulated = run_timed(cell, zipf_, costs, false).result;
      Compared& found = cell_of(row.at("workload"), system, cores);
      found.native_ns.push_back(mean_ns(row));
      found.native_throughput.push_back(row.at("throughput_tx_per_s"));
      found.simulated_ns.push_back(undisturbed_mean_ns(simulated));
      found.simulated_throughput.push_back(simulated.throughput());
      found.ratio.push_back(found.native_ns.back() / found.simulated_ns.back());
    }
  }

  [[nodiscard]] const std::vector<Compared>& cells() const { return cells_; }

 private:
  static workloads::SystemOptions without_checkpoints(StoreArguments store) {
    store.checkpoint_ms = 0;
    store.pool_size = kPoolSize;
    return simulated_options(store);
  }

  static double mean_ns(const nlohmann::json& row) { return row.at("latency_undisturbed_mean_ns"); }

  Compared& cell_of(const std::string& workload, const std::string& system, unsigned cores) {
    const auto found = std::find_if(cells_.begin(), cells_.end(), [&](const Compared& cell) {
      return cell.workload == workload && cell.system == system && cell.cores == cores;
    });
    return found != cells_.end()
               ? *found
               : cells_.emplace_back(Compared{workload, system, cores, {}, {}, {}, {}, {}});
  }

  const SimArguments& a_;
  const emu::sim::Costs given_;
  const workloads::Zipf zipf_;
  const workloads::SystemOptions options_;  // of the simulated side
  std::vector<Compared> cells_;
};

}  // namespace

int run_validation(const SimArguments& a) {
  const std::vector<workloads::WorkloadKind> kinds = parse_workloads(a.workloads);
  const unsigned rounds = std::max(a.repeat, 3U);
  Validation validation(a);
  ProgressBar progress;
  std::size_t done = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    for (const unsigned cores : {1U, 2U}) {
      for (const workloads::WorkloadKind kind : kinds) {
        progress.show(fmt::format("{}, {} cores", workloads::to_string(kind), cores), done++,
                      std::size_t{rounds} * 2 * kinds.size());
        validation.compare(kind, cores);
      }
    }
  }
  progress.clear();
  std::FILE* const out = a.json == "-" ? stderr : stdout;
  print_to(out, "{:<10} {:<8} {:>5} | {:>9} {:>9} | {:>9} {:>9} {:>7}\n", "", "", "", "native",
           "simulated", "native", "simulated", "");
  print_to(out, "{:<10} {:<8} {:>5} | {:>9} {:>9} | {:>9} {:>9} {:>7}\n", "workload", "system",
           "cores", "ktx/s", "ktx/s", "mean ns", "mean ns", "ratio");
  std::size_t within = 0;
  nlohmann::json results = nlohmann::json::array();
  for (const Compared& cell : validation.cells()) {
    const double ratio = median(cell.ratio);
    within += ratio > 1 - kTolerated && ratio < 1 + kTolerated ? 1 : 0;
    print_to(out, "{:<10} {:<8} {:>5} | {:>9.1f} {:>9.1f} | {:>9.0f} {:>9.0f} {:>7.2f}\n",
             cell.workload, cell.system, cell.cores, median(cell.native_throughput) / 1000,
             median(cell.simulated_throughput) / 1000, median(cell.native_ns),
             median(cell.simulated_ns), ratio);
    results.push_back({{"workload", cell.workload},
                       {"system", cell.system},
                       {"cores", cell.cores},
                       {"native_tx_per_s", median(cell.native_throughput)},
                       {"simulated_tx_per_s", median(cell.simulated_throughput)},
                       {"native_mean_ns", median(cell.native_ns)},
                       {"simulated_mean_ns", median(cell.simulated_ns)},
                       {"ratio", ratio},
                       {"native_rounds_ns", cell.native_ns},
                       {"simulated_rounds_ns", cell.simulated_ns}});
  }
  print_to(out, "{} of {} within 30 %\n", within, results.size());
  if (!a.json.empty()) write_output(a.json, to_text(results) + "\n");
  return kOk;
}

}  // namespace sp3::tools

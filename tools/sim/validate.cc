// sp3 sim --validate: what the simulator predicts beside what the machine it was calibrated on does.
//
// The native side is `sp3 bench`, started as a program of its own: in short runs that alternate, of
// which the best counts as well as the median, because others on the machine only ever take away.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/progress.h"
#include "tools/sim/arguments.h"
#include "tools/sim/timed.h"

namespace sp3::tools {
namespace {

// The rows of one run of `sp3 bench` with these options.
nlohmann::json run_bench(std::vector<std::string> arguments) {
  const auto directory = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto json =
      std::filesystem::temp_directory_path() / fmt::format("sp3-sim-{}.json", ::getpid());
  arguments.insert(arguments.begin(), {(directory / "sp3").string(), "bench"});
  arguments.insert(arguments.end(), {"--json", json.string()});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(kError);
    ::execv(pointers[0], pointers.data());
    ::_exit(kError);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
      WEXITSTATUS(status) != 0) {
    throw std::runtime_error(fmt::format("{} bench cannot be run", arguments[0]));
  }
  std::ifstream in(json);
  nlohmann::json rows = nlohmann::json::parse(in);
  in.close();
  std::filesystem::remove(json);
  return rows;
}

std::vector<std::string> bench_arguments(const SimArguments& a, const std::string& threads) {
  return {"--workload",     a.workloads,
          "--system",       a.systems,
          "--threads",      threads,
          "--entries",      std::to_string(a.spec.entries),
          "--entry-size",   std::to_string(a.spec.entry_size),
          "--zipf",         fmt::format("{}", a.spec.zipf),
          "--insert-ratio", fmt::format("{}", a.spec.insert_ratio),
          "--latency-ns",   std::to_string(a.store.latency_ns),
          "--model",        a.store.model,
          "--memory",       "emulated",
          "--seconds",      "0.2",
          "--repeat",       std::to_string(std::max(a.repeat, 5U))};
}

}  // namespace

int run_validation(const SimArguments& a) {
  CostsFile costs = read_costs(a.costs_file);
  apply_factors(costs.costs, a.factors);
  const workloads::Zipf zipf(a.spec.entries, a.spec.zipf);
  StoreArguments store = a.store;
  store.path = "/simulated";
  nlohmann::json results = nlohmann::json::array();
  std::FILE* const out = a.json == "-" ? stderr : stdout;
  fmt::print(out, "{:<10} {:<8} {:>5} {:>14} {:>12} {:>12} {:>9} {:>9}\n", "workload", "system",
             "cores", "native median", "native best", "simulated", "of median", "of best");
  Progress progress;
  std::size_t within = 0;
  for (const std::string threads : {"1", "2"}) {
    progress.show("native runs, " + threads + " threads", threads == "1" ? 0 : 1, 2);
    for (const auto& native : run_bench(bench_arguments(a, threads))) {
      Cell cell{native.at("system"), a.spec, a.run, system_options(store), {}};
      cell.spec.kind = workloads::workload_from_name(native.at("workload").get<std::string>());
      cell.run.threads = parse_threads(threads);
      const double simulated = run_timed(cell, zipf, costs.costs, false).result.throughput();
      const auto all = native.at("throughputs").get<std::vector<double>>();
      const double best = *std::ranges::max_element(all);
      const double middle = native.at("throughput_tx_per_s");
      progress.clear();
      fmt::print(out, "{:<10} {:<8} {:>5} {:>14.1f} {:>12.1f} {:>12.1f} {:>9.2f} {:>9.2f}\n",
                 workloads::to_string(cell.spec.kind), cell.system, threads, middle / 1000,
                 best / 1000, simulated / 1000, simulated / middle, simulated / best);
      std::fflush(out);
      within += simulated / best > 0.7 && simulated / best < 1.3 ? 1 : 0;
      results.push_back({{"workload", workloads::to_string(cell.spec.kind)},
                         {"system", cell.system},
                         {"cores", cell.run.threads},
                         {"native_median_tx_per_s", middle},
                         {"native_best_tx_per_s", best},
                         {"simulated_tx_per_s", simulated},
                         {"native", native}});
    }
  }
  fmt::print(out, "{} of {} within 30 % of the best native run\n", within, results.size());
  if (!a.json.empty()) write_output(a.json, results.dump(2) + "\n");
  return kOk;
}

}  // namespace sp3::tools

// sp3 sim --validate: what the simulator predicts beside what the machine it was calibrated on does.
//
// The native side is `sp3 bench`, started as a program of its own, in short runs that alternate. On a
// machine that others use, throughput says how much of it they left; so what is held against the
// simulator is the mean latency of all transactions but the slowest hundredth, which are those that
// lost their core. The throughputs are printed beside it. Neither side makes checkpoints meanwhile:
// the simulated checkpointer has a core of its own, which here would be one of the two.
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
  return {"--workload",      a.workloads,
          "--system",        a.systems,
          "--threads",       threads,
          "--entries",       std::to_string(a.spec.entries),
          "--entry-size",    std::to_string(a.spec.entry_size),
          "--zipf",          fmt::format("{}", a.spec.zipf),
          "--insert-ratio",  fmt::format("{}", a.spec.insert_ratio),
          "--latency-ns",    std::to_string(a.store.latency_ns),
          "--model",         a.store.model,
          "--memory",        "emulated",
          "--checkpoint-ms", "0",
          "--pool-size",     "2G",  // a log that such a run does not fill by half
          "--seconds",       "0.2",
          "--repeat",        std::to_string(std::max(a.repeat, 5U))};
}

}  // namespace

int run_validation(const SimArguments& a) {
  CostsFile costs = read_costs(a.costs_file);
  apply_factors(costs.costs, a.factors);
  const workloads::Zipf zipf(a.spec.entries, a.spec.zipf);
  StoreArguments store = a.store;
  store.path = "/simulated";
  store.checkpoint_ms = 0;
  store.pool_size = "512M";
  nlohmann::json results = nlohmann::json::array();
  std::FILE* const out = a.json == "-" ? stderr : stdout;
  fmt::print(out, "{:<10} {:<8} {:>5} | {:>9} {:>9} | {:>9} {:>9} {:>7}\n", "", "", "", "native",
             "simulated", "native", "simulated", "");
  fmt::print(out, "{:<10} {:<8} {:>5} | {:>9} {:>9} | {:>9} {:>9} {:>7}\n", "workload", "system",
             "cores", "ktx/s", "ktx/s", "mean ns", "mean ns", "ratio");
  Progress progress;
  std::size_t within = 0;
  for (const std::string threads : {"1", "2"}) {
    progress.show("native runs, " + threads + " threads", threads == "1" ? 0 : 1, 2);
    for (const auto& native : run_bench(bench_arguments(a, threads))) {
      Cell cell{native.at("system"), a.spec, a.run, system_options(store), {}};
      cell.spec.kind = workloads::workload_from_name(native.at("workload").get<std::string>());
      cell.run.threads = parse_threads(threads);
      const workloads::RunResult simulated = run_timed(cell, zipf, costs.costs, false).result;
      const double native_ns = native.at("latency_undisturbed_mean_ns");
      const double simulated_ns = undisturbed_mean_ns(simulated);
      const double native_throughput = native.at("throughput_tx_per_s");
      const double ratio = native_ns / simulated_ns;  // of throughputs, were nobody else there
      progress.clear();
      fmt::print(out, "{:<10} {:<8} {:>5} | {:>9.1f} {:>9.1f} | {:>9.0f} {:>9.0f} {:>7.2f}\n",
                 workloads::to_string(cell.spec.kind), cell.system, threads,
                 native_throughput / 1000, simulated.throughput() / 1000, native_ns, simulated_ns,
                 ratio);
      std::fflush(out);
      within += ratio > 0.7 && ratio < 1.3 ? 1 : 0;
      results.push_back({{"workload", workloads::to_string(cell.spec.kind)},
                         {"system", cell.system},
                         {"cores", cell.run.threads},
                         {"native_tx_per_s", native_throughput},
                         {"simulated_tx_per_s", simulated.throughput()},
                         {"native_mean_ns", native_ns},
                         {"simulated_mean_ns", simulated_ns},
                         {"ratio", ratio},
                         {"native", native}});
    }
  }
  fmt::print(out, "{} of {} within 30 %\n", within, results.size());
  if (!a.json.empty()) write_output(a.json, results.dump(2) + "\n");
  return kOk;
}

}  // namespace sp3::tools

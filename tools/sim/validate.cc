// sp3 sim --validate: what the simulator predicts beside what the machine it is calibrated on does.
//
// The native side is `sp3 bench`, started as a program of its own, in short runs that alternate. On a
// machine that others use, throughput says how much of it they left; so what is held against the
// simulator is the mean latency of all transactions but the slowest hundredth, which are those that
// lost their core. The throughputs are printed beside it. Neither side makes checkpoints meanwhile:
// the simulated checkpointer has a core of its own, which here would be one of the two.
//
// Such a machine is also faster or slower from one minute to the next. So, unless costs were given,
// the calibration's microbenchmarks run in turn with the workloads, and of each the median counts.
// (The best would be another machine: microbenchmarks are shorter, and luckier.)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/progress.h"
#include "tools/sim/arguments.h"
#include "tools/sim/calibrate.h"
#include "tools/sim/timed.h"

namespace sp3::tools {
namespace {

constexpr double kTolerated = 0.3;

// The rows of `sp3` with these arguments, run natively.
nlohmann::json run_natively(std::vector<std::string> arguments) {
  const auto directory = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto json =
      std::filesystem::temp_directory_path() / fmt::format("sp3-sim-{}.json", ::getpid());
  arguments.insert(arguments.begin(), (directory / "sp3").string());
  arguments.insert(arguments.end(), {"--json", json.string()});
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
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
    throw std::runtime_error(fmt::format("{} {} cannot be run", arguments[0], arguments[1]));
  }
  std::ifstream in(json);
  nlohmann::json rows = nlohmann::json::parse(in);
  in.close();
  std::filesystem::remove(json);
  return rows;
}

std::vector<std::string> bench_arguments(const SimArguments& a, const std::string& threads) {
  return {"bench",
          "--workload",
          a.workloads,
          "--system",
          a.systems,
          "--threads",
          threads,
          "--entries",
          std::to_string(a.spec.entries),
          "--entry-size",
          std::to_string(a.spec.entry_size),
          "--zipf",
          fmt::format("{}", a.spec.zipf),
          "--insert-ratio",
          fmt::format("{}", a.spec.insert_ratio),
          "--latency-ns",
          std::to_string(a.store.latency_ns),
          "--model",
          a.store.model,
          "--memory",
          "emulated",
          "--checkpoint-ms",
          "0",
          "--pool-size",
          "2G",  // a log that such a run does not fill by half
          "--seconds",
          "0.2",
          "--repeat",
          "3"};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// What was measured natively, round by round.
struct NativeCell {
  std::vector<double> mean_ns;
  std::vector<double> throughput;
};
struct Native {
  using Key = std::tuple<unsigned, std::string, std::string>;  // threads, workload, system
  std::vector<Key> order;
  std::map<Key, NativeCell> cells;
  std::map<std::string, std::vector<double>> micros;

  [[nodiscard]] Measured medians() const {
    Measured measured;
    for (const auto& [name, values] : micros) measured[name] = median(values);
    return measured;
  }
};

Native run_rounds(const SimArguments& a, bool calibrates, Progress& progress) {
  Native native;
  const unsigned rounds = std::max(a.repeat, 3U);
  for (unsigned round = 0; round < rounds; ++round) {
    progress.show("native runs", round, rounds);
    for (const std::string threads : {"1", "2"}) {
      if (calibrates) {
        for (const auto& [name, value] : measured_in(run_natively({"micro", "--calibrate"}))) {
          native.micros[name].push_back(value);
        }
      }
      for (const auto& row : run_natively(bench_arguments(a, threads))) {
        const Native::Key key{parse_threads(threads), row.at("workload"), row.at("system")};
        NativeCell& cell = native.cells[key];
        if (cell.mean_ns.empty()) native.order.push_back(key);
        cell.mean_ns.push_back(row.at("latency_undisturbed_mean_ns"));
        cell.throughput.push_back(row.at("throughput_tx_per_s"));
      }
    }
  }
  progress.clear();
  return native;
}

}  // namespace

int run_validation(const SimArguments& a) {
  const bool calibrates = a.costs_file.empty();
  Progress progress;
  const Native native = run_rounds(a, calibrates, progress);
  emu::sim::Costs costs =
      calibrates ? costs_from(native.medians()) : read_costs(a.costs_file).costs;
  apply_factors(costs, a.factors);
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
  std::size_t within = 0;
  for (const Native::Key& key : native.order) {
    const auto& [threads, workload, system] = key;
    progress.show("simulated runs", results.size(), native.order.size());
    Cell cell{system, a.spec, a.run, system_options(store), {}};
    cell.spec.kind = workloads::workload_from_name(workload);
    cell.run.threads = threads;
    const workloads::RunResult simulated = run_timed(cell, zipf, costs, false).result;
    const double native_ns = median(native.cells.at(key).mean_ns);
    const double native_throughput = median(native.cells.at(key).throughput);
    const double simulated_ns = undisturbed_mean_ns(simulated);
    const double ratio = native_ns / simulated_ns;  // of throughputs, were nobody else there
    progress.clear();
    fmt::print(out, "{:<10} {:<8} {:>5} | {:>9.1f} {:>9.1f} | {:>9.0f} {:>9.0f} {:>7.2f}\n",
               workload, system, threads, native_throughput / 1000, simulated.throughput() / 1000,
               native_ns, simulated_ns, ratio);
    std::fflush(out);
    within += ratio > 1 - kTolerated && ratio < 1 + kTolerated ? 1 : 0;
    results.push_back({{"workload", workload},
                       {"system", system},
                       {"cores", threads},
                       {"native_tx_per_s", native_throughput},
                       {"simulated_tx_per_s", simulated.throughput()},
                       {"native_mean_ns", native_ns},
                       {"simulated_mean_ns", simulated_ns},
                       {"ratio", ratio},
                       {"native_rounds_ns", native.cells.at(key).mean_ns}});
  }
  fmt::print(out, "{} of {} within 30 %\n", within, results.size());
  if (!a.json.empty()) write_output(a.json, results.dump(2) + "\n");
  return kOk;
}

}  // namespace sp3::tools

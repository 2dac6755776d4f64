#include "tools/bench_run.h"

#include <memory>
#include <stdexcept>

#include <fmt/format.h>

#include "tools/probe/probes.h"
#include "workloads/pool_remover.h"

namespace sp3::tools {

namespace {
// All of the log, however long it takes: a run shall measure a system, not the first touch of a
// page.
constexpr std::uint32_t kPrefaultMs = 60'000;
// Small pools have 31 sessions by default; a run needs some more than threads.
constexpr unsigned kFewThreads = 24;

workloads::RunResult run_here(const Cell& cell, const workloads::Zipf& zipf, bool check,
                              const std::vector<std::string>& probe_names) {
  workloads::PoolRemover remover(cell.options.path);
  const auto probes = make_probes(probe_names);
  workloads::RunOptions run = cell.run;
  for (const auto& probe : probes) run.probes.push_back(probe.get());
  const std::unique_ptr<workloads::System> system = workloads::make_system(cell.system);
  workloads::SystemOptions options = cell.options;
  options.pool.prefault_ms = kPrefaultMs;
  if (run.threads > kFewThreads) options.pool.geometry.max_sessions = run.threads + 7;
  remover.making([&] { system->create(cell.spec, options); });
  system->populate();
  workloads::RunResult result = workloads::run_workload(*system, cell.spec, zipf, run);
  if (check) {
    const std::string violation =
        workloads::check_run(cell.system, *system, cell.spec, run.threads);
    if (!violation.empty()) {
      throw std::runtime_error(
          fmt::format("{} on {}: {}", cell.system, name_of(cell.spec), violation));
    }
  }
  system->close();
  return result;
}

}  // namespace

workloads::FloorResult measure_floor(const workloads::SystemOptions& o, unsigned lines,
                                     double seconds) {
  return workloads::measure_floor(o.path, o.pool.memory, o.pool.latency, o.pool.flush, lines,
                                  seconds);
}

FlushCost measure_flush(const workloads::SystemOptions& o) {
  const workloads::FloorResult floor = measure_floor(o, 1, 0.05);
  return {floor.ns_per_write, floor.flush};
}

workloads::RunResult run_once(const Cell& cell, const workloads::Zipf& zipf, bool check,
                              const DistanceLimits& distance,
                              const std::vector<std::string>& probes) {
  return run_at_distance(distance, cell.run.threads,
                         [&] { return run_here(cell, zipf, check, probes); });
}

}  // namespace sp3::tools

#include "tools/sim/timed.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>

#include "emu/memory.h"
#include "emu/sim/machine.h"
#include "pool/file_system.h"

namespace sp3::tools {
namespace {

using workloads::Client;
using workloads::System;

// What a benchmark does between two transactions is no event of the runtime's: it is charged here.
class ChargedClient final : public Client {
 public:
  explicit ChargedClient(std::unique_ptr<Client> client) : client_(std::move(client)) {}
  bool execute(const workloads::Operation& operation) override {
    emu::sim::Machine& machine = emu::sim::machine();
    machine.event(emu::sim::Event::interleave, 1, machine.costs().operation);
    return client_->execute(operation);
  }
  void drain() override { client_->drain(); }
  [[nodiscard]] workloads::ClientCounters counters() const override { return client_->counters(); }

 private:
  std::unique_ptr<Client> client_;
};

class ChargedSystem final : public System {
 public:
  explicit ChargedSystem(std::unique_ptr<System> system) : system_(std::move(system)) {}
  void create(const workloads::WorkloadSpec& spec,
              const workloads::SystemOptions& options) override {
    system_->create(spec, options);
  }
  void open(const workloads::WorkloadSpec& spec, const workloads::SystemOptions& options) override {
    system_->open(spec, options);
  }
  void populate() override { system_->populate(); }
  std::unique_ptr<Client> connect() override {
    return std::make_unique<ChargedClient>(system_->connect());
  }
  [[nodiscard]] workloads::BackgroundCounters background() const override {
    return system_->background();
  }
  std::string check_structure() override { return system_->check_structure(); }
  void visit(const workloads::ItemVisitor& visitor) override { system_->visit(visitor); }
  void close() override { system_->close(); }

 private:
  std::unique_ptr<System> system_;
};

}  // namespace

workloads::SystemOptions simulated_options(StoreArguments store) {
  store.path = "/simulated";  // a name on that machine
  workloads::SystemOptions options = system_options(store);
  options.simulated = true;
  return options;
}

TimedRun run_timed(const Cell& cell, const workloads::Zipf& zipf, const emu::sim::Costs& costs,
                   bool check) {
  using Machine = emu::sim::Machine;
  emu::sim::Config config;
  config.seed = cell.spec.seed;
  config.schedule = emu::sim::Schedule::timed;
  config.costs = costs;
  config.most_events = std::numeric_limits<std::uint64_t>::max();
  config.tracks_media = false;
  config.writes_through = true;
  config.cores = cell.run.threads;
  Machine machine(config);
  TimedRun run;
  const Machine::Ended ended = machine.run([&] {
    ChargedSystem system(workloads::make_system(cell.system));
    workloads::SystemOptions options = cell.options;
    // Each core has a session, and the library has some of its own.
    constexpr unsigned kOwnSessions = 8;
    options.pool.geometry.max_sessions =
        std::max(options.pool.geometry.max_sessions, cell.run.threads + kOwnSessions);
    system.create(cell.spec, options);
    system.populate();
    const auto start = std::chrono::steady_clock::now();
    run.result = workloads::run_workload(system, cell.spec, zipf, cell.run);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    run.wall_seconds = wall.count();
    const std::string violation =
        check ? workloads::check_run(cell.system, system, cell.spec, cell.run.threads)
              : std::string();
    system.close();
    if (!violation.empty()) throw std::runtime_error(violation);
  });
  run.trace_hash = machine.trace_hash();
  run.events = machine.events();
  const std::string where =
      fmt::format("{} on {}", cell.system, workloads::to_string(cell.spec.kind));
  if (!machine.uncaught().empty()) {
    throw std::runtime_error(fmt::format("{}: {}", where, machine.uncaught()));
  }
  if (ended != Machine::Ended::normally) {
    throw std::runtime_error(
        fmt::format("{}: {}", where,
                    ended == Machine::Ended::hung
                        ? fmt::format("more than the {} s of virtual time that can be counted",
                                      Machine::kMostSeconds)
                        : "every core sleeps"));
  }
  return run;
}

FlushInstruction flush_instruction(const Options& options) {
  constexpr std::uint64_t kBytes = 4096;
  emu::sim::Config config;
  config.tracks_media = false;
  emu::sim::Machine machine(config);
  FlushInstruction chosen = FlushInstruction::automatic;
  machine.run([&] {
    pool::NewFile file("/simulated");
    file.reserve(kBytes);
    emu::MemoryOptions memory;
    memory.kind = options.memory;
    memory.flush = options.flush;
    chosen = emu::Memory::map(file.descriptor(), file.path(), kBytes, memory)->flush_instruction();
  });
  if (!machine.uncaught().empty()) throw std::runtime_error(machine.uncaught());
  return chosen;
}

}  // namespace sp3::tools

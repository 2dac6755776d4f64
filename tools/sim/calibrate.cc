// sp3 sim --calibrate: costs from measurements.
//
// The hardware's costs are what was measured. What the runtime's instructions take is what is left:
// the runtime's microbenchmarks run here with all instructions free, and each cost makes up for
// what they then lack to the native run.
//
//   read_n     begin + n read
//   write_n    begin + n (read + write) + commit
//   durable_n  begin + n (read + write) + commit + log + lines of the record * log_line
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "emu/sim/machine.h"
#include "tools/command.h"
#include "tools/micro.h"
#include "tools/micro_runtime.h"
#include "tools/print_to.h"
#include "tools/sim/arguments.h"
#include "tools/sim/calibrate.h"

namespace sp3::tools {
namespace {

using emu::sim::Costs;

constexpr unsigned kNearestMiB = *std::begin(kChaseMiB);
constexpr unsigned kFarthestMiB = *std::rbegin(kChaseMiB);

std::uint32_t to_cost(double ns) {
  const double ps = std::max(0.0, ns) * 1000;
  if (!(ps <= std::numeric_limits<std::uint32_t>::max())) {
    throw UsageError(fmt::format("wanted what takes at most 4 million ns, found {}", ns));
  }
  return static_cast<std::uint32_t>(std::llround(ps));
}

double at(const Measured& measured, const std::string& name) {
  const auto found = measured.find(name);
  if (found == measured.end()) throw UsageError("nobody measured " + name);
  return found->second;
}

// A line through the time of writes of 1 to 16 lines with one fence: what each line and each fence
// adds.
void fit_flushes(const Measured& m, Costs& costs) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const unsigned lines : {1U, 2U, 4U, 8U, 16U}) {
    const double ns = at(m, fmt::format("flush_{}", lines));
    n += 1;
    x += lines;
    y += ns;
    xx += double{1} * lines * lines;
    xy += lines * ns;
  }
  const double line = (n * xy - x * y) / (n * xx - x * x);
  const double fence = (y - line * x) / n;
  costs.store_line = to_cost(std::min(at(m, "copy_line"), line));
  costs.flush_line = to_cost(line - at(m, "copy_line"));
  costs.fence = to_cost(fence - at(m, "clock"));
}

std::string chase(unsigned mib) { return fmt::format("chase_{}", mib); }

// What the shared cache holds: as much as takes a time half way between the nearest and the
// farthest. Between two sizes that were measured, in proportion.
double shared_mib(const Measured& m) {
  const double half = (at(m, chase(kNearestMiB)) + at(m, chase(kFarthestMiB))) / 2;
  double size = kNearestMiB;
  double ns = at(m, chase(kNearestMiB));
  for (const unsigned mib : kChaseMiB) {
    const double next = at(m, chase(mib));
    if (next > half) return half > ns ? size + (mib - size) * (half - ns) / (next - ns) : size;
    size = mib;
    ns = next;
  }
  return size;
}

void take_hardware(const Measured& m, Costs& costs) {
  costs.hit = 0;  // in what the instructions take
  costs.near = to_cost(at(m, "near") - at(m, "hit"));
  // Each further line, where one line and a block of four were measured.
  const auto further = [&m](const std::string& one, const std::string& four) {
    return to_cost((at(m, four) - at(m, one)) / 3);
  };
  const std::string nearest = chase(kNearestMiB);
  const std::string farthest = chase(kFarthestMiB);
  costs.shared = to_cost(at(m, nearest) - at(m, "hit"));
  costs.shared_next = further(nearest, nearest + "_by_4");
  costs.shared_mib = to_cost(shared_mib(m));
  costs.fetch = to_cost(at(m, farthest) - at(m, "hit"));
  costs.fetch_next = further(farthest, farthest + "_by_4");
  costs.transfer = to_cost(at(m, "transfer"));
  costs.transfer_next = further("transfer", "transfer_block_of_4");
  costs.exchange = to_cost(at(m, "exchange"));
  costs.clock = to_cost(at(m, "clock"));
  costs.pause = to_cost(at(m, "pause"));
  costs.yield = to_cost(at(m, "yield"));
  costs.mutex = to_cost(at(m, "mutex"));
  costs.wake = to_cost(at(m, "wake"));
  costs.operation = to_cost(at(m, "operation"));
  fit_flushes(m, costs);
}

Measured simulate(const Costs& costs, FlushInstruction flush) {
  emu::sim::Config config;
  config.schedule = emu::sim::Schedule::timed;
  config.costs = costs;
  config.tracks_media = false;
  emu::sim::Machine machine(config);
  Measured simulated;
  machine.run([&] {
    constexpr std::uint64_t kCount = 2000;
    Options options;
    options.memory = MemoryKind::emulated;
    options.flush = flush;
    for (const RuntimeMicro& row : run_runtime_micros("/simulated", options, kCount)) {
      simulated[row.name] = row.ns;
      simulated[row.name + "_lines"] = row.lines;
    }
  });
  if (!machine.uncaught().empty()) throw std::runtime_error(machine.uncaught());
  return simulated;
}

void take_instructions(const Measured& m, FlushInstruction flush, Costs& costs) {
  for (std::uint32_t Costs::*cost : {&Costs::begin, &Costs::read, &Costs::write, &Costs::commit,
                                     &Costs::log, &Costs::log_line, &Costs::step}) {
    costs.*cost = 0;
  }
  const Measured free = simulate(costs, flush);
  const auto lacks = [&](const std::string& name) { return at(m, name) - at(free, name); };
  const double read = (lacks("read_8") - lacks("read_1")) / 7;
  const double begin = lacks("read_1") - read;
  const double object = (lacks("write_8") - lacks("write_1")) / 7;
  const double commit = lacks("write_1") - begin - object;
  const double lines = at(free, "durable_8_lines") - at(free, "durable_1_lines");
  const double log_line = (lacks("durable_8") - lacks("durable_1") - 7 * object) / lines;
  costs.read = to_cost(read);
  costs.begin = to_cost(begin);
  costs.write = to_cost(object - read);
  costs.commit = to_cost(commit);
  costs.log_line = to_cost(log_line);
  const double log = lacks("durable_1") - begin - object - commit -
                     std::max(0.0, log_line) * at(free, "durable_1_lines");
  costs.log = to_cost(log);
  // Less than nothing is left if work hides a part of the fence; what counts is the other part.
  if (log < 0) costs.fence = to_cost(costs.fence / 1000.0 + log);
}

}  // namespace

Measured measured_in(const nlohmann::json& rows) {
  Measured measured;
  for (const auto& row : rows) {
    measured[row.at("micro").get<std::string>()] = row.at("value").get<double>();
  }
  return measured;
}

Costs costs_from(const Measured& measured, FlushInstruction flush) {
  Costs costs;
  take_hardware(measured, costs);
  take_instructions(measured, flush, costs);
  return costs;
}

int run_calibration(const SimArguments& a) {
  CostsFile costs;
  Measured measured;
  try {
    const auto rows = read_json("--calibrate", a.calibrate);
    measured = measured_in(rows);
    costs.machine = rows.at(0).at("machine");
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(
        fmt::format("--calibrate: {}: wanted the output of sp3 micro --calibrate --json, found: {}",
                    a.calibrate, error.what()));
  }
  try {
    costs.costs = costs_from(measured);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("--calibrate: {}: {}", a.calibrate, error.what()));
  }
  const Measured simulated = simulate(costs.costs, FlushInstruction::automatic);
  std::FILE* const out = a.json == "-" ? stderr : stdout;
  print_to(out, "{:<12} {:>10} {:>10}\n", "", "native ns", "simulated");
  for (const char* name : {"read_1", "read_8", "write_1", "write_8", "durable_1", "durable_8"}) {
    print_to(out, "{:<12} {:>10.1f} {:>10.1f}\n", name, at(measured, name), at(simulated, name));
  }
  const nlohmann::json json = {
      {"machine", costs.machine}, {"costs_ns", to_json(costs.costs)}, {"measured_ns", measured}};
  print_to(out, "{}\n", json["costs_ns"].dump(2));
  if (!a.json.empty()) write_output(a.json, to_text(json) + "\n");
  return kOk;
}

}  // namespace sp3::tools

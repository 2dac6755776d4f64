// sp3 micro: the parts that a transaction's cost is made of.
#include "tools/micro.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/bench_options.h"
#include "tools/bench_run.h"
#include "tools/command.h"
#include "tools/option_effects.h"
#include "tools/print_to.h"
#include "tools/repeats.h"
#include "workloads/machine.h"
#include "workloads/runner.h"

namespace sp3::tools {

namespace {

using workloads::SystemOptions;

struct MicroArguments {
  StoreArguments store;
  OpenArguments open;
  std::string open_size = "4G";
  double seconds = 1.0;
  unsigned repeat = 3;
  bool floor = false, empty = false, read = false, checkpoint = false, opening = false, all = false;
  bool calibrate = false;
  std::string json;
};

nlohmann::json to_json_rows(const std::vector<MicroRow>& rows, const SystemOptions& options) {
  const workloads::Machine machine = workloads::describe_machine();
  const FlushInstruction flush = measure_flush(options).instruction;
  nlohmann::json all = nlohmann::json::array();
  for (const MicroRow& r : rows) {
    nlohmann::json row = to_json(options, flush);
    row.update({{"micro", r.name},
                {"value", r.value},
                {"unit", r.unit},
                {"note", r.note},
                {"commit", workloads::built_from()},
                {"machine", to_json(machine)}});
    all.push_back(row);
  }
  return all;
}

int run(const CLI::App& micro, MicroArguments a) {
  check_repeat(a.repeat);
  check_seconds(a.seconds);
  const bool any = a.floor || a.empty || a.read || a.checkpoint || a.opening || a.calibrate;
  if (!any || a.all) a.floor = a.empty = a.read = a.checkpoint = true;
  if (a.all) a.opening = true;
  a.open.pool_size = parse_size(a.open_size);
  const SystemOptions options = system_options(a.store);
  // A floor that fences each write says nothing of commits that are fenced in groups, and the other
  // rows do not wait for them.
  if (options.asynchronous) throw UsageError("--durability: micro measures sync only");
  refuse_options_without_effect(micro, chosen({workloads::WorkloadKind::sps}, {"sp3"}, a.store));
  std::vector<MicroRow> rows;
  const auto add = [&](std::vector<MicroRow> more) {
    std::ranges::move(more, std::back_inserter(rows));
  };
  if (a.empty || a.read) add(measure_small(options, a.repeat, a.empty, a.read));
  if (a.floor) add(measure_floor_ratio(options, a.seconds, a.repeat));
  if (a.checkpoint) add(measure_checkpoint(options, a.seconds, a.repeat));
  if (a.opening) add(measure_open(options, a.open, a.repeat));
  if (a.calibrate) add(measure_costs(options, a.repeat));

  std::FILE* out = a.json == "-" ? stderr : stdout;
  for (const MicroRow& row : rows) {
    print_to(out, "{:<28} {:>14.2f} {:<9} {}\n", row.name, row.value, row.unit, row.note);
  }
  if (!a.json.empty()) write_output(a.json, to_json_rows(rows, options).dump(2) + "\n");
  return kOk;
}

}  // namespace

void add_micro_command(CLI::App& app, int& exit_code) {
  auto a = std::make_shared<MicroArguments>();
  CLI::App* micro = app.add_subcommand(
      "micro", "measure what transactions are made of (default: all but --open)");
  micro->add_flag("--floor", a->floor, "sps over only writing and flushing the same lines");
  micro->add_flag("--empty", a->empty, "an empty transaction");
  micro->add_flag("--read", a->read, "a transaction that reads one cached object");
  micro->add_flag("--checkpoint", a->checkpoint,
                  "the longest pause that checkpoints add (makes a pool of 6 GiB)");
  micro->add_flag("--open", a->opening, "opening a cleanly closed pool");
  micro->add_flag("--all", a->all, "all of the above");
  micro->add_flag("--calibrate", a->calibrate, "what sp3 sim --calibrate makes its costs of");
  micro->add_option("--open-objects", a->open.objects, "in the pool of --open")
      ->check(at_least_one())
      ->capture_default_str();
  micro->add_option("--open-size", a->open_size, "of the pool of --open")->capture_default_str();
  micro->add_option("--seconds", a->seconds, "of each timed run")->capture_default_str();
  micro->add_option("--repeat", a->repeat, "runs; the median counts")->capture_default_str();
  add_output_option(*micro, "--json", a->json, "write the rows to this file, - for stdout");
  add_store_options(*micro, a->store);
  micro->callback([a, micro, &exit_code] { exit_code = run(*micro, *a); });
}

}  // namespace sp3::tools

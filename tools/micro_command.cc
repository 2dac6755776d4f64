// sp3 micro: the parts that a transaction's cost is made of.
#include "tools/micro.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

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

nlohmann::json to_json_rows(const std::vector<MicroRow>& rows, const FlushCost& flush) {
  const nlohmann::json machine = to_json(workloads::describe_machine());
  nlohmann::json all = nlohmann::json::array();
  for (const MicroRow& r : rows) {
    const std::uint64_t pool_size = r.options.pool_size;
    nlohmann::json row = to_json(r.options, flush.instruction);
    row.update({{"micro", r.name},
                {"value", r.value},
                {"unit", r.unit},
                {"note", r.note},
                {"flush_cost_ns", flush.nanoseconds},
                {"pool_size", pool_size != 0 ? nlohmann::json(pool_size) : nlohmann::json()},
                {"commit", workloads::built_from()},
                {"machine", machine}});
    all.push_back(row);
  }
  return all;
}

// What no chosen measurement looks at, or what all of them settle themselves.
void refuse_options_without_effect(const CLI::App& micro, const MicroArguments& a) {
  std::vector<std::string> chosen;
  const auto choose = [&](bool is, const char* name) {
    if (is) chosen.emplace_back(name);
  };
  choose(a.floor, "--floor");
  choose(a.empty, "--empty");
  choose(a.read, "--read");
  choose(a.checkpoint, "--checkpoint");
  choose(a.opening, "--open");
  choose(a.calibrate, "--calibrate");
  const auto refuse = [&](const char* option, bool is_used) {
    if (micro.count(option) != 0 && !is_used) throw means_nothing(option, chosen);
  };
  refuse("--open-objects", a.opening);
  refuse("--open-size", a.opening);
  refuse("--seconds", a.floor || a.checkpoint);
  refuse("--pool-size", a.floor);
  refuse("--checkpoint-ms", chosen.size() > 1 || !a.checkpoint);
}

// Of the largest pool that a chosen measurement makes whatever --pool-size says; 0: of none.
std::uint64_t largest_pool(const MicroArguments& a) {
  return std::max(a.checkpoint ? kCheckpointPool : 0, a.opening ? a.open.pool_size : 0);
}

int run(const CLI::App& micro, MicroArguments a) {
  check_repeat(a.repeat);
  check_seconds(a.seconds);
  const bool any = a.floor || a.empty || a.read || a.checkpoint || a.opening || a.calibrate;
  if (!any || a.all) a.floor = a.empty = a.read = a.checkpoint = true;
  if (a.all) a.opening = true;
  a.open.pool_size = parse_size(a.open_size);
  const SystemOptions options = system_options(a.store, largest_pool(a));
  // A floor that fences each write says nothing of commits that are fenced in groups, and the other
  // rows do not wait for them.
  if (options.asynchronous) throw UsageError("--durability: micro measures sync only");
  refuse_options_without_effect(micro, chosen({workloads::WorkloadKind::sps}, {"sp3"}, a.store));
  refuse_options_without_effect(micro, a);
  std::FILE* out = a.json == "-" ? stderr : stdout;
  print_origin(out);
  const FlushCost flush = measure_flush(options);
  print_to(out, "{}\n", describe(flush));
  std::vector<MicroRow> rows;
  // Each as soon as it is there: the next may take minutes.
  const auto add = [&](const std::vector<MicroRow>& more) {
    for (const MicroRow& row : more) {
      print_to(out, "{:<28} {:>14.2f} {:<9} {}\n", row.name, row.value, row.unit, row.note);
      rows.push_back(row);
    }
    std::fflush(out);
  };
  if (a.empty || a.read) add(measure_small(options, a.repeat, a.empty, a.read));
  if (a.floor) add(measure_floor_ratio(options, a.seconds, a.repeat));
  if (a.checkpoint) add(measure_checkpoint(options, a.seconds, a.repeat));
  if (a.opening) add(measure_open(options, a.open, a.repeat));
  if (a.calibrate) add(measure_costs(options, a.repeat));
  if (a.json.empty()) return kOk;
  write_output(a.json, to_text(to_json_rows(rows, flush)) + "\n");
  return kOk;
}

}  // namespace

void add_micro_command(CLI::App& app, int& exit_code) {
  auto a = std::make_shared<MicroArguments>();
  CLI::App* micro = app.add_subcommand(
      "micro", "measure what transactions are made of (default: all but --open and --calibrate)");
  micro->add_flag("--floor", a->floor, "sps over only writing and flushing the same lines");
  micro->add_flag("--empty", a->empty, "an empty transaction");
  micro->add_flag("--read", a->read, "a transaction that reads one cached object");
  micro->add_flag(
      "--checkpoint", a->checkpoint,
      fmt::format("the longest pause that checkpoints add; each of its runs, two for each "
                  "--repeat, makes a pool of {}",
                  format_size(kCheckpointPool)));
  micro->add_flag("--open", a->opening, "opening a cleanly closed pool");
  micro->add_flag("--all", a->all, "all of the above");
  micro->add_flag("--calibrate", a->calibrate, "what sp3 sim --calibrate makes its costs of");
  micro->add_option("--open-objects", a->open.objects, "in the pool of --open")
      ->check(at_least_one())
      ->capture_default_str();
  micro->add_option("--open-size", a->open_size, "of the pool of --open")->capture_default_str();
  micro->add_option("--seconds", a->seconds, "of each run of --floor or --checkpoint")
      ->capture_default_str();
  micro->add_option("--repeat", a->repeat, "runs; the median counts")->capture_default_str();
  add_output_option(*micro, "--json", a->json, "write the rows to this file, - for stdout");
  add_store_options(*micro, a->store);
  micro->get_option("--pool-size")->description("of --floor, bytes, with K, M, G");
  // Known, so that their errors say why: nothing here is asynchronous or has ranges.
  for (const char* option : {"--durability", "--group", "--range-lock"}) {
    micro->get_option(option)->group("");
  }
  micro->callback([a, micro, &exit_code] { exit_code = run(*micro, *a); });
}

}  // namespace sp3::tools

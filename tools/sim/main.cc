// sp3-sim: what `sp3 sim` runs.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/command.h"
#include "tools/option_effects.h"
#include "tools/print_to.h"
#include "tools/sim/arguments.h"
#include "tools/sim/case_options.h"
#include "tools/sim/orders.h"
#include "workloads/machine.h"

namespace sp3::tools {
namespace {

// Groups of options. An option of another group than what is done belongs to would do nothing.
constexpr const char* kTimed = "Timed runs";
constexpr const char* kCampaigns = "Campaigns";
constexpr const char* kCosts = "Costs";

// The others say why not when they are asked for.
std::string names_of_runnable_systems() {
  const workloads::SystemOptions options = system_options({});
  std::vector<std::string_view> names;
  for (const workloads::SystemInfo& info : workloads::systems()) {
    const auto can_run = [&](workloads::WorkloadKind kind) {
      workloads::WorkloadSpec spec;
      spec.kind = kind;
      return workloads::why_unsupported(info.name, spec, options).empty();
    };
    if (std::ranges::any_of(workloads::kAllWorkloads, can_run)) names.push_back(info.name);
  }
  return fmt::to_string(fmt::join(names, ", "));
}

void add_timed_options(CLI::App& app, SimArguments& a) {
  app.option_defaults()->group(kTimed);
  add_workload_option(app, a.workloads);
  app.add_option("--system", a.systems, "a list of " + names_of_runnable_systems())
      ->capture_default_str();
  app.add_option("--cores", a.cores, "a list of numbers of virtual cores")->capture_default_str();
  add_spec_options(app, a.spec);
  add_named_spec_options(app, a.spec);
  app.add_option("--operations", a.run.operations, "of each run, all cores together")
      ->check(at_least_one())
      ->capture_default_str();
  app.add_option("--repeat", a.repeat, "runs of each cell, seed by seed; the median counts")
      ->capture_default_str();
  app.add_option("--seed", a.spec.seed, "of the operations and the machine")->capture_default_str();
  app.add_flag("--check", a.check, "check the structure's invariants after each run");
  app.add_option("--costs", a.costs_file, "a file of costs instead of the default ones");
  app.add_option("--cost", a.factors, "NAME=FACTOR: one cost multiplied, may be repeated");
  add_store_options(app, a.store);
}

void add_campaign_options(CLI::App& app, SimArguments& a) {
  app.option_defaults()->group(kCampaigns);
  auto* explore =
      app.add_flag("--explore", a.explore, "try interleavings instead of measuring time");
  auto* crash =
      app.add_flag("--crash", a.crash, "with power losses and kills at all events")->needs(explore);
  app.add_flag("--rot", a.rot,
               "with --crash or --replay: the media also lose something of what they hold");
  app.add_flag("--weak-memory", a.weak_memory,
               "cores need not see one order of all stores: loads may give what was there before");
  app.add_option(
      "--weaken", a.weaken,
      "FILE:LINE=ORDER: what the memory orders of accesses there are weakened to, to see "
      "it found");
  app.add_flag("--orders", a.orders,
               "with --weak-memory: list the accesses met that have an order to weaken")
      ->needs(explore);
  app.add_option("--seeds", a.seeds,
                 "of a campaign: FIRST-LAST, or FIRST- (1-1000; with --images 1000000-)")
      ->needs(explore);
  app.add_option("--images", a.images, "of a campaign: start no seed after so many crash images")
      ->needs(crash);
  app.add_option("--seconds", a.seconds, "of a campaign: start no seed after this time")
      ->needs(explore);
  auto* replay =
      app.add_option("--replay", a.replay,
                     "what a campaign runs of this seed, with its events up to a violation")
          ->excludes(explore);
  app.add_flag("--trace", a.trace, "of a replay: the events also where there is no violation")
      ->needs(replay);
  add_output_option(
      app, "--history", a.history,
      "of a replay: only the history of its longer program, as JSON to this file or -")
      ->needs(replay);
  app.add_option("--mutant", a.mutant, "a fault to switch on in the runtime, to see it found");
  app.add_option("--case-cores", a.case_cores, "of the case, instead of what the seed says")
      ->check(at_least_one());
  app.add_option("--case-transactions", a.case_transactions, "of each of its cores")
      ->check(at_least_one());
}

void add_cost_options(CLI::App& app, SimArguments& a) {
  app.option_defaults()->group(kCosts);
  app.add_option("--calibrate", a.calibrate,
                 "make costs of what sp3 micro --calibrate --json measured, for --json FILE");
  app.add_flag("--validate", a.validate,
               "all workloads natively and simulated, on 1 and 2 cores, side by side; without "
               "--costs calibrated meanwhile");
  app.add_flag("--sensitivity", a.sensitivity,
               "which conclusions survive each cost halved, and increased by half");
}

// The options that were given and are in the group, apart from those that choose what is done.
std::vector<std::string> given(const CLI::App& app, const std::string& group) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() != 0 && option->get_group() == group) names.push_back(option->get_name());
  }
  return names;
}

// What a mode that takes most options of timed runs settles itself, or leaves out.
bool does_nothing(const std::string& option, const std::string& mode) {
  static const std::map<std::string, std::set<std::string>> kSettled = {
      {"--sensitivity", {"--check", "--repeat"}},
      {"--validate",
       {"--cores", "--check", "--pool-size", "--checkpoint-ms", "--checkpoint-threads"}}};
  const auto settled = kSettled.find(mode);
  return settled != kSettled.end() && settled->second.contains(option);
}

void refuse_options_of_other_modes(const CLI::App& app) {
  const std::string all_modes[] = {"--calibrate", "--validate", "--sensitivity", "--explore",
                                   "--replay"};
  std::vector<std::string> modes;
  for (const std::string& mode : all_modes) {
    if (app.count(mode) != 0) modes.push_back(mode);
  }
  if (modes.size() > 1) throw UsageError(modes[0] + " excludes " + modes[1]);
  const std::string mode = modes.empty() ? "" : modes[0];
  const bool is_campaign = mode == "--explore" || mode == "--replay";
  for (const std::string& option : given(app, kCampaigns)) {
    if (!is_campaign) throw UsageError(option + " requires --explore or --replay");
  }
  if (mode != "--validate" && app.count("--path") != 0) {
    throw UsageError("--path requires --validate: only native runs have a file");
  }
  for (const std::string& option : given(app, kTimed)) {
    if (is_campaign || mode == "--calibrate" || does_nothing(option, mode)) {
      throw UsageError(fmt::format("{} excludes {}", mode, option));
    }
  }
}

int run_seeds(const SimArguments& a) {
  if (!a.weak_memory && (a.orders || !a.weaken.empty())) {
    throw UsageError("--weaken and --orders require --weak-memory");
  }
  switch_on_mutant(a.mutant);
  weaken_order(a.weaken);
  if (a.orders) remember_orders();
  const int code = a.replay ? run_replay(a) : run_campaign(a);
  if (!missed_weakened_order(a.weaken)) return code;
  print_to(stderr, "sp3: --weaken: met no access with an order to weaken at {}\n",
           a.weaken.substr(0, a.weaken.find('=')));
  return code == kOk ? kUsage : code;
}

int run(const CLI::App& app, const SimArguments& a) {
  refuse_options_of_other_modes(app);
  if (!a.calibrate.empty()) return run_calibration(a);
  if (a.rot && !a.crash && !a.replay) throw UsageError("--rot requires --crash or --replay");
  if (a.replay || a.explore) return run_seeds(a);
  refuse_options_without_effect(
      app, chosen(parse_workloads(a.workloads), split_list("--system", a.systems), a.store));
  if (a.validate) return run_validation(a);
  if (a.sensitivity) return run_sensitivity(a);
  return run_timed_command(a);
}

}  // namespace
}  // namespace sp3::tools

int main(int argc, char** argv) {
  CLI::App app("sp3 sim: the runtime on virtual cores, in virtual time, with simulated power loss",
               "sp3 sim");
  app.set_version_flag("--version", fmt::format("sp3 sim ({})", sp3::workloads::built_from()));
  sp3::tools::SimArguments arguments;
  arguments.run.operations = 100'000;
  int exit_code = sp3::tools::kOk;
  sp3::tools::add_timed_options(app, arguments);
  sp3::tools::add_campaign_options(app, arguments);
  sp3::tools::add_cost_options(app, arguments);
  app.option_defaults()->group("Output");
  sp3::tools::add_output_option(app, "--json", arguments.json,
                                "write the rows to this file, - for stdout; not of a replay")
      ->excludes("--replay");
  app.callback([&] { exit_code = sp3::tools::run(app, arguments); });
  return sp3::tools::run_app(app, argc, argv, exit_code);
}

#include "tools/option_effects.h"

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>

#include "tools/command.h"
#include "workloads/system.h"

namespace sp3::tools {

namespace {

using workloads::WorkloadKind;

bool has_ranges(WorkloadKind kind) { return kind == WorkloadKind::ranges; }
bool has_warehouses(WorkloadKind kind) { return kind == WorkloadKind::tpcc; }
bool is_map(WorkloadKind kind) {
  return kind == WorkloadKind::hashtable || kind == WorkloadKind::rbtree ||
         kind == WorkloadKind::bptree;
}
bool has_inserts(WorkloadKind kind) {
  return kind != WorkloadKind::sps && kind != WorkloadKind::ranges;
}
bool draws_items(WorkloadKind kind) {
  return kind != WorkloadKind::queue && kind != WorkloadKind::tpcc;
}

// Under whatever policy: the others have no ranged objects.
bool is_this_runtime(const std::string& system, bool) {
  return workloads::system_info(system).has_ranges;
}
bool is_asynchronous(const std::string& system, bool asynchronous) {
  return asynchronous || system == "sp3-async";
}
bool takes_durability(const std::string& system, bool asynchronous) {
  return asynchronous || system != "sp3-async";
}

// Who looks at an option; null: all do. Options that are not here mean something to everybody, or,
// as the entries to tpcc, are documented not to.
struct Use {
  std::string_view option;
  bool (*by_workload)(WorkloadKind kind) = nullptr;
  bool (*by_system)(const std::string& system, bool asynchronous) = nullptr;
  const char* but = "";  // for means_nothing(), of systems
};

constexpr Use kUses[] = {
    {.option = "--range-least", .by_workload = has_ranges},
    {.option = "--range-most", .by_workload = has_ranges},
    {.option = "--range-zipf", .by_workload = has_ranges},
    {.option = "--range-mix", .by_workload = has_ranges},
    {.option = "--range-chunk", .by_workload = has_ranges},
    {.option = "--range-lock", .by_workload = has_ranges},
    {.option = "--warehouses", .by_workload = has_warehouses},
    {.option = "--insert-ratio", .by_workload = has_inserts},
    {.option = "--fill", .by_workload = is_map},
    {.option = "--zipf", .by_workload = draws_items},
    {.option = "--locks", .by_system = is_this_runtime},
    {.option = "--checkpoint-ms", .by_system = is_this_runtime},
    {.option = "--checkpoint-threads", .by_system = is_this_runtime},
    {.option = "--group", .by_system = is_asynchronous, .but = " with --durability sync"},
    {.option = "--durability", .by_system = takes_durability, .but = " unless it is async"},
};

bool used_by_workloads(const Use& use, const Chosen& chosen) {
  return use.by_workload == nullptr || std::ranges::any_of(chosen.workloads, use.by_workload);
}

bool used_by_systems(const Use& use, const Chosen& chosen) {
  return use.by_system == nullptr ||
         std::ranges::any_of(chosen.systems, [&](const std::string& system) {
           return use.by_system(system, chosen.asynchronous);
         });
}

}  // namespace

void refuse_options_without_effect(const CLI::App& command, const Chosen& chosen) {
  for (const Use& use : kUses) {
    const std::string option(use.option);
    const CLI::Option* known = command.get_option_no_throw(option);
    if (known == nullptr || known->count() == 0) continue;
    if (!used_by_workloads(use, chosen)) {
      std::vector<std::string> names;
      for (const WorkloadKind kind : chosen.workloads) names.emplace_back(to_string(kind));
      throw means_nothing(option, names);
    }
    if (!used_by_systems(use, chosen)) throw means_nothing(option, chosen.systems, use.but);
  }
}

std::vector<std::string> arguments_with_effect(
    const std::vector<std::pair<std::string, std::string>>& values, const Chosen& chosen) {
  std::vector<std::string> arguments;
  for (const auto& [option, value] : values) {
    const auto* const use = std::ranges::find(kUses, option, &Use::option);
    if (use != std::end(kUses) &&
        !(used_by_workloads(*use, chosen) && used_by_systems(*use, chosen)))
      continue;
    arguments.insert(arguments.end(), {option, value});
  }
  return arguments;
}

}  // namespace sp3::tools

#include "tools/compare/plan.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tools/command.h"
#include "tools/compare/origin.h"
#include "tools/distance_rows.h"
#include "tools/file_system_of.h"
#include "tools/repeats.h"
#include "tools/start_program.h"
#include "workloads/unused_path.h"

namespace sp3::tools {

namespace {

using workloads::WorkloadKind;
using Names = std::vector<std::string>;

struct Section {
  const char* name;
  const char* title;
  MemoryKind memory;
  std::vector<Latency> latencies;
  std::vector<unsigned> threads;
  bool asynchronous;
  Names systems;
  std::vector<WorkloadKind> workloads;
};

constexpr Latency kNone{LatencyModel::fence, 0, 0};
constexpr Latency kFence{LatencyModel::fence, 500, 0};
constexpr Latency kLine{LatencyModel::line, 500, 0};
// Far above a context switch, so that threads on one core overlap their waits.
constexpr Latency kYield{LatencyModel::yield, 20'000, 0};

const Names kTransactional = {"sp3", "nvm-tx", "pmdk", "mnemosyne", "quadra"};
const Names kVariants = {"sp3-async", "nvm-ideal", "dram-tx"};
const Names kSimulatedSystems = {"sp3", "nvm-tx", "mnemosyne", "nvm-ideal", "dram-tx"};
const Names kStores = {"sp3", "lmdb", "rocksdb", "sqlite"};

Names together(Names left, const Names& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

const std::vector<WorkloadKind> kAll(std::begin(workloads::kAllWorkloads),
                                     std::end(workloads::kAllWorkloads));
// What a key-value store can do.
const std::vector<WorkloadKind> kKeyed = {WorkloadKind::hashtable, WorkloadKind::bptree};

std::vector<Section> sections_of(bool full) {
  constexpr MemoryKind kEmulated = MemoryKind::emulated;
  constexpr MemoryKind kFile = MemoryKind::file;
  const char* const emulated = "Emulated persistent memory";
  const char* const yield = "Waits that give the core away";
  const char* const file = "Files, durable in each transaction";
  const char* const groups = "Files, durable in groups";
  if (!full) {
    return {{"emulated", emulated, kEmulated, {kFence}, {2}, false, kTransactional, kAll},
            {"file", file, kFile, {kNone}, {2}, false, kStores, kKeyed},
            {"file-async", groups, kFile, {kNone}, {2}, true, kStores, kKeyed}};
  }
  const Names everyone = together(kTransactional, kVariants);
  return {{"emulated", emulated, kEmulated, {kNone, kFence, kLine}, {1, 2}, false, everyone, kAll},
          {"yield", yield, kEmulated, {kYield}, {1, 2, 4, 8, 16}, false, kTransactional, kAll},
          {"file", file, kFile, {kNone}, {1, 2, 16}, false, kStores, kKeyed},
          {"file-async", groups, kFile, {kNone}, {1, 2}, true, kStores, kKeyed}};
}

// Sections whose rows other commands make; both take longer than the two minutes of a quick run.
constexpr const char* kSimulated = "simulated";
constexpr const char* kRecovery = "recovery";
const Names kProgramSections = {kSimulated, kRecovery};

bool holds(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Those of `names` that `others` holds, too.
Names common(Names names, const Names& others) {
  std::erase_if(names, [&](const std::string& name) { return !holds(others, name); });
  return names;
}

// The listed ones of `all`, in the order of `all`. Throws UsageError for one that is not there.
Names select(const std::string& option, const std::string& list, const Names& all) {
  const Names wanted = split_list(option, list, all);
  for (const std::string& name : wanted) {
    if (holds(all, name)) continue;
    throw UsageError(fmt::format("{}: wanted all or some of {}, found '{}'", option,
                                 fmt::join(all, ", "), name));
  }
  return common(all, wanted);
}

std::vector<unsigned> threads_of(const Section& section, const CompareArguments& a) {
  return a.threads.empty() ? section.threads : parse_thread_list(a.threads);
}

bool is_built(const std::string& system) {
  return std::ranges::any_of(
      workloads::systems(), [&](const workloads::SystemInfo& info) { return info.name == system; });
}

std::filesystem::path file_directory(const CompareArguments& a) {
  std::filesystem::path directory = a.directory;
  if (directory.empty()) directory = default_directory(MemoryKind::file);
  return canonical_directory("--directory", directory);
}

workloads::SystemOptions options_of(const Section& section, const Latency& latency,
                                    const CompareArguments& a) {
  workloads::SystemOptions options;
  options.pool.memory = section.memory;
  options.pool.latency = latency;
  options.asynchronous = section.asynchronous;
  const bool on_disk = section.memory == MemoryKind::file;
  const std::filesystem::path directory =
      on_disk ? file_directory(a) : std::filesystem::path(default_directory(section.memory));
  options.path = workloads::unused_path(directory, "sp3-compare");
  return options;
}

workloads::RunOptions run_of(const CompareArguments& a, unsigned threads) {
  workloads::RunOptions run;
  run.threads = threads;
  run.seconds = a.seconds.value_or(a.full ? 0.7 : 0.3);
  run.warmup_seconds = 0.2 * run.seconds;
  run.operations = a.operations;
  return run;
}

std::vector<WorkloadKind> workloads_of(const CompareArguments& a) {
  std::vector<WorkloadKind> kinds = parse_workloads(a.workloads);
  for (const WorkloadKind kind : kinds) {
    if (std::ranges::find(workloads::kAllWorkloads, kind) != std::end(workloads::kAllWorkloads)) {
      continue;
    }
    throw UsageError(fmt::format("--workload: compare knows {}, but not {}",
                                 workloads::workload_names(), workloads::to_string(kind)));
  }
  return kinds;
}

// The cells of one group, those that can be run.
void add_group(ComparePlan& plan, const std::string& section, const Names& systems,
               const Cell& prototype) {
  Plan group;
  for (const std::string& system : systems) {
    Cell cell = prototype;
    cell.system = system;
    add_cell(group, std::move(cell));
  }
  for (Cell& cell : group.cells) plan.cells.push_back({section, std::move(cell)});
  plan.skipped.insert(plan.skipped.end(), group.skipped.begin(), group.skipped.end());
}

void add_section(ComparePlan& plan, const Section& section, const Names& systems,
                 const CompareArguments& a) {
  const std::size_t before = plan.cells.size();
  for (const WorkloadKind kind : workloads_of(a)) {
    if (std::ranges::find(section.workloads, kind) == section.workloads.end()) continue;
    for (const Latency& latency : section.latencies) {
      for (const unsigned threads : threads_of(section, a)) {
        Cell prototype{{}, a.spec, run_of(a, threads), options_of(section, latency, a), {}};
        prototype.spec.kind = kind;
        add_group(plan, section.name, systems, prototype);
      }
    }
  }
  if (plan.cells.size() != before) {
    plan.sections.push_back({{"name", section.name}, {"title", section.title}});
  }
}

// Our own systems on simulated cores, with the latency that the paper used: 500 ns for each line.
void add_simulated(ComparePlan& plan, const Names& built, const CompareArguments& a) {
  const std::filesystem::path program = program_beside(kSimulator);
  plan.description["program"][kSimulator] = nullptr;
  if (!std::filesystem::exists(program)) {
    plan.skipped.push_back(fmt::format("{}: {} is not in this build", kSimulated, kSimulator));
    return;
  }
  const std::string checksum = checksum_of(program);
  plan.description["program"][kSimulator] = checksum;
  const Names systems = common(kSimulatedSystems, built);
  if (systems.empty()) return;
  for (const WorkloadKind kind : workloads_of(a)) {
    Names arguments = {"sim",
                       "--workload",
                       workloads::to_string(kind),
                       "--system",
                       fmt::format("{}", fmt::join(systems, ",")),
                       "--cores",
                       a.threads.empty() ? "1,2,4,8,16,24" : a.threads,
                       "--model",
                       "line",
                       "--latency-ns",
                       "500",
                       "--operations",
                       fmt::to_string(a.operations != 0 ? a.operations : 12'000),
                       "--repeat",
                       fmt::to_string(a.repeat)};
    workloads::WorkloadSpec spec = a.spec;
    spec.kind = kind;
    for (std::string& argument : spec_arguments(spec)) arguments.push_back(std::move(argument));
    plan.programs.push_back(
        {kSimulated, workloads::to_string(kind), kind, std::move(arguments), checksum});
  }
  plan.sections.push_back({{"name", kSimulated}, {"title", "Simulated cores"}});
}

// Figure 8, with logs as large as fit where there is little memory.
void add_recovery(ComparePlan& plan, const Names& built, const CompareArguments& a) {
  if (!holds(built, "sp3")) return;
  for (const char* const interval : {"1000", "2000", "5000", "10000"}) {
    Names arguments = {"recovery-bench",
                       "--checkpoint-ms",
                       interval,
                       "--log-bytes",
                       "4G",
                       "--threads",
                       a.threads.empty() ? "1,2" : a.threads,
                       "--latency-ns",
                       "500",
                       "--repeat",
                       fmt::to_string(a.repeat)};
    for (std::string& argument : spec_arguments(a.spec)) arguments.push_back(std::move(argument));
    plan.programs.push_back(
        {kRecovery, fmt::format("{} ms", interval), a.spec.kind, std::move(arguments)});
  }
  plan.sections.push_back({{"name", kRecovery}, {"title", "Recovery"}});
}

// Only where something is measured there: nothing else depends on it.
void add_disk(ComparePlan& plan, const CompareArguments& a) {
  const bool used = std::ranges::any_of(plan.cells, [](const PlannedCell& planned) {
    return planned.cell.options.pool.memory == MemoryKind::file;
  });
  plan.description["file_directory"] = nullptr;
  plan.description["file_system"] = nullptr;
  if (!used && !a.directory.empty()) {
    throw UsageError("--directory: nothing of what is run is in file memory");
  }
  if (!used) return;
  const std::filesystem::path directory = file_directory(a);
  plan.description["file_directory"] = directory.string();
  plan.description["file_system"] = file_system_of(directory);
}

Names choose_sections(const std::vector<Section>& sections, const CompareArguments& a) {
  Names all;
  for (const Section& section : sections) all.emplace_back(section.name);
  if (a.full) all = together(std::move(all), kProgramSections);
  return select("--section", a.sections, all);
}

// The chosen ones that are in this build; of the others the plan says that they are not.
Names choose_systems(ComparePlan& plan, const std::vector<Section>& sections,
                     const CompareArguments& a) {
  Names all;
  for (const Section& section : sections) {
    for (const std::string& system : section.systems) {
      if (!holds(all, system)) all.push_back(system);
    }
  }
  Names built;
  for (const std::string& system : select("--system", a.systems, all)) {
    if (is_built(system)) {
      built.push_back(system);
    } else {
      plan.skipped.push_back(system + ": not in this build");
    }
  }
  return built;
}

// What follows from the arguments.
void describe_plan(ComparePlan& plan, const Names& sections, const Names& systems,
                   const CompareArguments& a) {
  const workloads::RunOptions run = run_of(a, 1);
  plan.description.update(to_json(a.spec));
  plan.description.update({{"mode", a.full ? "full" : "quick"},
                           {"sections", sections},
                           {"systems", systems},
                           {"workloads", a.workloads},
                           {"threads", a.threads},
                           {"repeat", a.repeat},
                           {"core_distance", a.distance},
                           {"seconds", run.seconds},
                           {"warmup_seconds", run.warmup_seconds},
                           {"operations", run.operations}});
}

}  // namespace

std::string PlannedCell::group() const {
  const Latency& latency = cell.options.pool.latency;
  return fmt::format("{}/{}/+{} {}/x{}", section, workloads::to_string(cell.spec.kind),
                     latency.nanoseconds, to_string(latency.model), cell.run.threads);
}

std::string PlannedCell::name() const { return group() + "/" + cell.system; }

ComparePlan make_compare_plan(const CompareArguments& a) {
  check_repeat(a.repeat);
  if (a.seconds) check_seconds(*a.seconds);
  const std::vector<Section> sections = sections_of(a.full);
  const Names wanted = choose_sections(sections, a);
  ComparePlan plan;
  plan.distance = parse_distance_limits(a.distance);
  plan.sections = nlohmann::json::array();
  plan.description["program"] = describe_program();
  const Names built = choose_systems(plan, sections, a);
  for (const Section& section : sections) {
    if (holds(wanted, section.name)) {
      add_section(plan, section, common(section.systems, built), a);
    }
  }
  if (holds(wanted, kSimulated)) add_simulated(plan, built, a);
  if (holds(wanted, kRecovery)) add_recovery(plan, built, a);
  if (plan.cells.empty() && plan.programs.empty()) {
    throw UsageError(!plan.skipped.empty()
                         ? plan.skipped.front()
                         : fmt::format("there is nothing to run: of systems {} and workloads {}, "
                                       "sections {} have none together",
                                       fmt::join(built, ", "), a.workloads,
                                       fmt::join(wanted, ", ")));
  }
  // The same combination may be impossible for the same reason at several numbers of threads.
  std::set<std::string> told;
  std::erase_if(plan.skipped, [&](const std::string& why) { return !told.insert(why).second; });
  describe_plan(plan, wanted, built, a);
  add_disk(plan, a);
  return plan;
}

}  // namespace sp3::tools

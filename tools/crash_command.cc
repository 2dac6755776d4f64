// sp3 crash-test: kills a process that runs transactions, again and again, and checks what is left.
//
// One pool for each workload and durability. Rounds go over the pools in turn; each kills a victim,
// recovers, compares with what had been acknowledged, and the next one runs on over the same pool.
// tools/crash/ has the parts: victim and process, arena (a pool and its rounds), oracle.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/bench_rows.h"
#include "tools/command.h"
#include "tools/crash/arena.h"
#include "tools/crash/victim.h"
#include "workloads/scratch_directory.h"
#include "workloads/unused_path.h"

namespace sp3::tools {

namespace {

using crash::Arena;
using crash::RoundResult;

struct CrashArguments {
  unsigned rounds = 20;
  std::uint64_t seed = 1;
  std::string workloads = "all";
  std::string durability = "both";
  std::string strategy = "both";
  std::string memory = "emulated";
  std::string range_lock = "both";
  std::string path;
  unsigned threads = 0;
  std::uint64_t entries = 200;
  unsigned deadline_seconds = 120;
  bool keep = false;
  bool quiet = false;
};

struct Totals {
  unsigned kills = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t survivors = 0;
  unsigned violations = 0;
};

void check(const CrashArguments& a) {
  if (a.rounds == 0) throw UsageError("--rounds: wanted at least 1");
  if (a.threads > crash::kMaxThreads) {
    throw UsageError(fmt::format("--threads: wanted 1 to {}, or 0 for any, found {}",
                                 crash::kMaxThreads, a.threads));
  }
  if (a.entries < 2 || a.entries > 5000) {
    throw UsageError(fmt::format("--entries: wanted 2 to 5000, found {}", a.entries));
  }
  if (a.deadline_seconds == 0 || a.deadline_seconds > workloads::kMostSeconds) {
    throw UsageError(fmt::format("--deadline: wanted 1 to {}, found {}", workloads::kMostSeconds,
                                 a.deadline_seconds));
  }
  if (a.durability != "both" && a.durability != "sync" && a.durability != "async") {
    throw UsageError("--durability: wanted sync, async or both, found '" + a.durability + "'");
  }
  if (a.strategy != "both" && a.strategy != "stamp" && a.strategy != "dag") {
    throw UsageError("--strategy: wanted stamp, dag or both, found '" + a.strategy + "'");
  }
  if (parse_memory(a.memory) == MemoryKind::automatic) {
    throw UsageError("--memory: wanted emulated, file or dax");
  }
  if (!a.path.empty() && !std::filesystem::is_directory(a.path)) {
    throw UsageError("--path: wanted a directory, found '" + a.path + "'");
  }
  if (!a.path.empty() && ::access(a.path.c_str(), W_OK | X_OK) != 0) {
    throw UsageError("--path: wanted a directory to write to, found '" + a.path + "'");
  }
}

// None: both.
std::optional<RangeLockKind> parse_range_lock(const std::string& name) {
  if (name == "both") return std::nullopt;
  if (name == to_string(RangeLockKind::skiplist)) return RangeLockKind::skiplist;
  if (name == to_string(RangeLockKind::grid)) return RangeLockKind::grid;
  throw UsageError("--range-lock: wanted skiplist, grid or both, found '" + name + "'");
}

// Beside the paper's.
constexpr workloads::WorkloadKind kOtherWorkloads[] = {workloads::WorkloadKind::ranges,
                                                       workloads::WorkloadKind::bank};

std::string crash_workload_names() {
  std::string names = workloads::workload_names();
  for (const workloads::WorkloadKind kind : kOtherWorkloads) {
    names += fmt::format(", {}", to_string(kind));
  }
  return names;
}

std::vector<workloads::WorkloadKind> parse_crash_workloads(const std::string& text) {
  auto known = parse_workloads("all");
  known.insert(known.end(), std::begin(kOtherWorkloads), std::end(kOtherWorkloads));
  std::vector<std::string> all;
  all.reserve(known.size());
  for (const workloads::WorkloadKind kind : known) all.emplace_back(to_string(kind));
  std::vector<workloads::WorkloadKind> kinds;
  for (const std::string& name : split_list("--workload", text, all)) {
    const auto kind = std::ranges::find(known, name, [](auto each) { return to_string(each); });
    if (kind == known.end()) {
      throw UsageError(
          fmt::format("--workload: crash-test knows {}, but not {}", crash_workload_names(), name));
    }
    kinds.push_back(*kind);
  }
  return kinds;
}

// The pools, in the order in which rounds go over them: neighbours differ in workload and
// durability.
std::vector<crash::ArenaOptions> plan_arenas(const CrashArguments& a) {
  const auto kinds = parse_crash_workloads(a.workloads);
  std::vector<bool> durabilities;
  if (a.durability != "async") durabilities.push_back(false);
  if (a.durability != "sync") durabilities.push_back(true);
  const MemoryKind memory = parse_memory(a.memory);
  const std::filesystem::path directory = a.path.empty() ? default_directory(memory) : a.path;
  std::vector<crash::ArenaOptions> arenas;
  for (std::size_t pass = 0; pass < durabilities.size(); ++pass) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      crash::ArenaOptions o;
      workloads::Rng rng(a.seed, arenas.size());
      o.asynchronous = durabilities[(i + pass) % durabilities.size()];
      o.memory = memory;
      o.range_lock = parse_range_lock(a.range_lock);
      o.deadline = std::chrono::seconds(a.deadline_seconds);
      o.seed = rng.next();
      o.plan.workload = kinds[i];
      o.plan.entries = a.entries;
      o.plan.seed = rng.next();
      o.plan.threads = a.threads != 0 ? a.threads : 1 + static_cast<unsigned>(rng.below(4));
      o.path = workloads::unused_path(directory, fmt::format("sp3-crash-{}", arenas.size()));
      arenas.push_back(o);
    }
  }
  return arenas;
}

// Before anything is killed: nothing about the library follows from a full disk.
void require_room_for(std::size_t pools, const std::filesystem::path& directory) {
  require_room("there is no room for the pools", directory,
               pools * Arena::kFiles * Arena::kPoolSize, workloads::left_in(directory));
}

RecoveryStrategy strategy_of(const CrashArguments& a, unsigned visit, std::size_t arena) {
  if (a.strategy != "both") return parse_strategy(a.strategy);
  return (visit + arena) % 2 == 0 ? RecoveryStrategy::stamp : RecoveryStrategy::dag;
}

void print_round(const CrashArguments& a, unsigned round, const Arena& arena,
                 const RoundResult& result) {
  if (a.quiet && result.violations.empty()) return;
  fmt::print(
      "round {:>4}  {:<9} {:<5} {:<5} {} threads  killed {:<40} acked {:>6} +{:<2} recovered {:>5} "
      "dropped {:>2}  {}\n",
      round, to_string(arena.options().plan.workload),
      arena.options().asynchronous ? "async" : "sync", to_string(result.strategy),
      arena.options().plan.threads, result.death, result.acknowledged, result.survivors,
      result.records, result.dropped, result.violations.empty() ? "ok" : "VIOLATION");
  for (const std::string& text : result.violations) fmt::print("  {}\n", text);
  require_output();
}

class CrashTest {
 public:
  explicit CrashTest(const CrashArguments& a) : a_(a) {
    std::vector<crash::ArenaOptions> plan = plan_arenas(a);
    require_room_for(std::min<std::size_t>(plan.size(), a.rounds), plan.front().path.parent_path());
    for (crash::ArenaOptions& options : plan) {
      arenas_.push_back(std::make_unique<Arena>(std::move(options)));
      if (a.keep) arenas_.back()->keep_files();
    }
    created_.resize(arenas_.size());
  }

  int run() {
    fmt::print(
        "crash-test --rounds {} --seed {} --workload {} --durability {} --strategy {} --memory {} "
        "--range-lock {} --entries {} --threads {} --deadline {}\n",
        a_.rounds, a_.seed, a_.workloads, a_.durability, a_.strategy, a_.memory, a_.range_lock,
        a_.entries, a_.threads, a_.deadline_seconds);
    for (unsigned round = 0; round < a_.rounds; ++round) {
      const std::size_t index = round % arenas_.size();
      if (!arenas_[index]) continue;  // it failed before
      Arena& arena = *arenas_[index];
      RoundResult result;
      if (!created_[index]) result.violations = arena.create();
      created_[index] = true;
      if (result.violations.empty()) {
        const auto visit = static_cast<unsigned>(round / arenas_.size());
        result = arena.round(strategy_of(a_, visit, index));
      }
      account(round + 1, index, result);
    }
    for (std::size_t index = 0; index < arenas_.size(); ++index) {
      if (!arenas_[index] || !created_[index]) continue;
      RoundResult result = arenas_[index]->finish(strategy_of(a_, 0, index));
      result.death = "no more";
      if (!result.violations.empty()) account(a_.rounds, index, result);
    }
    return summary();
  }

 private:
  void account(unsigned round, std::size_t index, const RoundResult& result) {
    totals_.kills += result.kills;
    totals_.acknowledged += result.acknowledged;
    totals_.survivors += result.survivors;
    // For whoever looks into it: what was found, and what recovery had started from.
    if (!result.violations.empty()) arenas_[index]->keep_files();
    print_round(a_, round, *arenas_[index], result);
    if (result.violations.empty()) return;
    ++totals_.violations;
    const std::filesystem::path pool = arenas_[index]->options().path;
    if (std::filesystem::exists(pool)) {
      fmt::print("  kept: {} and, as it was when the victim died, {}\n", pool.string(),
                 arenas_[index]->crashed_copy().string());
    }
    arenas_[index].reset();
  }

  [[nodiscard]] int summary() const {
    fmt::print(
        "{} kills, {} acknowledged transactions, {} unacknowledged survivors, {} violations\n",
        totals_.kills, totals_.acknowledged, totals_.survivors, totals_.violations);
    if (totals_.violations == 0) return kOk;
    fmt::print(
        "seed {}: the same command makes the same transactions and the same kind of kills; "
        "the moment of a kill is the machine's\n",
        a_.seed);
    return kFound;
  }

  const CrashArguments& a_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<bool> created_;
  Totals totals_;
};

void add_victim_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<crash::VictimOptions>();
  CLI::App* victim = app.add_subcommand("crash-victim", "the process that crash-test kills");
  victim->group("");  // not in the help
  crash::VictimOptions::add_to(*victim, *options);
  victim->callback([options, &exit_code] { exit_code = crash::run_victim(*options); });
}

}  // namespace

void add_crash_command(CLI::App& app, int& exit_code) {
  add_victim_command(app, exit_code);
  auto a = std::make_shared<CrashArguments>();
  CLI::App* test = app.add_subcommand(
      "crash-test", "kill a running process, recover, check, run on; 1 if anything is wrong");
  test->add_option("--rounds", a->rounds, "how many times")->capture_default_str();
  test->add_option("--seed", a->seed, "of transactions and kills")->capture_default_str();
  test->add_option("--workload", a->workloads, "all, or a list of " + crash_workload_names())
      ->capture_default_str();
  test->add_option("--durability", a->durability, "sync, async or both")->capture_default_str();
  test->add_option("--strategy", a->strategy, "stamp, dag or both in turn")->capture_default_str();
  test->add_option("--memory", a->memory, "emulated, file or dax")->capture_default_str();
  test->add_option("--range-lock", a->range_lock, "of ranged objects: skiplist, grid or both")
      ->capture_default_str();
  test->add_option("--path", a->path, "the directory for the pools");
  test->add_option("--threads", a->threads, "of a victim; 0: 1 to 4, by seed")
      ->capture_default_str();
  test->add_option("--entries", a->entries, "array slots, accounts or keys")->capture_default_str();
  test->add_option("--deadline", a->deadline_seconds,
                   "seconds of silence after which a victim hangs, which is a violation")
      ->capture_default_str();
  test->add_flag("--keep", a->keep, "leave the pools when done");
  test->add_flag("--quiet", a->quiet, "print only violations and the summary");
  test->callback([a, &exit_code] {
    check(*a);
    exit_code = CrashTest(*a).run();
  });
}

}  // namespace sp3::tools

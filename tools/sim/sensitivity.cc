// sp3 sim --sensitivity: each cost halved, and increased by half, and what of the conclusions is
// left.
//
// The conclusions, for each workload, with the cores --cores names (its first and its last):
//   order     which system is faster than which on the most cores
//   gain      throughput of the first system over that of the second there
//   speed-up  of the first system, most cores over fewest
//
// The first and the second of those that can run the workload; a system that cannot is left out.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/print_to.h"
#include "tools/progress_bar.h"
#include "tools/sim/arguments.h"
#include "tools/sim/timed.h"

namespace sp3::tools {
namespace {

using emu::sim::Costs;

// Systems closer than this count as equal: their order is not a conclusion.
constexpr double kEqual = 0.03;

struct Conclusions {
  double gain = 0;
  double speedup = 0;
  std::map<std::string, double> throughputs;  // on the most cores, by system
};

// Of one workload: what its systems are asked, in the order in which they are compared.
struct Question {
  const SimArguments& a;
  workloads::WorkloadKind kind;
  std::vector<std::string> systems;
  unsigned few = 1;
  unsigned many = 16;
};

Cell cell_of(const Question& q, const std::string& system, unsigned cores) {
  StoreArguments store = q.a.store;
  store.path = "/simulated";
  Cell cell{system, q.a.spec, q.a.run, system_options(store), {}};
  cell.spec.kind = q.kind;
  cell.run.threads = cores;
  return cell;
}

// Without the systems that cannot run the workload, and without the workloads that leave nothing to
// compare; `skipped` says why.
std::vector<Question> make_questions(const SimArguments& a, std::vector<std::string>& skipped) {
  const std::vector<std::string> systems = split_list("--system", a.systems);
  if (systems.size() < 2) {
    throw UsageError(fmt::format("--system: wanted two or more to compare, found '{}'", a.systems));
  }
  const std::vector<std::string> cores = split_list("--cores", a.cores);
  std::vector<Question> questions;
  for (const workloads::WorkloadKind kind : parse_workloads(a.workloads)) {
    Question q{a,
               kind,
               {},
               parse_threads(cores.front(), "--cores"),
               parse_threads(cores.back(), "--cores")};
    Plan plan;
    for (const std::string& system : systems) {
      const std::size_t before = plan.cells.size();
      add_cell(plan, cell_of(q, system, std::max(q.few, q.many)));
      if (plan.cells.size() != before) q.systems.push_back(system);
    }
    skipped.insert(skipped.end(), plan.skipped.begin(), plan.skipped.end());
    if (q.systems.size() == 1) {
      skipped.push_back(fmt::format("{}: of the systems only {} can run it",
                                    workloads::to_string(kind), q.systems.front()));
    }
    if (q.systems.size() > 1) questions.push_back(std::move(q));
  }
  if (questions.empty()) throw UsageError(skipped.front());
  return questions;
}

Conclusions conclude(const Question& q, const Costs& costs) {
  const workloads::Zipf zipf(q.a.spec.entries, q.a.spec.zipf);
  const auto throughput = [&](const std::string& system, unsigned cores) {
    return run_timed(cell_of(q, system, cores), zipf, costs, false).result.throughput();
  };
  Conclusions found;
  for (const std::string& system : q.systems) {
    found.throughputs[system] = throughput(system, q.many);
  }
  found.speedup = found.throughputs[q.systems[0]] / throughput(q.systems[0], q.few);
  found.gain = found.throughputs[q.systems[0]] / found.throughputs[q.systems[1]];
  return found;
}

// Whether no two systems that were apart have changed places.
bool same_order(const Conclusions& base, const Conclusions& other) {
  for (const auto& [one, was] : base.throughputs) {
    for (const auto& [two, its] : base.throughputs) {
      if (was <= its * (1 + kEqual)) continue;
      if (other.throughputs.at(one) < other.throughputs.at(two)) return false;
    }
  }
  return true;
}

// How far a number goes as costs change.
class Swing {
 public:
  explicit Swing(double base) : base_(base), low_(base), high_(base) {}

  void add(double value) {
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  [[nodiscard]] double base() const { return base_; }
  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }

 private:
  double base_, low_, high_;
};

void print_heading(std::FILE* out) {
  print_to(out, "{:<10} {:>7} {:>15} {:>9} {:>15}  {}\n", "workload", "gain", "between", "speed-up",
           "between", "the order of systems");
}

void print_row(std::FILE* out, workloads::WorkloadKind kind, const Swing& gain,
               const Swing& speedup, const std::string& changed) {
  print_to(out, "{:<10} {:>7.2f} {:>7.2f} {:>7.2f} {:>9.2f} {:>7.2f} {:>7.2f}  {}\n",
           workloads::to_string(kind), gain.base(), gain.low(), gain.high(), speedup.base(),
           speedup.low(), speedup.high(), changed.empty() ? "stays" : "changes with" + changed);
  std::fflush(out);
}

// An empty name: no cost was changed.
nlohmann::json row_json(const Question& q, const char* cost, double factor, const Conclusions& base,
                        const Conclusions& found) {
  return {{"workload", workloads::to_string(q.kind)},
          {"systems", q.systems},
          {"cores", {q.few, q.many}},
          {"cost", cost},
          {"factor", factor},
          {"gain", found.gain},
          {"speedup", found.speedup},
          {"throughputs", found.throughputs},
          {"same_order", same_order(base, found)}};
}

}  // namespace

int run_sensitivity(const SimArguments& a) {
  CostsFile costs = read_costs(a.costs_file);
  apply_factors(costs.costs, a.factors);
  std::vector<std::string> skipped;
  const std::vector<Question> questions = make_questions(a, skipped);
  std::FILE* const out = a.json == "-" ? stderr : stdout;
  print_heading(out);
  nlohmann::json json = nlohmann::json::array();
  ProgressBar progress;
  std::size_t done = 0;
  const std::size_t total = questions.size() * std::size(emu::sim::kNamedCosts);
  for (const Question& q : questions) {
    const Conclusions base = conclude(q, costs.costs);
    json.push_back(row_json(q, "", 1, base, base));
    Swing gain(base.gain);
    Swing speedup(base.speedup);
    std::string changed;
    for (const emu::sim::NamedCost& cost : emu::sim::kNamedCosts) {
      progress.show(fmt::format("{}, {}", workloads::to_string(q.kind), cost.name), done++, total);
      if (costs.costs.*(cost.value) == 0) continue;
      for (const double factor : {0.5, 1.5}) {
        Costs other = costs.costs;
        scale(other, cost, factor);
        const Conclusions found = conclude(q, other);
        gain.add(found.gain);
        speedup.add(found.speedup);
        if (!same_order(base, found)) changed += fmt::format(" {}={}", cost.name, factor);
        json.push_back(row_json(q, cost.name, factor, base, found));
      }
    }
    progress.clear();
    print_row(out, q.kind, gain, speedup, changed);
  }
  for (const std::string& reason : skipped) print_to(out, "skipped: {}\n", reason);
  if (!a.json.empty()) write_output(a.json, to_text(json) + "\n");
  return kOk;
}

}  // namespace sp3::tools

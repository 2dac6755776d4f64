#include "tools/sim/seed_run.h"

#include <fmt/format.h>

#include "tools/sim/case_options.h"
#include "tools/sim/on_abort.h"

namespace sp3::tools {
namespace {

constexpr std::uint32_t kLongProgram = 25;  // transactions a core, where nothing crashes

}  // namespace

sim::Case long_case_for(std::uint64_t seed, const SimArguments& a) {
  sim::Case c = case_for(seed, a);
  if (a.case_transactions == 0) c.transactions = kLongProgram;
  return c;
}

SeedRun run_long_program(std::uint64_t seed, const SimArguments& a, sim::Observer* observer) {
  const NameSeedOnAbort name(seed);
  sim::CrashLab lab({});
  lab.observe(observer);
  lab.explore(long_case_for(seed, a));
  return {lab.counts(), lab.violation()};
}

SeedRun run_seed(std::uint64_t seed, const SimArguments& a, bool crash, sim::Observer* observer) {
  const NameSeedOnAbort name(seed);
  SeedRun run;
  if (crash) {
    sim::CrashLab lab(a.rot ? sim::rotting() : sim::CrashOptions());
    lab.observe(observer);
    lab.run(case_for(seed, a));
    run = {lab.counts(), lab.violation()};
    if (run.violation) return run;
  }
  const SeedRun further = run_long_program(seed, a, observer);
  run.counts += further.counts;
  run.violation = further.violation;
  return run;
}

std::string replay_command(std::uint64_t seed, const SimArguments& a) {
  std::string command = fmt::format("./dev crash {}", seed);
  if (a.case_cores != 0) command += fmt::format(" --case-cores {}", a.case_cores);
  if (a.case_transactions != 0) {
    command += fmt::format(" --case-transactions {}", a.case_transactions);
  }
  if (a.rot) command += " --rot";
  if (a.weak_memory) command += " --weak-memory";
  if (!a.weaken.empty()) command += " --weaken " + a.weaken;
  if (!a.mutant.empty()) command += " --mutant " + a.mutant;
  return command;
}

}  // namespace sp3::tools

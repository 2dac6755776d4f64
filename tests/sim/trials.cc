#include "tests/sim/trials.h"

#include <array>

#include "tests/sim/campaign.h"

namespace sp3::test {
namespace {

using sim::Case;
using sim::CrashOptions;

// Few images of each event, and little that goes on from there: a trial is to be short.
CrashOptions brief() {
  CrashOptions options;
  options.most_enumerated = 8;
  options.samples = 6;
  options.nested_one_in = 2000;
  options.continued_one_in = 8000;
  options.continued_clean_one_in = 400;
  options.killed_one_in = 64;
  return options;
}

// Hardly any, of long programs.
CrashOptions sparse() {
  CrashOptions options = brief();
  options.most_enumerated = 2;
  options.samples = 3;
  return options;
}

void use_lines(Case& c, FlushInstruction flush) {
  c.options.memory = MemoryKind::emulated;
  c.options.flush = flush;
}
void use_file(Case& c) {
  c.options.memory = MemoryKind::file;
  c.options.flush = FlushInstruction::automatic;
}
void make_long(Case& c, int transactions) {
  c.cores = static_cast<int>(2 + c.seed % 2);
  c.transactions = transactions;
}
void use_structure(Case& c) {
  c.structure = static_cast<sim::StructureKind>(1 + c.seed % sim::kStructureKinds);
}

// What the kind makes of the seed's case; whether it crashes, and how.
std::optional<CrashOptions> adapt(Kind kind, Case& c) {
  CrashOptions options = brief();
  switch (kind) {
    case Kind::any:
      return options;
    case Kind::ordered:
      use_lines(c, FlushInstruction::clflush);
      return options;
    case Kind::streams:
      use_lines(c, FlushInstruction::non_temporal);
      c.cores = 3;
      c.async = true;
      return options;
    case Kind::files:
      use_file(c);
      c.cores = 3;
      return options;
    case Kind::nested:
      c.transactions = 3;
      options.most_enumerated = 2;
      options.samples = 3;
      options.nested_one_in = 16;
      return options;
    case Kind::continued:
      c.transactions = 3;
      options.most_enumerated = 2;
      options.samples = 3;
      options.continued_one_in = 40;
      options.continued_clean_one_in = 10;
      return options;
    case Kind::contended:
      c.cores = 3;
      c.transactions = 8;
      c.boxes = true;
      c.blind = true;
      c.checkpoints = true;
      return sparse();
    case Kind::recycled:
      make_long(c, 16);
      c.checkpoints = true;
      c.options.geometry.log_size = 16 * 1024;
      return sparse();
    case Kind::explored:
      make_long(c, 25);
      return std::nullopt;
    case Kind::mixed:
      make_long(c, 25);
      c.boxes = true;
      c.blind = true;
      c.checkpoints = true;
      return std::nullopt;
    case Kind::containers:
      use_structure(c);
      make_long(c, 12);
      return std::nullopt;
    case Kind::blind:
    case Kind::boxes:
      c.cores = 3;
      c.transactions = kind == Kind::blind ? 10 : 6;
      c.async = true;
      c.checkpoints = false;
      c.blind = kind == Kind::blind;
      c.boxes = kind == Kind::boxes;
      return sparse();
    case Kind::churned:
      make_long(c, 16);
      c.churn = true;
      c.reopens = true;
      c.checkpoints = true;
      c.options.geometry.log_size = 16 * 1024;
      return sparse();
    case Kind::skewed:
      make_long(c, 25);
      c.boxes = true;
      c.blind = true;
      c.checkpoints = true;
      c.clocks_agree = false;
      c.slow_clocks = true;
      return std::nullopt;
    case Kind::drifting:
      c.cores = 3;
      c.transactions = 8;
      c.async = true;
      c.checkpoints = true;
      c.clocks_agree = false;
      c.slow_clocks = true;
      return sparse();
    case Kind::late:
      c.cores = 3;
      c.transactions = 5;
      c.async = true;
      c.options.async = {.group_records = 4, .group_microseconds = 1000};
      c.late = true;
      c.checkpoints = true;
      c.clocks_agree = false;
      c.slow_clocks = true;
      return sparse();
    case Kind::crowded:
      use_lines(c, FlushInstruction::non_temporal);
      c.schedule = emu::sim::Schedule::priority;
      c.cores = 3;
      c.transactions = 12;
      c.async = true;
      return sparse();
    case Kind::blocks:
      use_file(c);
      c.cores = 3;
      c.transactions = 6;
      c.async = true;
      options.samples = 16;
      return options;
    case Kind::helped:
      use_lines(c, FlushInstruction::clwb);
      c.schedule = emu::sim::Schedule::random;
      c.cores = 3;
      c.transactions = 12;
      c.async = true;
      c.options.async.group_records = 1;
      return sparse();
    case Kind::grouped:
      use_file(c);
      c.cores = 3;
      c.transactions = 8;
      c.async = true;
      c.churn = true;
      c.options.async.group_records = 4;
      c.options.async.group_microseconds = 20;
      c.options.geometry.log_size = 16 * 1024;
      options.samples = 24;
      return options;
    case Kind::kept:
      make_long(c, 40);
      c.boxes = true;
      c.keeps = true;
      return std::nullopt;
    case Kind::dawdling:
      make_long(c, 25);
      c.dawdles = true;
      c.checkpoints = true;
      return std::nullopt;
    case Kind::ranged:
      c.structure = sim::StructureKind::ranged;
      c.cores = 3;
      c.transactions = 8;
      c.checkpoints = true;
      return sparse();
    case Kind::bulky:
      use_lines(c, FlushInstruction::clwb);
      c.use_bulk();
      c.cores = 3;
      c.transactions = 12;
      c.async = true;
      c.checkpoints = true;
      c.options.async = {.group_records = 512, .group_microseconds = 1'000'000};
      c.options.geometry.log_size = 16 * 1024;
      return sparse();
    case Kind::carried:
      make_long(c, 8);
      c.checkpoints = true;
      c.options.checkpoint.threads = 2;
      return sparse();
    case Kind::visited:
      c.cores = 2;
      c.transactions = 25;
      c.boxes = true;
      c.blind = true;
      c.checkpoints = true;
      c.reopens = true;
      c.dawdles = c.seed % 3 != 0;
      c.clocks_agree = c.seed % 2 == 0;
      c.slow_clocks = !c.clocks_agree;
      return std::nullopt;
    case Kind::rotten:
      c.transactions = 3;
      c.checkpoints = true;
      return sim::rotting();
    case Kind::failing:
      if (c.seed % 2 == 0) use_file(c);
      c.failing_io = 1 + c.seed % 40;
      c.fails_once = c.seed % 3 != 0;
      return sparse();
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Kind kind) noexcept {
  constexpr std::array<std::string_view, kTrialKinds> kNames = {
      "any",       "ordered",  "streams",  "files",   "nested",     "continued",
      "contended", "recycled", "explored", "mixed",   "containers", "failing",
      "blind",     "boxes",    "churned",  "skewed",  "drifting",   "late",
      "crowded",   "blocks",   "helped",   "grouped", "kept",       "dawdling",
      "ranged",    "bulky",    "rotten",   "carried", "visited"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::optional<sim::Violation> run(const Trial& trial) {
  Case c = sim::case_of(trial.seed);
  const std::optional<CrashOptions> crashes = adapt(trial.kind, c);
  sim::CrashLab lab(crashes.value_or(CrashOptions{}));
  if (crashes) {
    lab.run(c);
  } else {
    lab.explore(c);
  }
  return lab.violation();
}

}  // namespace sp3::test

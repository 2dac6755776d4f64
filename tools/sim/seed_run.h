// What a campaign runs of one seed, and a replay runs again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/case.h"
#include "sim/crasher.h"
#include "tools/sim/arguments.h"

namespace sp3::tools {

struct SeedRun {
  sim::CrashCounts counts;
  std::optional<sim::Violation> violation;
};

// The case with power losses and kills at all its events, if `crash`; then a longer program of the
// same case without, for its interleavings. Stops at a violation. `observer` may be null, and
// follows both programs.
//
// Pools differ by an identity that the seed chooses, so no image of one seed is one of another, and
// what was seen is kept for one seed only: a campaign of any length fits into memory.
SeedRun run_seed(std::uint64_t seed, const SimArguments& arguments, bool crash,
                 sim::Observer* observer);

// The case of the longer program.
sim::Case long_case_for(std::uint64_t seed, const SimArguments& arguments);

// The longer program alone.
SeedRun run_long_program(std::uint64_t seed, const SimArguments& arguments,
                         sim::Observer* observer);

// The command that runs the seed again, with what the command line said of its case.
std::string replay_command(std::uint64_t seed, const SimArguments& arguments);

}  // namespace sp3::tools

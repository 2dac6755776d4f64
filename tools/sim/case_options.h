// Which cases a campaign or a replay runs.
#pragma once

#include <cstdint>
#include <string>

#include "sim/case.h"
#include "tools/sim/arguments.h"

namespace sp3::tools {

struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t last = 1;
};

// "5-90", "7", or "5-" for all from there on. Throws UsageError.
SeedRange parse_seeds(const std::string& text);

// Switches the named fault on in the runtime (base/mutant.h); none if `name` is empty. Throws
// UsageError.
void switch_on_mutant(const std::string& name);

// The seed's case, but for what the command line says otherwise.
sim::Case case_for(std::uint64_t seed, const SimArguments& arguments);

}  // namespace sp3::tools

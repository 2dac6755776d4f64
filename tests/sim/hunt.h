// Hunt: looks for a trial that catches a mutant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/sim/suspect.h"

namespace sp3::test {

struct Kill {
  Trial trial;
  std::string check;  // the first line of what the trial said
};

// The first of the trials that catches the mutant: all kinds with one seed, then with the next, up to
// `last_seed`. Finds the same on every machine. Errors: as try_mutant.
std::optional<Kill> hunt(base::Mutant mutant, std::uint64_t last_seed);

}  // namespace sp3::test

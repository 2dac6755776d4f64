// Suspect: the library with one mutant, tried in a process of its own, since a fault may also end
// in an assertion, a crash or an endless loop.
#pragma once

#include <string>

#include "base/mutant.h"
#include "tests/sim/trials.h"

namespace sp3::test {

struct Verdict {
  bool caught = false;  // by a check of the simulator, or an assertion of the library
  std::string what;     // by which; if not caught, how else it ended, or empty
};

// Errors: std::system_error if there can be no such process.
Verdict try_mutant(base::Mutant mutant, const Trial& trial);

}  // namespace sp3::test

// Hunt: looks for a trial that catches a mutant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/sim/suspect.h"

namespace sp3::test {

struct Kill {
  Trial trial;
  std::string check;  // what the trial said, without its numbers where it is one of known checks
};

// The first trial that catches the mutant: of the kind `first`, in which its situation arises, with
// one seed after the other up to `last_seed`; then of all other kinds, with a hundredth of the
// seeds. Finds the same on every machine. Errors: as try_mutant.
std::optional<Kill> hunt(base::Mutant mutant, Kind first, std::uint64_t last_seed);

}  // namespace sp3::test

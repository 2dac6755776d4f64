// What catches each mutant (base/mutant.h): a trial, and what its violation says.
//
// The table is a record of hunts: a change of the runtime or of the simulated programs changes what
// happens under a seed, and may need a few rows found anew, by
//     simulated_mutants_test '[.rows]'
// which prints this table and that of docs/MUTANTS.md with the rows that had to be found anew.
#pragma once

#include <span>
#include <string_view>

#include "base/mutant.h"
#include "tests/sim/trials.h"

namespace sp3::test {

struct KnownMutant {
  base::Mutant mutant;
  Trial trial;
  std::string_view check;  // part of what the violation, or an assertion, says
};

// One row for each mutant, in their order.
std::span<const KnownMutant> known_mutants() noexcept;

}  // namespace sp3::test

#include "tests/sim/hunt.h"

namespace sp3::test {

std::optional<Kill> hunt(base::Mutant mutant, std::uint64_t last_seed) {
  for (std::uint64_t seed = 1; seed <= last_seed; ++seed) {
    for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
      const Trial trial{static_cast<Kind>(kind), seed};
      const Verdict verdict = try_mutant(mutant, trial);
      if (verdict.caught) return Kill{trial, verdict.what.substr(0, verdict.what.find('\n'))};
    }
  }
  return std::nullopt;
}

}  // namespace sp3::test

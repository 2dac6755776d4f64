#include "tests/sim/hunt.h"

namespace sp3::test {
namespace {

std::optional<Kill> hunt_in(Kind kind, base::Mutant mutant, std::uint64_t last_seed) {
  for (std::uint64_t seed = 1; seed <= last_seed; ++seed) {
    const Verdict verdict = try_mutant(mutant, {kind, seed});
    if (!verdict.caught) continue;
    return Kill{{kind, seed}, verdict.what.substr(0, verdict.what.find('\n'))};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Kill> hunt(base::Mutant mutant, Kind first, std::uint64_t last_seed) {
  auto kill = hunt_in(first, mutant, last_seed);
  for (std::uint32_t kind = 0; kind < kTrialKinds && !kill; ++kind) {
    kill = hunt_in(static_cast<Kind>(kind), mutant, last_seed / 10);
  }
  return kill;
}

}  // namespace sp3::test

#include "tests/sim/hunt.h"

#include <string_view>

namespace sp3::test {
namespace {

// Of the checks that have more to say than this, the part that is always the same.
constexpr std::string_view kChecks[] = {
    "acknowledged and lost",
    "a successor without its predecessor",
    "half a transaction",
    "was acknowledged and is not there",
    "was never written by an attempt",
    "is leaked",
    "is not allocated",
    "is owned twice",
    "does not name an object",
    "has another type",
    "is not whole",
    "holds another's cell",
    "a version changed under its reader",
    "in the place of one that its maker had read",
    "does not agree with the cells",
    "fails its checksum",
    "both superblock copies are damaged",
    "cannot be read, but the log was durable",
    "is gone: it was durable",
    "depends on the later stamp",
    "in a slab of",
    "a log segment that starts at LSN 0",
    "the object was destroyed",
    "end == upto + 1",
    "(word0_.load(std::memory_order_relaxed) & kLock) != 0",
    "what_was_streamed_is_seen",
    "!freed_twice",
    "block_is_fresh_or_unchanged",
    "G-single",
    "G0",
    "G1c",
    "G2",
    "real-time violation",
    "lost update",
    "unwritten value",
    "value written twice",
};

std::string check_of(const std::string& what) {
  for (const std::string_view check : kChecks) {
    if (what.find(check) != std::string::npos) return std::string(check);
  }
  return what.substr(0, what.find('\n'));
}

std::optional<Kill> hunt_in(Kind kind, base::Mutant mutant, std::uint64_t last_seed) {
  for (std::uint64_t seed = 1; seed <= last_seed; ++seed) {
    const Verdict verdict = try_mutant(mutant, {kind, seed});
    if (verdict.caught) return Kill{{kind, seed}, check_of(verdict.what)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Kill> hunt(base::Mutant mutant, Kind first, std::uint64_t last_seed) {
  auto kill = hunt_in(first, mutant, last_seed);
  for (std::uint32_t kind = 0; kind < kTrialKinds && !kill; ++kind) {
    kill = hunt_in(static_cast<Kind>(kind), mutant, last_seed / 100);
  }
  return kill;
}

}  // namespace sp3::test

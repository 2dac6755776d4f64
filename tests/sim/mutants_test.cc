// The simulator must find each fault that is put into the library: of the tests this tests the tests.
#include <algorithm>
#include <cstdio>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "sim/mutants.h"
#include "tests/sim/hunt.h"
#include "tests/sim/known_mutants.h"

namespace sp3::test {
namespace {

constexpr std::uint64_t kLastSeed = 400;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string name(const Trial& trial) {
  return fmt::format("{} {}", to_string(trial.kind), trial.seed);
}

}  // namespace

TEST_CASE("the table of kills has each mutant once, in order") {
  const auto rows = known_mutants();
  const auto is_before = [](const KnownMutant& a, const KnownMutant& b) {
    return a.mutant < b.mutant;
  };
  CHECK(std::is_sorted(rows.begin(), rows.end(), is_before));
  CHECK(rows.size() > 50);
  for (const KnownMutant& row : rows) CHECK_FALSE(row.check.empty());
}

TEST_CASE("each mutant is caught at its recorded seed, by the check that the table names") {
  for (const KnownMutant& row : known_mutants()) {
    const Verdict verdict = try_mutant(row.mutant, row.trial);
    INFO(sim::info_of(row.mutant).name << " in " << name(row.trial) << " says: " << verdict.what);
    CHECK(verdict.caught);
    // A sanitizer may be faster than the check.
    CHECK((contains(verdict.what, row.check) || contains(verdict.what, "Sanitizer")));
  }
}

TEST_CASE("the trials that catch mutants find nothing without one") {
  std::vector<Trial> done;
  for (const KnownMutant& row : known_mutants()) {
    if (std::find(done.begin(), done.end(), row.trial) != done.end()) continue;
    done.push_back(row.trial);
    if (const auto violation = run(row.trial)) {
      FAIL_CHECK(name(row.trial) << ": " << violation->what << "\n" << violation->where);
    }
  }
}

TEST_CASE("a hunt from scratch catches every mutant", "[.full]") {
  for (const sim::MutantInfo& info : sim::all_mutants()) {
    const auto kill = hunt(info.mutant, kLastSeed);
    INFO(info.name);
    CHECK(kill);
    if (!kill) continue;
    fmt::print("  {{Mutant::{}, {{Kind::{}, {}}}, \"{}\"}},\n", info.name,
               to_string(kill->trial.kind), kill->trial.seed, kill->check);
    std::fflush(stdout);
  }
}

}  // namespace sp3::test

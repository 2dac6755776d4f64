// The simulator must find each fault that is put into the library: of the tests this tests the tests.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
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

std::string read_page() {
  std::ifstream file(SP3_MUTANTS_PAGE);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string name(const Trial& trial) {
  return fmt::format("{} {}", to_string(trial.kind), trial.seed);
}

}  // namespace

TEST_CASE("every mutant has its row in the table of kills and in docs/MUTANTS.md") {
  const auto rows = known_mutants();
  const auto mutants = sim::all_mutants();
  const std::string page = read_page();
  REQUIRE(rows.size() == mutants.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(mutants[i].name);
    CHECK(rows[i].mutant == mutants[i].mutant);
    CHECK_FALSE(rows[i].check.empty());
    CHECK(contains(page, fmt::format("| `{}` | {} |", mutants[i].name, mutants[i].undone)));
  }
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
  for (const KnownMutant& row : known_mutants()) {
    const std::string_view mutant = sim::info_of(row.mutant).name;
    const auto kill = hunt(row.mutant, row.trial.kind, kLastSeed);
    INFO(mutant);
    CHECK(kill);
    if (!kill) continue;
    fmt::print("  {{Mutant::{}, {{Kind::{}, {}}},\n   \"{}\"}},\n", mutant,
               to_string(kill->trial.kind), kill->trial.seed, kill->check);
    std::fflush(stdout);
  }
}

}  // namespace sp3::test

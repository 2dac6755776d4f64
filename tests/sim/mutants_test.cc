// The simulator must find each fault that is put into the library: of the tests this tests the
// tests.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "sim/mutants.h"
#include "tests/sim/hunt.h"
#include "tests/sim/known_mutants.h"

namespace sp3::test {
namespace {

constexpr std::uint64_t kLastSeed = 20'000;

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

std::string table_row(base::Mutant mutant, const Trial& trial, std::string_view check) {
  return fmt::format("  {{Mutant::{}, {{Kind::{}, {}}},\n   \"{}\"}},\n", sim::info_of(mutant).name,
                     to_string(trial.kind), trial.seed, check);
}
std::string page_row(base::Mutant mutant, const Trial& trial, std::string_view check) {
  const sim::MutantInfo& info = sim::info_of(mutant);
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", info.name, info.undone, info.breaks,
                     to_string(trial.kind), check);
}

// The checks, by what they say: the columns of the page's first table. What none of them says comes
// from an assertion.
const std::vector<std::vector<std::string_view>> kFamilies = {
    {"acknowledged and lost", "half a transaction", "a successor without its predecessor",
     "was acknowledged and is not there"},
    {"is not allocated", "is not whole", "is leaked", "is owned twice", "has another type",
     "in a slab of", "holds another's cell"},
    {"recovery refuses", "fails its checksum", "cannot be read", "both superblock copies",
     "depends on the later stamp"},
    {"G0", "G1", "G2", "G-single", "real-time violation"},
    {"a version changed under its reader", "in the place of one", "does not name an object",
     "the object was destroyed"},
    {"does not agree with the cells"},
};

// The row of that table, of how many mutants each was the first to notice.
std::string count_row(std::span<const std::string> checks) {
  std::vector<int> counts(kFamilies.size() + 1);
  for (const std::string& check : checks) {
    const auto family = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const auto& says) {
      return std::any_of(says.begin(), says.end(),
                         [&](std::string_view part) { return contains(check, part); });
    });
    ++counts[static_cast<std::size_t>(family - kFamilies.begin())];
  }
  return fmt::format("| {} | {} |\n", fmt::join(counts, " | "), checks.size());
}

bool is_caught(const Verdict& verdict, const KnownMutant& row) {
  if (!verdict.caught) return false;
    // A sanitizer may be faster than the check, or an assertion that only unoptimised builds have.
#ifndef NDEBUG
  if (contains(verdict.what, "Assertion")) return true;
#endif
  return contains(verdict.what, row.check) || contains(verdict.what, "Sanitizer");
}

}  // namespace

TEST_CASE("every mutant has its row in the table of kills and in docs/MUTANTS.md") {
  const auto rows = known_mutants();
  const auto mutants = sim::all_mutants();
  const std::string page = read_page();
  REQUIRE(rows.size() == mutants.size());
  std::vector<std::string> checks;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(mutants[i].name);
    CHECK(rows[i].mutant == mutants[i].mutant);
    CHECK_FALSE(rows[i].check.empty());
    CHECK(contains(page, page_row(rows[i].mutant, rows[i].trial, rows[i].check)));
    checks.emplace_back(rows[i].check);
  }
  CHECK(contains(page, count_row(checks)));
}

TEST_CASE("each mutant is caught at its recorded seed, by the check that the table names") {
  for (const KnownMutant& row : known_mutants()) {
    const Verdict verdict = try_mutant(row.mutant, row.trial);
    INFO(sim::info_of(row.mutant).name << " in " << name(row.trial) << " says: " << verdict.what);
    CHECK(is_caught(verdict, row));
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
    const auto kill = hunt(row.mutant, row.trial.kind, kLastSeed);
    INFO(sim::info_of(row.mutant).name);
    REQUIRE(kill);
    fmt::print("{}", table_row(row.mutant, kill->trial, kill->check));
    std::fflush(stdout);
  }
}

// After a change to what happens under a seed: the table's rows, and the page's, with those that do
// not hold any more found anew, and the row that counts them.
TEST_CASE("the rows as they are now", "[.rows]") {
  std::string page;
  std::vector<std::string> checks;
  for (const KnownMutant& row : known_mutants()) {
    std::optional<Kill> kill = Kill{row.trial, std::string(row.check)};
    if (!is_caught(try_mutant(row.mutant, row.trial), row)) {
      kill = hunt(row.mutant, row.trial.kind, kLastSeed);
    }
    INFO(sim::info_of(row.mutant).name);
    CHECK(kill);
    if (!kill) continue;
    fmt::print("{}", table_row(row.mutant, kill->trial, kill->check));
    std::fflush(stdout);
    page += page_row(row.mutant, kill->trial, kill->check);
    checks.push_back(kill->check);
  }
  fmt::print("\n{}\n{}", count_row(checks), page);
}

}  // namespace sp3::test

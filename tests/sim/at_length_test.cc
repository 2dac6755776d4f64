// The campaigns of './dev test --all': as the quick ones, with many more seeds.
#include <catch2/catch.hpp>

#include "tests/sim/campaign.h"

namespace sp3::test {

TEST_CASE("power loss at length", "[.full]") {
  const sim::CrashCounts n = crash_all("at length", {10'000, 10'499}, {});
  CHECK(n.images > 2'000'000 / kLess);
}

TEST_CASE("double crashes at length", "[.full]") {
  const sim::CrashCounts n =
      crash_all("double crashes at length", {20'000, 20'079}, double_crashes());
  CHECK(n.continued > 10'000 / kLess);
}

TEST_CASE("varied seeds at length", "[.full]") {
  sim::CrashOptions options;
  options.nested_one_in = 1000;
  options.continued_killed_one_in = 50;
  const sim::CrashCounts n = crash_all(
      "varied, at length", {sim::kFirstVariedSeed + 1000, sim::kFirstVariedSeed + 1099}, options);
  CHECK(n.images > 500'000 / kLess);
}

// Enough transactions that trees split and merge.
TEST_CASE("each container at length", "[.full]") {
  using sim::StructureKind;
  for (const auto kind : {StructureKind::queue, StructureKind::hash_table, StructureKind::rb_tree,
                          StructureKind::bp_tree, StructureKind::array}) {
    sim::CrashOptions options;
    options.nested_one_in = 4000;
    options.killed_one_in = 128;
    options.continued_one_in = 500;
    const std::string name = std::string(sim::to_string(kind)) + ", at length";
    const sim::CrashCounts n = crash_all(name, {30'000, 30'007}, options, [&](sim::Case& c) {
      c.structure = kind;
      c.cores = static_cast<int>(2 + c.seed % 2);
      c.transactions = 12;
    });
    CHECK(n.structures > 20'000 / kLess);
    CHECK(n.continued > 10 / kLess);
  }
}

TEST_CASE("structures and failing disks at length", "[.full]") {
  sim::CrashOptions options;
  options.nested_one_in = 1000;
  options.continued_killed_one_in = 50;
  const sim::CrashCounts n = crash_all(
      "rich, at length", {sim::kFirstRichSeed + 1000, sim::kFirstRichSeed + 1099}, options);
  CHECK(n.structures > 100'000 / kLess);
  CHECK(n.failed > 20 / kLess);
}

}  // namespace sp3::test

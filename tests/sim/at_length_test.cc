// The campaigns of './dev test --all': as the quick ones, with many more seeds.
#include <catch2/catch.hpp>

#include "tests/sim/campaign.h"

namespace sp3::test {
namespace {

sim::CrashOptions often_nested() {
  sim::CrashOptions options;
  options.nested_one_in = 1000;
  options.continued_killed_one_in = 50;
  return options;
}

// Behind those of the quick campaigns.
Seeds a_hundred_from(std::uint64_t first) { return {first + 1000, first + 1099}; }

}  // namespace

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
  const sim::CrashCounts n =
      crash_all("varied, at length", a_hundred_from(sim::kFirstVariedSeed), often_nested());
  CHECK(n.images > 500'000 / kLess);
}

// Enough transactions that trees split and merge.
TEST_CASE("each container at length", "[.full]") {
  using sim::StructureKind;
  for (const auto kind : {StructureKind::queue, StructureKind::hash_table, StructureKind::rb_tree,
                          StructureKind::bp_tree, StructureKind::array, StructureKind::ranged}) {
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
  const sim::CrashCounts n =
      crash_all("rich, at length", a_hundred_from(sim::kFirstRichSeed), often_nested());
  CHECK(n.structures > 100'000 / kLess);
  CHECK(n.failed > 20 / kLess);
}

}  // namespace sp3::test

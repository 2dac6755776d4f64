// The containers under power loss at every event: invariants, contents and allocation of each
// image.
#include <catch2/catch.hpp>

#include "tests/sim/campaign.h"

namespace sp3::test {

using sim::StructureKind;

TEST_CASE("after power loss each container is in order and holds what the cells say") {
  for (const auto kind : {StructureKind::queue, StructureKind::hash_table, StructureKind::rb_tree,
                          StructureKind::bp_tree, StructureKind::array, StructureKind::ranged,
                          StructureKind::deep_hash_table}) {
    sim::CrashOptions options;
    options.nested_one_in = 4000;
    options.killed_one_in = 128;
    options.continued_one_in = 500;
    const sim::CrashCounts n = crash_all(sim::to_string(kind), {1, 1}, options, [&](sim::Case& c) {
      c.structure = kind;
      if (kind == StructureKind::deep_hash_table) c.options.geometry.log_size = sim::kDeepLog;
      c.cores = static_cast<int>(2 + c.seed % 2);
    });
    CHECK(n.images > 1000 / kLess);
    CHECK(n.structures > 1000 / kLess);
    CHECK(n.continued > 0);
  }
}

TEST_CASE("cases of rich seeds: structures, failing disks, or both") {
  sim::CrashOptions options;
  options.nested_one_in = 2000;
  options.continued_killed_one_in = 100;
  const sim::CrashCounts n =
      crash_all("rich", {sim::kFirstRichSeed, sim::kFirstRichSeed + 7}, options);
  CHECK(n.structures > 2000 / kLess);
  // The one case that sanitizers have time for has a sound disk; failing_io_test.cc fails them all.
  if (kShare == 1) CHECK(n.failed > 0);
}

}  // namespace sp3::test

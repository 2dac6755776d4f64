// A flush, fence, write or sync fails at some point of a program: the pool is poisoned, everybody
// is told that the outcome is unknown, and whatever the disk lost, what had been acknowledged is
// there.
#include <catch2/catch.hpp>

#include "tests/sim/campaign.h"

namespace sp3::test {
namespace {

// Short cases: sanitizers have time for all of them.
constexpr Seeds kSeeds{1, 1 + 39 * kShare};

sim::CrashCounts fail_all(const std::string& name, Seeds seeds, MemoryKind memory, bool once) {
  sim::CrashOptions options;
  options.most_enumerated = 8;
  options.samples = 6;
  options.nested_one_in = 400;
  options.continued_one_in = 4000;
  options.killed_one_in = 64;
  return crash_all(name, seeds, options, [&](sim::Case& c) {
    c.options.memory = memory;
    c.options.flush = memory == MemoryKind::file ? FlushInstruction::automatic : c.options.flush;
    c.failing_io = 1 + c.seed % 40;
    c.fails_once = once;
  });
}

}  // namespace

TEST_CASE("a failed write or fdatasync costs nothing that was acknowledged") {
  for (const bool once : {false, true}) {
    const sim::CrashCounts n =
        fail_all(once ? "files, one call fails" : "files, calls go on to fail", kSeeds,
                 MemoryKind::file, once);
    CHECK(n.failed > 20);
    CHECK(n.killed > 20);
  }
}

TEST_CASE("a failed flush or fence costs nothing that was acknowledged") {
  for (const bool once : {false, true}) {
    const sim::CrashCounts n =
        fail_all(once ? "lines, one call fails" : "lines, calls go on to fail", kSeeds,
                 MemoryKind::emulated, once);
    CHECK(n.failed > 20);
    CHECK(n.killed > 20);
  }
}

}  // namespace sp3::test

// Power fails at every event of small programs, and in the recoveries that follow.
#include <catch2/catch.hpp>

#include "tests/sim/campaign.h"

namespace sp3::test {
namespace {

using sim::Case;
using sim::CrashCounts;
using sim::CrashOptions;

// One image in so many is taken further; for cases that are about the first crash alone.
CrashOptions plain() {
  CrashOptions options;
  options.nested_one_in = 400;
  options.continued_one_in = 4000;
  return options;
}

}  // namespace

TEST_CASE("after power loss at any event everything acknowledged is there, whole and closed") {
  CrashOptions options;
  options.nested_one_in = 150;
  const CrashCounts n = crash_all("any case", {1, 50}, options);
  CHECK(n.images > 200'000 / kLess);
  CHECK(n.nested > 10'000 / kLess);
  CHECK(n.killed > 1000 / kLess);
  CHECK(n.continued > 50 / kLess);
}

TEST_CASE("power loss: every flush instruction, policy and lock timing") {
  for (const auto flush :
       {FlushInstruction::clwb, FlushInstruction::clflushopt, FlushInstruction::clflush,
        FlushInstruction::non_temporal, FlushInstruction::none}) {
    for (const auto policy : {CommitPolicy::speculative, CommitPolicy::conservative}) {
      for (const auto locks : {LockTiming::commit, LockTiming::encounter}) {
        const std::string name = std::string(to_string(flush)) + ", " + to_string(policy) +
                                 ", locks at " + to_string(locks);
        const CrashCounts n = crash_all(name, {1000, 1001}, plain(), [&](Case& c) {
          c.options.memory = MemoryKind::emulated;
          c.options.flush = flush;
          c.options.policy = policy;
          c.options.locks = locks;
          c.cores = 3;
          c.async = c.seed % 2 == 0;
        });
        CHECK(n.images > 1000 / kLess);
      }
    }
  }
}

TEST_CASE("power loss: memory in files, whose sectors are written at any moment") {
  const CrashCounts n = crash_all("files", {2000, 2009}, plain(), [](Case& c) {
    c.options.memory = MemoryKind::file;
    c.options.flush = FlushInstruction::automatic;
    c.cores = 3;
  });
  CHECK(n.images > 5'000 / kLess);
}

TEST_CASE("power loss: every image of every event, where they are at most 4096") {
  CrashOptions options = plain();
  options.most_enumerated = 4096;
  options.samples = 1000;
  const CrashCounts n = crash_all("exhaustive", {3000, 3000}, options, [](Case& c) {
    c.options.memory = MemoryKind::emulated;
    c.options.flush = FlushInstruction::clwb;
    c.cores = 2;
    c.transactions = 2;
  });
  CHECK(n.images > 20'000 / kLess);
}

TEST_CASE("power loss: records of several log segments, in runs that are recycled") {
  const CrashCounts n = crash_all("bulky", {6000, 6009}, plain(), [](Case& c) {
    c.use_bulk();
    c.options.geometry.log_size = 16 * 1024;
    c.cores = 3;
    c.checkpoints = true;
  });
  CHECK(n.images > 20'000 / kLess);
}

TEST_CASE("power loss: sessions that go from core to core") {
  const CrashCounts n = crash_all("moving", {7000, 7011}, plain(), [](Case& c) {
    c.cores = 3;
    c.moving_sessions = static_cast<int>(1 + c.seed % 3);
    c.async = c.seed % 2 == 0;
  });
  CHECK(n.images > 10'000 / kLess);
}

// Pools that are full now and then, sessions that fill what they may have in flight, objects with
// chunk tables of several levels, other options at the next opening, all in one.
TEST_CASE("power loss: cases of varied seeds") {
  CrashOptions options = plain();
  options.most_enumerated = 4;
  options.samples = 4;
  options.nested_one_in = 4000;
  options.nested_samples = 1;
  options.nested_depth = 1;
  options.continued_one_in = 40;
  options.killed_one_in = 64;
  const CrashCounts n =
      crash_all("varied", {sim::kFirstVariedSeed, sim::kFirstVariedSeed + 29}, options);
  CHECK(n.images > 10'000 / kLess);
  CHECK(n.continued > 200 / kLess);
}

TEST_CASE("a crash, a recovery and a run after it, over and over") {
  const CrashCounts n = crash_all("double crashes", {4000, 4003}, double_crashes());
  CHECK(n.continued > 300 / kLess);
}

TEST_CASE("crashes in recovery, to a depth of three") {
  CrashOptions options = plain();
  options.most_enumerated = 8;
  options.samples = 4;
  options.nested_one_in = 4;
  const CrashCounts n = crash_all("nested", {5000, 5005}, options);
  CHECK(n.nested > 10'000 / kLess);
}

}  // namespace sp3::test

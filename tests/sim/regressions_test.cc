// Seeds that found bugs. docs/TESTING.md lists the bugs.
#include <cstdint>
#include <vector>

#include <sp3/sp3.h>
#include <catch2/catch.hpp>

#include "emu/sim/machine.h"
#include "tests/sim/campaign.h"

namespace sp3::test {
namespace {

// Events of one transaction that reads so many objects, on cores whose clocks disagree.
std::uint64_t events_of_reading(std::size_t objects) {
  emu::sim::Config config;
  config.schedule = emu::sim::Schedule::random;
  config.clocks_agree = false;
  config.most_events = 10'000'000;
  emu::sim::Machine machine(config);
  std::uint64_t events = 0;
  const auto ended = machine.run([&] {
    Options options;
    options.memory = MemoryKind::emulated;
    options.checkpoint.background = false;
    options.watermark_ms = 0;
    Pool pool = Pool::create("/pool", 1 << 20, options);
    Session session = pool.session();
    std::vector<Ptr<std::uint64_t>> all;
    for (std::size_t i = 0; i < objects; ++i) {
      all.push_back(session.run([&](Transaction& t) { return t.make<std::uint64_t>(i); }));
    }
    const std::uint64_t before = machine.events();
    const std::uint64_t sum = session.run([&](Transaction& t) {
      std::uint64_t read = 0;
      for (const Ptr<std::uint64_t> object : all) read += t.read(object);
      return read;
    });
    events = machine.events() - before;
    CHECK(sum == objects * (objects - 1) / 2);
    session.close();
    pool.close();
  });
  CHECK(ended == emu::sim::Machine::Ended::normally);
  CHECK(machine.uncaught() == "");
  return events;
}

}  // namespace

TEST_CASE("regression: where clocks disagree, each read compared all others again") {
  CHECK(events_of_reading(400) < 3 * events_of_reading(200));
}

TEST_CASE("regression: a superblock that a killed process left in caches") {
  sim::CrashOptions options;
  options.most_enumerated = 4;
  options.samples = 4;
  options.killed_one_in = 1;
  const sim::CrashCounts n = crash_all("killed everywhere", {1, 3}, options);
  CHECK(n.killed > 1000 / kShare);
}

TEST_CASE("regression: a core whose counter is behind that of the core that opened the pool") {
  sim::Bench bench({});
  for (const std::uint64_t seed : {7, 8, 33, 34, 39}) {
    sim::Case c = sim::case_of(seed);
    c.clocks_agree = false;
    if (!bench.explore(c)) FAIL(bench.violation()->what << "\n" << bench.violation()->where);
  }
}

TEST_CASE("regression: a page that a failed fdatasync left in the cache, marked as written") {
  sim::CrashOptions options;
  options.most_enumerated = 8;
  options.samples = 6;
  options.nested_one_in = 400;
  options.killed_one_in = 64;
  sim::Bench bench(options);
  sim::Case c = sim::case_of(10);
  c.options.memory = MemoryKind::file;
  c.options.flush = FlushInstruction::automatic;
  c.failing_io = 11;
  if (!bench.run(c)) FAIL(bench.violation()->what << "\n" << bench.violation()->where);
  CHECK(bench.counts().failed > 0);
}

}  // namespace sp3::test

// Seeds that found bugs, and programs that show those which seeds find too rarely. docs/TESTING.md
// lists the bugs.
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include <sp3/sp3.h>
#include <catch2/catch.hpp>

#include "emu/sim/file.h"
#include "emu/sim/machine.h"
#include "pool/pool_file.h"
#include "recovery/recover.h"
#include "sim/images.h"
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

// Recovers images of the pool at each event while it is told to, and looks at one word of each.
class PowerLosses final : public emu::sim::Watcher {
 public:
  PowerLosses(const char* pool, const Options& options) : pool_(pool), options_(options) {}

  // From now on every image must hold `value` at `offset` once it has recovered.
  void expect(std::uint64_t offset, std::uint64_t value) {
    offset_ = offset;
    value_ = value;
  }
  void expect_nothing() { value_ = 0; }
  [[nodiscard]] std::uint64_t images() const { return images_; }
  [[nodiscard]] std::uint64_t losses() const { return losses_; }

  void before(emu::sim::Machine& machine, emu::sim::Event /*next*/, std::uint64_t /*at*/) override {
    if (value_ == 0) return;
    emu::sim::File* const file = machine.files().find(pool_);
    if (file == nullptr || file->media.version() == version_) return;
    version_ = file->media.version();
    sim::for_each_image(
        file->media, 64, 200, random_,
        [&](const std::vector<emu::sim::Media::Choice>& choices, const emu::sim::Hash128&) {
          ++images_;
          crashed_.files().put(pool_).media.follow(file->media, choices);
          const emu::sim::Machine::Use use(crashed_);
          const auto found =
              pool::PoolFile::open(pool_, options_, pool::PoolFile::Access::read_write);
          recovery::recover(*found, options_.recovery);
          std::uint64_t value = 0;
          std::memcpy(&value, found->memory().view() + offset_, sizeof value);
          if (value != value_) ++losses_;
        });
  }

 private:
  const char* const pool_;
  const Options options_;
  emu::sim::Machine crashed_{emu::sim::Config{}};
  emu::sim::Random random_{7};
  std::uint64_t offset_ = 0, value_ = 0, version_ = 0, images_ = 0, losses_ = 0;
};

struct Cell {
  std::uint64_t value = 0;
};
struct Large {  // its record takes three segments
  std::array<std::uint64_t, 1150> words{};
};

}  // namespace

TEST_CASE("regression: a recycled long run that was believed once more hid another session's") {
  Options options;
  options.memory = MemoryKind::emulated;
  options.geometry = {64 * 1024, 4096, 32 * 1024, 6};
  options.checkpoint.background = false;
  options.watermark_ms = 0;
  options.async.group_records = 512;
  options.async.group_microseconds = 60'000'000;
  options.recovery.threads = 1;
  emu::sim::Config config;
  config.seed = 3;
  emu::sim::Machine machine(config);
  PowerLosses losses("pool", options);
  machine.watch(&losses);
  const auto ended = machine.run([&] {
    Pool pool = Pool::create("pool", 1 << 20, options);
    Session first = pool.session();
    Session second = pool.session();
    Session filler = pool.session();
    std::array<Ptr<Cell>, 3> cells;
    first.run([&](Transaction& tx) {
      for (auto& cell : cells) cell = tx.make<Cell>(1U);
    });
    first.run([](Transaction& tx) { static_cast<void>(tx.make<Large>()); });  // segments 1 to 3
    pool.checkpoint();
    for (int i = 0; i < 13; ++i) {  // segments 4 to 15, and 0
      if (i != 0) pool.checkpoint();
      filler.run([&](Transaction& tx) { ++tx.write(cells[2]).value; });
    }
    // Begins anew where the long run was, and nothing of it is flushed.
    Ticket ticket = first.run_async([&](Transaction& tx) { tx.write(cells[1]).value = 5; });
    // Durable when it returns, in the segment behind.
    second.run([&](Transaction& tx) { tx.write(cells[0]).value = 4711; });
    losses.expect(cells[0].offset(), 4711);
    ticket.wait();
    losses.expect_nothing();
    for (Session* const session : {&first, &second, &filler}) session->close();
    pool.close();
  });
  CHECK(ended == emu::sim::Machine::Ended::normally);
  CHECK(machine.uncaught() == "");
  CHECK(losses.images() > 100);
  CHECK(losses.losses() == 0);
}

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
  sim::CrashLab lab({});
  for (const std::uint64_t seed : {7U, 8U, 33U, 34U, 39U}) {
    sim::Case c = sim::case_of(seed);
    c.clocks_agree = false;
    if (!lab.explore(c)) FAIL(lab.violation()->what << "\n" << lab.violation()->where);
  }
}

TEST_CASE("regression: a page that a failed fdatasync left in the cache, marked as written") {
  sim::CrashOptions options;
  options.most_enumerated = 8;
  options.samples = 6;
  options.nested_one_in = 400;
  options.killed_one_in = 64;
  sim::CrashLab lab(options);
  sim::Case c = sim::case_of(10);
  c.options.memory = MemoryKind::file;
  c.options.flush = FlushInstruction::automatic;
  c.failing_io = 11;
  if (!lab.run(c)) FAIL(lab.violation()->what << "\n" << lab.violation()->where);
  CHECK(lab.counts().failed > 0);
}

}  // namespace sp3::test

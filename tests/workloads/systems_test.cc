#include "workloads/system.h"

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/support/errors.h"
#include "tests/support/temp_path.h"
#include "workloads/floor.h"
#include "workloads/machine.h"
#include "workloads/runner.h"

using namespace sp3::workloads;
using sp3::test::TempPath;

namespace {

SystemOptions emulated(const TempPath& path) {
  SystemOptions options;
  options.path = path.path();
  options.pool_size = 64 << 20;
  options.pool.memory = sp3::MemoryKind::emulated;
  return options;
}

// Runs so many operations in a new store of so many bytes, and checks what they leave.
RunResult run_all(const std::string& name, const WorkloadSpec& spec, unsigned threads,
                  std::uint64_t operations, std::uint64_t pool_size) {
  const TempPath path("systems");
  SystemOptions options = emulated(path);
  options.pool_size = pool_size;
  const auto system = make_system(name);
  system->create(spec, options);
  system->populate();
  RunOptions run;
  run.threads = threads;
  run.operations = operations;
  RunResult result = run_workload(*system, spec, Zipf(spec.entries, spec.zipf), run);
  CAPTURE(name, to_string(spec.kind), threads);
  CHECK(check_run(name, *system, spec, threads) == "");
  system->close();
  CHECK(result.operations == operations);
  CHECK(result.counters.commits == operations);
  return result;
}

// Runs some operations and checks the structure and the counters.
RunResult run(const std::string& name, const WorkloadSpec& spec, unsigned threads) {
  RunResult result = run_all(name, spec, threads, 4000, 64 << 20);
  CAPTURE(name, to_string(spec.kind), threads);
  CHECK(result.latency_ticks.count() == 4000);
  CHECK(result.throughput() > 0);
  CHECK(result.latency_ns(0.5) <= result.latency_ns(0.99));
  CHECK(result.latency_ns(0.99) <= result.longest_ns());
  return result;
}

// Has no store, only clients.
template <class SomeClient>
struct Clients final : System {
  void create(const WorkloadSpec&, const SystemOptions&) override {}
  void open(const WorkloadSpec&, const SystemOptions&) override {}
  void populate() override {}
  std::unique_ptr<Client> connect() override { return std::make_unique<SomeClient>(); }
  [[nodiscard]] BackgroundCounters background() const override { return {}; }
  std::string check_structure() override { return {}; }
  void visit(const ItemVisitor&) override {}
  void close() override {}
};

}  // namespace

TEST_CASE("Every workload runs on every system and leaves its structure whole") {
  WorkloadSpec spec;
  spec.entries = 2000;
  for (const SystemInfo& info : systems()) {
    for (const WorkloadKind kind : kAllWorkloads) {
      spec.kind = kind;
      if (!why_unsupported(info.name, spec, {}).empty()) continue;
      // Without concurrency control there is nothing to promise to two threads.
      const unsigned most = info.isolates ? 2 : 1;
      for (unsigned threads = 1; threads <= most; ++threads) {
        const RunResult result = run(std::string(info.name), spec, threads);
        CAPTURE(info.name, to_string(kind), threads);
        if (info.name == "sp3" || info.name == "nvm-tx") {
          // One fence a transaction, by its owner or by one who helped.
          CHECK(result.fences_per_tx() <= 1.0);
          CHECK(result.counters.fences + result.counters.helped_fences > 0);
        }
        if (info.name == "sp3-async") CHECK(result.fences_per_tx() <= 0.1);
        if (!info.durable) CHECK(result.counters.fences == 0);
      }
    }
  }
}

TEST_CASE("Only the structure is checked of what clients leave that are not isolated") {
  // Two entries with one tag, as two swaps leave them when neither sees the other.
  struct Torn final : System {
    void create(const WorkloadSpec&, const SystemOptions&) override {}
    void open(const WorkloadSpec&, const SystemOptions&) override {}
    void populate() override {}
    std::unique_ptr<Client> connect() override { return nullptr; }
    BackgroundCounters background() const override { return {}; }
    std::string check_structure() override { return structure; }
    void visit(const ItemVisitor& visitor) override {
      if (visitor({0, 1, true})) visitor({1, 1, true});
    }
    void close() override {}
    std::string structure;
  } torn;
  WorkloadSpec spec;
  spec.kind = WorkloadKind::sps;
  spec.entries = 2;
  CHECK(check_run("sp3", torn, spec, 2) != "");
  CHECK(check_run("nvm-ideal", torn, spec, 1) != "");
  CHECK(check_run("nvm-ideal", torn, spec, 2) == "");
  torn.structure = "broken";
  CHECK(check_run("nvm-ideal", torn, spec, 2) == "broken");
}

TEST_CASE("Every entry size runs") {
  WorkloadSpec spec;
  spec.entries = 200;
  for (const std::uint32_t size : kEntrySizes) {
    spec.entry_size = size;
    for (const WorkloadKind kind : kAllWorkloads) {
      spec.kind = kind;
      run("sp3", spec, 1);
    }
  }
}

TEST_CASE("Ranges run on every system that has them, whatever their sizes and mix") {
  WorkloadSpec spec;
  spec.kind = WorkloadKind::ranges;
  spec.entries = 2000;
  spec.range_most = 10'000;
  for (const SystemInfo& info : systems()) {
    CHECK(why_unsupported(info.name, spec, {}).empty() == info.has_ranges);
    if (!info.has_ranges) continue;
    const unsigned threads = info.isolates ? 2 : 1;
    spec.range_mix = {1, 1, 0};
    spec.range_zipf = 0.99;
    CHECK(run(std::string(info.name), spec, threads).counters.writing_commits > 0);
    spec.range_mix = {39, 9, 1};
    spec.range_zipf = 0;
    CHECK(run(std::string(info.name), spec, threads).counters.commits > 0);
  }
  spec.range_mix = {};
  CHECK_THROWS_AS(spec.validate(), std::invalid_argument);
}

TEST_CASE("A synchronous swap of 128-byte entries flushes six lines with one fence") {
  WorkloadSpec spec;
  spec.entries = 2000;
  const RunResult result = run("sp3", spec, 1);
  CHECK(result.fences_per_tx() == 1.0);
  CHECK(result.lines_per_tx() >= 6.0);
  CHECK(result.lines_per_tx() < 6.01);  // and one more for the header of each log segment
}

// They race for entries by design, and ThreadSanitizer does not see the instruction that keeps
// those whole.
#ifndef __SANITIZE_THREAD__
TEST_CASE("Clients that are not isolated come to an end all the same") {
  WorkloadSpec spec;
  spec.entries = 4;
  run_all("nvm-ideal", spec, 3, 150'000, 64 << 20);
}
#endif

// A client that waits for log space holds locks that another waits for.
TEST_CASE("Clients of mnemosyne come to an end though its logs are always full") {
  WorkloadSpec spec;
  spec.entries = 4;
  spec.entry_size = 1024;
  // Logs of sixteen swaps.
  CHECK(run_all("mnemosyne", spec, 4, 80'000, 4 << 20).counters.waits > 0);
}

TEST_CASE("Searches alone write nothing and count their misses") {
  WorkloadSpec spec;
  spec.kind = WorkloadKind::hashtable;
  spec.entries = 2000;
  spec.insert_ratio = 0;
  spec.fill = 0.5;
  spec.zipf = 0;
  const RunResult result = run("sp3", spec, 1);
  CHECK(result.counters.writing_commits == 0);
  CHECK(result.counters.fences == 0);
  CHECK(result.misses == Approx(2000).margin(300));
}

TEST_CASE("A run by time measures about that time") {
  const TempPath path("systems");
  WorkloadSpec spec;
  spec.entries = 1000;
  const auto system = make_system("sp3");
  system->create(spec, emulated(path));
  system->populate();
  const Zipf zipf(spec.entries, spec.zipf);
  RunOptions options;
  options.threads = 2;
  options.seconds = 0.2;
  options.warmup_seconds = 0.02;
  options.latency = false;
  const RunResult result = run_workload(*system, spec, zipf, options);
  CHECK(result.seconds >= 0.19);
  CHECK(result.latency_ticks.count() == 0);
  CHECK(result.counters.commits >= result.operations);
  system->close();
}

TEST_CASE("A run that is over before its first transaction is an error") {
  // Asked for its counters when the run begins.
  struct LateClient final : Client {
    bool execute(const Operation&) override { return true; }
    [[nodiscard]] ClientCounters counters() const override {
      if (!std::exchange(asked, true)) std::this_thread::sleep_for(std::chrono::seconds(1));
      return {};
    }
    mutable bool asked = false;
  };
  Clients<LateClient> system;
  const WorkloadSpec spec;
  RunOptions options;
  options.seconds = 0.001;
  options.warmup_seconds = 0;
  CHECK_THROWS_WITH(run_workload(system, spec, Zipf(spec.entries, spec.zipf), options),
                    Catch::Contains("0.001 seconds"));
}

TEST_CASE("An error of a worker stops the run and is thrown") {
  class BrokenClient final : public Client {
   public:
    bool execute(const Operation&) override {
      if (++count_ > 100) throw std::runtime_error("broken on purpose");
      return true;
    }
    [[nodiscard]] ClientCounters counters() const override { return {}; }

   private:
    int count_ = 0;
  };
  Clients<BrokenClient> system;
  const WorkloadSpec spec;
  const Zipf zipf(spec.entries, spec.zipf);
  RunOptions options;
  options.threads = 2;
  options.operations = 100'000;
  CHECK_THROWS_WITH(run_workload(system, spec, zipf, options), "broken on purpose");
  // Nobody waits for the end of a run that has failed.
  options.operations = 0;
  options.seconds = 86400;
  CHECK_THROWS_WITH(run_workload(system, spec, zipf, options), "broken on purpose");
  options.warmup_seconds = 86400;
  CHECK_THROWS_WITH(run_workload(system, spec, zipf, options), "broken on purpose");
}

TEST_CASE("Probes that have started are stopped, and a failure is not lost by theirs") {
  struct QuickClient final : Client {
    bool execute(const Operation&) override { return true; }
    [[nodiscard]] ClientCounters counters() const override { return {}; }
  };
  struct CountedProbe final : Probe {
    void start() override {
      if (!starts) throw std::runtime_error("cannot start");
      ++running;
    }
    ProbeReading stop() override {
      --running;
      if (!stops) throw std::runtime_error("cannot stop");
      return {};
    }
    bool starts = true;
    bool stops = true;
    int running = 0;
  };
  Clients<QuickClient> system;
  const WorkloadSpec spec;
  CountedProbe first, second, third;
  RunOptions options;
  options.operations = 100;
  options.probes = {&first, &second, &third};
  const auto run = [&] {
    return run_workload(system, spec, Zipf(spec.entries, spec.zipf), options);
  };
  CHECK(run().probed.size() == 3);
  first.stops = false;
  CHECK_THROWS_WITH(run(), "cannot stop");
  second.starts = false;
  CHECK_THROWS_WITH(run(), "cannot start");
  for (const CountedProbe* probe : {&first, &second, &third}) CHECK(probe->running == 0);
}

TEST_CASE("Unknown systems and impossible combinations are named") {
  CHECK_THROWS_AS(make_system("oracle"), std::invalid_argument);
  WorkloadSpec spec;
  spec.kind = WorkloadKind::queue;
  CHECK(why_unsupported("nvm-ideal", spec, {}) != "");
  SystemOptions async;
  async.asynchronous = true;
  CHECK(why_unsupported("nvm-tx", spec, async) != "");
  CHECK(why_unsupported("sp3", spec, async) == "");
  SystemOptions mapped;
  mapped.pool.memory = sp3::MemoryKind::emulated;
  CHECK(why_unsupported("mnemosyne", spec, mapped, 64) == "");
  CHECK(why_unsupported("mnemosyne", spec, mapped, 65).find("at most 64") != std::string::npos);
}

TEST_CASE("The floor and the machine can be told") {
  const TempPath path("floor");
  const FloorResult floor = measure_floor(path.path(), sp3::MemoryKind::emulated, {},
                                          sp3::FlushInstruction::automatic, 6, 0.02);
  CHECK(floor.writes_per_s > 0);
  CHECK(floor.flush != sp3::FlushInstruction::automatic);
  for (const auto& left : std::filesystem::directory_iterator(path.path().parent_path())) {
    CHECK_FALSE(left.path().string().starts_with(path.path().string()));
  }
  // Nothing is measured with a latency that no pool can have.
  const sp3::Latency latency{sp3::LatencyModel::fence, 100'000'001, 0};
  CHECK(sp3::test::code_of([&] {
          return measure_floor(path.path(), sp3::MemoryKind::emulated, latency,
                               sp3::FlushInstruction::automatic, 1, 0.02);
        }) == "invalid_argument");
  const Machine machine = describe_machine();
  CHECK(machine.cores >= 1);
  CHECK(machine.cpu != "");
  CHECK(machine.kernel != "unknown");
}

// Every system against containers of the standard library: the same operations, the same answers,
// the same contents at the end, and again after closing and opening.
#include <string>

#include <catch2/catch.hpp>

#include "tests/workloads/model.h"
#include "tests/workloads/support.h"
#include "workloads/system.h"

using namespace sp3::workloads;
using sp3::test::contents_of;
using sp3::test::Model;
using sp3::test::small_options;
using sp3::test::TempPath;

namespace {

// Executes `operations` of thread `thread` on both and compares every answer.
void run_beside_model(System& system, const WorkloadSpec& spec, unsigned thread, int operations,
                      Model& model) {
  const Zipf zipf(spec.entries, spec.zipf);
  OperationStream stream(spec, zipf, thread, 2000);
  const std::unique_ptr<Client> client = system.connect();
  const ClientCounters before = client->counters();
  for (int i = 0; i < operations; ++i) {
    const Operation operation = stream.next();
    const bool found = client->execute(operation);
    if (found != model.execute(operation)) FAIL("operation " << i << " of thread " << thread);
    const bool reads = operation.kind == OperationKind::search ||
                       operation.kind == OperationKind::modify ||
                       operation.kind == OperationKind::scan;
    if (reads && found && client->last_tag() != model.last_tag()) {
      FAIL("what operation " << i << " of thread " << thread << " has read");
    }
  }
  client->drain();
  CHECK(client->counters().commits - before.commits == static_cast<std::uint64_t>(operations));
}

void compare_with_model(std::string_view name, const WorkloadSpec& spec, bool asynchronous) {
  CAPTURE(name, name_of(spec), spec.entry_size, asynchronous);
  const TempPath path("model");
  SystemOptions options = small_options(name, path);
  options.asynchronous = asynchronous;
  if (!why_unsupported(name, spec, options).empty()) return;
  const bool durable = system_info(name).durable;

  Model model(spec);
  auto system = make_system(name);
  system->create(spec, options);
  system->populate();
  REQUIRE(contents_of(*system) == model.contents());
  run_beside_model(*system, spec, 0, 600, model);
  REQUIRE(check(*system, spec) == "");
  REQUIRE(contents_of(*system) == model.contents());
  system->close();
  if (!durable) return;

  system = make_system(name);
  system->open(spec, options);
  REQUIRE(check(*system, spec) == "");
  REQUIRE(contents_of(*system) == model.contents());
  run_beside_model(*system, spec, 1, 100, model);
  REQUIRE(contents_of(*system) == model.contents());
  system->close();
}

}  // namespace

TEST_CASE("Every system answers as a standard container does, also after it was reopened") {
  WorkloadSpec spec;
  spec.entries = 300;
  spec.zipf = 0.5;
  for (const SystemInfo& info : systems()) {
    for (const WorkloadKind kind : kAllWorkloads) {
      spec.kind = kind;
      spec.fill = info.name == "nvm-ideal" ? 1.0 : 0.4;
      compare_with_model(info.name, spec, false);
      if (info.has_async) compare_with_model(info.name, spec, true);
    }
  }
}

TEST_CASE("Every system answers as a standard container does in the mixes of YCSB") {
  WorkloadSpec spec;
  spec.entries = 300;
  int compared = 0;
  for (const SystemInfo& info : systems()) {
    for (const WorkloadKind kind : {WorkloadKind::hashtable, WorkloadKind::bptree}) {
      for (const Mix mix : mixes_from_name("ycsb")) {
        spec.kind = kind;
        spec.mix = mix;
        const TempPath path("mix");
        if (why_unsupported(info.name, spec, small_options(info.name, path)).empty()) ++compared;
        compare_with_model(info.name, spec, false);
      }
    }
  }
  // sp3, sp3-async, nvm-tx, dram-tx, mnemosyne and quadra are in every build.
  CHECK(compared >= 6 * 11);
}

TEST_CASE("A scan ends with the greatest key") {
  WorkloadSpec spec;
  spec.kind = WorkloadKind::bptree;
  spec.entries = 300;
  spec.mix = Mix::ycsb_e;
  for (const SystemInfo& info : systems()) {
    CAPTURE(info.name);
    const TempPath path("scan");
    const SystemOptions options = small_options(info.name, path);
    if (!why_unsupported(info.name, spec, options).empty()) continue;
    const auto system = make_system(info.name);
    system->create(spec, options);
    system->populate();
    {
      const auto client = system->connect();
      CHECK(client->execute({OperationKind::scan, 0, 0, 1}));
      CHECK(client->execute({OperationKind::scan, 299, 0, 100}));
      CHECK_FALSE(client->execute({OperationKind::scan, 300, 0, 100}));
      CHECK(client->counters().writing_commits == 0);
    }
    system->close();
  }
}

TEST_CASE("A queue that runs empty answers so, and takes values again") {
  WorkloadSpec spec;
  spec.kind = WorkloadKind::queue;
  spec.entries = 2;
  spec.insert_ratio = 0.45;
  for (const SystemInfo& info : systems()) compare_with_model(info.name, spec, false);
}

TEST_CASE("Entries of other sizes are stored whole") {
  WorkloadSpec spec;
  spec.entries = 50;
  spec.fill = 0.5;
  for (const SystemInfo& info : systems()) {
    for (const std::uint32_t size : {16U, 4096U}) {
      spec.entry_size = size;
      for (const WorkloadKind kind : kAllWorkloads) {
        spec.kind = kind;
        compare_with_model(info.name, spec, false);
      }
    }
  }
}

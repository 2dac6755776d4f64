// bank and tpcc, the workloads of several rows a transaction, on every system that has them.
#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/workloads/support.h"
#include "workloads/runner.h"
#include "workloads/tpcc/inputs.h"

using namespace sp3::workloads;
using sp3::test::application_options;
using sp3::test::rows_of;
using sp3::test::StoredRows;
using sp3::test::TempPath;

namespace {

constexpr WorkloadKind kApplications[] = {WorkloadKind::bank, WorkloadKind::tpcc};

WorkloadSpec spec_of(WorkloadKind kind) {
  WorkloadSpec spec;
  spec.kind = kind;
  spec.entries = 300;
  spec.warehouses = 1;
  return spec;
}

// Executes operations of thread `thread`, and returns what each said.
std::vector<bool> execute(System& system, const WorkloadSpec& spec, unsigned thread,
                          int operations) {
  const Zipf zipf(spec.entries, spec.zipf);
  OperationStream stream(spec, zipf, thread, 2000);
  const std::unique_ptr<Client> client = system.connect();
  std::vector<bool> found;
  for (int i = 0; i < operations; ++i) found.push_back(client->execute(stream.next()));
  client->drain();
  return found;
}

// What a system says of a course and leaves after it, also when it was reopened.
struct Left {
  std::vector<bool> found;
  StoredRows rows;
};

Left run_alone(std::string_view name, const WorkloadSpec& spec, bool asynchronous) {
  const TempPath path("applications");
  SystemOptions options = application_options(name, path);
  options.asynchronous = asynchronous;
  CAPTURE(name, to_string(spec.kind), asynchronous);
  REQUIRE(why_unsupported(name, spec, options) == "");
  auto system = make_system(name);
  system->create(spec, options);
  system->populate();
  REQUIRE(check(*system, spec) == "");
  Left left{execute(*system, spec, 0, 250), {}};
  CHECK(check(*system, spec) == "");
  left.rows = rows_of(*system);
  system->close();
  if (system_info(name).durable) {
    system = make_system(name);
    system->open(spec, options);
    CHECK(check(*system, spec) == "");
    CHECK(rows_of(*system) == left.rows);
    system->close();
  }
  return left;
}

bool has_applications(std::string_view name) {
  const TempPath path("applications");
  return why_unsupported(name, spec_of(WorkloadKind::bank), application_options(name, path))
      .empty();
}

}  // namespace

TEST_CASE("Streams of bank and tpcc are functions of seed and thread, in their shares") {
  for (const WorkloadKind kind : kApplications) {
    for (const double ratio : {0.0, 0.2, 1.0}) {
      WorkloadSpec spec = spec_of(kind);
      spec.insert_ratio = ratio;
      const Zipf zipf(spec.entries, spec.zipf);
      OperationStream a(spec, zipf, 1);
      OperationStream b(spec, zipf, 1);
      OperationStream other(spec, zipf, 2);
      unsigned writes = 0;
      unsigned equal = 0;
      for (int i = 0; i < 10'000; ++i) {
        const Operation x = a.next();
        const Operation y = b.next();
        const Operation z = other.next();
        REQUIRE(std::tie(x.kind, x.key, x.value, x.count) ==
                std::tie(y.kind, y.key, y.value, y.count));
        equal += x.kind == z.kind && x.key == z.key && x.value == z.value ? 1 : 0;
        const bool first = x.kind == OperationKind::transfer || x.kind == OperationKind::new_order;
        writes += first ? 1 : 0;
      }
      CHECK(writes == Approx(ratio * 10'000).margin(250));
      CHECK(equal < 2000);  // audits of the hottest accounts
    }
  }
}

TEST_CASE("Transfers and audits keep to the accounts there are") {
  for (const std::uint64_t entries : {2U, 15U, 17U, 1000U}) {
    WorkloadSpec spec = spec_of(WorkloadKind::bank);
    spec.entries = entries;
    const Zipf zipf(spec.entries, spec.zipf);
    OperationStream stream(spec, zipf, 0);
    for (int i = 0; i < 10'000; ++i) {
      const Operation operation = stream.next();
      if (operation.kind == OperationKind::audit) {
        REQUIRE(operation.count == std::min(entries, kAuditWindow));
        REQUIRE(operation.key + operation.count <= entries);
        continue;
      }
      REQUIRE(operation.kind == OperationKind::transfer);
      REQUIRE(operation.key != operation.value);
      REQUIRE((operation.key < entries && operation.value < entries));
      REQUIRE((operation.count >= 1 && operation.count <= kMostTransfer));
    }
  }
}

TEST_CASE("Every system says and leaves the same of bank and tpcc, also after it was reopened") {
  for (const WorkloadKind kind : kApplications) {
    const WorkloadSpec spec = spec_of(kind);
    const Left expected = run_alone("dram-tx", spec, false);
    for (const SystemInfo& info : systems()) {
      if (!has_applications(info.name)) continue;
      for (const bool asynchronous : {false, true}) {
        if (asynchronous && !info.has_async) continue;
        const Left left = run_alone(info.name, spec, asynchronous);
        CAPTURE(info.name, to_string(kind), asynchronous);
        CHECK(left.found == expected.found);
        const bool same = left.rows == expected.rows;
        CHECK(same);
      }
    }
  }
}

TEST_CASE("Every size of account runs") {
  for (const std::uint32_t size : kEntrySizes) {
    WorkloadSpec spec = spec_of(WorkloadKind::bank);
    spec.entry_size = size;
    run_alone("sp3", spec, false);
    for (const std::string_view store : {"lmdb", "rocksdb", "sqlite"}) {
      if (sp3::test::has_system(store)) run_alone(store, spec, true);
    }
  }
}

TEST_CASE("Four threads leave of bank and tpcc what whole transactions leave") {
  for (const SystemInfo& info : systems()) {
    if (!has_applications(info.name)) continue;
    for (const WorkloadKind kind : kApplications) {
      const TempPath path("applications");
      const SystemOptions options = application_options(info.name, path);
      WorkloadSpec spec = spec_of(kind);
      spec.entries = 20;  // of which few bear all that is asked of them
      spec.warehouses = kind == WorkloadKind::tpcc ? 2 : 1;
      const auto system = make_system(info.name);
      system->create(spec, options);
      system->populate();
      RunOptions run;
      run.threads = 4;
      run.operations = options.pool.memory == sp3::MemoryKind::file ? 600 : 8000;
      CAPTURE(info.name, to_string(kind));
      const RunResult result = run_workload(*system, spec, Zipf(spec.entries, spec.zipf), run);
      CHECK(check_run(info.name, *system, spec, run.threads) == "");
      CHECK(result.operations == run.operations);
      if (kind == WorkloadKind::tpcc) {
        CHECK(result.new_orders == Approx(static_cast<double>(run.operations) / 2).margin(400));
        CHECK(result.misses < result.new_orders / 10);
        CHECK(result.counters.commits == result.operations - result.misses);
        CHECK(result.new_orders_per_s() > 0);
        CHECK(result.new_orders_per_s() < result.throughput());
      } else {
        CHECK(result.new_orders == 0);
        CHECK(result.counters.commits == result.operations);
      }
      system->close();
    }
  }
}

TEST_CASE("A transfer that the account cannot bear is refused, and changes nothing") {
  WorkloadSpec spec = spec_of(WorkloadKind::bank);
  spec.entries = 2;
  for (const SystemInfo& info : systems()) {
    if (!has_applications(info.name)) continue;
    const TempPath path("applications");
    const auto system = make_system(info.name);
    system->create(spec, application_options(info.name, path));
    system->populate();
    const std::unique_ptr<Client> client = system->connect();
    CAPTURE(info.name);
    for (int i = 0; i < 10; ++i) {
      CHECK(client->execute({OperationKind::transfer, 0, 1, kStartBalance / 10}));
    }
    CHECK_FALSE(client->execute({OperationKind::transfer, 0, 1, 1}));
    CHECK(client->execute({OperationKind::audit, 0, 0, 2}));
    CHECK(client->counters().commits == 12);
    CHECK(client->counters().writing_commits == 10);
    const StoredRows rows = rows_of(*system);
    CHECK(rows.at(0).first == 0);
    CHECK(rows.at(1).first == 2 * kStartBalance);
    CHECK(check(*system, spec) == "");
  }
}

TEST_CASE("An order of an item that there is not is rolled back, and leaves nothing") {
  const WorkloadSpec spec = spec_of(WorkloadKind::tpcc);
  Operation unused{OperationKind::new_order, 0, 0, 0};
  for (;; ++unused.value) {
    const tpcc::NewOrderInput input = tpcc::new_order_input(unused, 1);
    if (input.lines[input.count - 1].item == tpcc::kItems) break;
  }
  for (const SystemInfo& info : systems()) {
    if (!has_applications(info.name)) continue;
    const TempPath path("applications");
    const auto system = make_system(info.name);
    system->create(spec, application_options(info.name, path));
    system->populate();
    const StoredRows before = rows_of(*system);
    const std::unique_ptr<Client> client = system->connect();
    CAPTURE(info.name);
    const ClientCounters counted = client->counters();
    CHECK_FALSE(client->execute(unused));
    CHECK(client->counters().commits == counted.commits);
    const bool same = rows_of(*system) == before;
    CHECK(same);
    // The client goes on.
    CHECK(client->execute({OperationKind::payment, 0, 5, 0}));
    CHECK(check(*system, spec) == "");
  }
}

TEST_CASE("Orders come and go on this library while districts keep as many as before") {
  const WorkloadSpec spec = spec_of(WorkloadKind::tpcc);
  const TempPath path("applications");
  const auto system = make_system("sp3");
  system->create(spec, application_options("sp3", path));
  system->populate();
  const auto count_orders = [&] {
    std::uint64_t orders = 0;
    for (const auto& [key, row] : rows_of(*system)) {
      if (table_of(key) == tpcc::Order::table) ++orders;
    }
    return orders;
  };
  CHECK(count_orders() == tpcc::kDistricts * tpcc::kKeptOrders);
  execute(*system, spec, 0, 10'000);  // all orders of the start are gone
  CHECK(check(*system, spec) == "");
  CHECK(count_orders() == tpcc::kDistricts * tpcc::kKeptOrders);
}

TEST_CASE("Systems without transactions of several rows say why they do not run bank and tpcc") {
  const TempPath path("applications");
  for (const WorkloadKind kind : kApplications) {
    for (const std::string_view name : {"pmdk", "mnemosyne", "quadra", "nvm-ideal"}) {
      if (!sp3::test::has_system(name)) continue;
      const std::string reason =
          why_unsupported(name, spec_of(kind), application_options(name, path));
      CAPTURE(name, reason);
      CHECK(reason.find(to_string(kind)) != std::string::npos);
    }
  }
}

TEST_CASE("Warehouses that cannot be are refused") {
  WorkloadSpec spec = spec_of(WorkloadKind::tpcc);
  for (const std::uint64_t warehouses : {std::uint64_t{0}, kMostWarehouses + 1}) {
    spec.warehouses = warehouses;
    CHECK_THROWS_WITH(spec.validate(), Catch::Contains("warehouses: wanted 1 to 1000, found"));
  }
  CHECK(workload_from_name("bank") == WorkloadKind::bank);
  CHECK(workload_from_name("tpcc") == WorkloadKind::tpcc);
  CHECK_THROWS_WITH(workload_from_name("tpch"),
                    Catch::Contains("ranges, bank, tpcc, found 'tpch'"));
}

// What is particular to the key-value stores: their syncs are seen and counted, and asynchronous
// commits are synced in groups.
#include <atomic>
#include <cstring>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "emu/spin.h"
#include "tests/workloads/support.h"
#include "workloads/runner.h"
#include "workloads/systems/keyvalue/group_sync.h"
#include "workloads/systems/keyvalue/store.h"

using namespace sp3::workloads;
using sp3::test::has_system;
using sp3::test::small_options;
using sp3::test::TempPath;

namespace {

constexpr std::string_view kStores[] = {"lmdb", "rocksdb", "sqlite"};

RunResult insert(std::string_view name, bool asynchronous, unsigned threads) {
  const TempPath path("keyvalue");
  WorkloadSpec spec;
  spec.kind = WorkloadKind::bptree;
  spec.entries = 500;
  spec.insert_ratio = 1;
  SystemOptions options = small_options(name, path);
  options.asynchronous = asynchronous;
  options.pool.async.group_records = 16;
  options.pool.async.group_microseconds = 10'000'000;
  const auto system = make_system(name);
  system->create(spec, options);
  system->populate();
  const Zipf zipf(spec.entries, spec.zipf);
  RunOptions run;
  run.threads = threads;
  run.operations = 640;
  RunResult result = run_workload(*system, spec, zipf, run);
  CHECK(check(*system, spec) == "");
  system->close();
  return result;
}

}  // namespace

TEST_CASE("A synchronous put costs as many syncs as docs/PEERS.md says") {
  for (const std::string_view name : kStores) {
    if (!has_system(name)) continue;
    CAPTURE(name);
    const RunResult alone = insert(name, false, 1);
    CHECK(alone.counters.writing_commits == 640);
    // sqlite's checkpoints sync twice in some hundred commits.
    CHECK(alone.fences_per_tx() >= (name == "lmdb" ? 2.0 : 1.0));
    CHECK(alone.fences_per_tx() <= (name == "lmdb" ? 2.0 : 1.05));
    const RunResult both = insert(name, false, 2);
    CHECK(both.counters.fences > 0);
    CHECK(both.fences_per_tx() <= (name == "lmdb" ? 2.0 : 1.05));
  }
}

TEST_CASE("Asynchronous puts are synced in groups") {
  for (const std::string_view name : kStores) {
    if (!has_system(name)) continue;
    CAPTURE(name);
    // 640 in groups of 16, and sqlite's checkpoints.
    const RunResult alone = insert(name, true, 1);
    CHECK(alone.counters.fences >= 40);
    CHECK(alone.counters.fences <= 50);
  }
}

TEST_CASE("A group is synced when it is full, when asked for, and after its time") {
  using sp3::workloads::keyvalue::GroupSync;
  std::atomic<int> syncs{0};
  sp3::AsyncOptions window;
  window.group_records = 4;
  window.group_bytes = 1000;
  window.group_microseconds = 100'000'000;
  {
    GroupSync group(window, [&] { ++syncs; });
    GroupSync::Pending pending;
    for (int i = 0; i < 3; ++i) group.committed(pending, 1);
    CHECK(syncs == 0);
    group.committed(pending, 1);
    CHECK(syncs == 1);
    group.committed(pending, 1000);
    CHECK(syncs == 2);
    group.flush(pending);  // nothing is pending
    CHECK(syncs == 2);
    group.committed(pending, 1);
    group.flush(pending);
    CHECK(syncs == 3);
  }
  window.group_microseconds = 100;
  GroupSync group(window, [&] { ++syncs; });
  GroupSync::Pending pending;
  group.committed(pending, 1);
  while (syncs == 3) sp3::emu::Spin().pause();
  CHECK(syncs == 4);
}

// As sp3's asynchronous commits: else a rival would sync more often for the same promise.
TEST_CASE(
    "What is durable already is no part of a group, and nothing for the thread that syncs by "
    "time") {
  using sp3::workloads::keyvalue::GroupSync;
  std::atomic<int> syncs{0};
  sp3::AsyncOptions window;
  window.group_records = 4;
  window.group_microseconds = 100'000'000;
  {
    GroupSync group(window, [&] { ++syncs; });
    GroupSync::Pending one;
    GroupSync::Pending other;
    for (int i = 0; i < 3; ++i) group.committed(one, 1);
    group.committed(other, 1);
    group.flush(other);
    CHECK(syncs == 1);
    for (int i = 0; i < 3; ++i) group.committed(one, 1);
    CHECK(syncs == 1);
    group.committed(one, 1);
    CHECK(syncs == 2);
  }
  syncs = 0;
  window.group_records = 1;
  window.group_microseconds = 100;
  GroupSync group(window, [&] { ++syncs; });
  GroupSync::Pending pending;
  for (int i = 0; i < 200; ++i) {
    group.committed(pending, 1);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  CHECK(syncs < 250);
}

TEST_CASE("A failed sync is thrown to the client that waits for it, and stays") {
  using sp3::workloads::keyvalue::GroupSync;
  sp3::AsyncOptions window;
  window.group_microseconds = 100'000'000;
  GroupSync group(window, [] { throw std::runtime_error("the disk is gone"); });
  for (int i = 0; i < 2; ++i) {
    GroupSync::Pending pending;
    group.committed(pending, 1);
    CHECK_THROWS_WITH(group.flush(pending), "the disk is gone");
  }
}

TEST_CASE("Key-value stores show entries from a key on, in order") {
  using namespace sp3::workloads::keyvalue;
  [[maybe_unused]] const auto scans_rightly = [](OpenStore* open_store) {
    const TempPath path("scan");
    std::filesystem::create_directories(path.path());
    const auto store = open_store({.directory = path.path(), .capacity = 1 << 22, .value_size = 8});
    const auto session = store->connect();
    std::uint64_t bytes = 0;
    const auto value_of = [&](std::uint64_t key) {
      bytes = key;
      return std::as_bytes(std::span(&bytes, 1));
    };
    std::vector<std::uint64_t> keys;
    for (std::uint64_t i = 100; i-- > 0;) keys.push_back(3 * i);  // 0 to 297
    session->put_all(keys, value_of);
    const auto scan = [&](std::uint64_t from, std::uint64_t count) {
      std::vector<std::uint64_t> found;
      const std::uint64_t told = session->scan(from, count, [&](Value value) {
        std::uint64_t number = 0;
        REQUIRE(value.size() == sizeof number);
        std::memcpy(&number, value.data(), sizeof number);
        found.push_back(number);
      });
      CHECK(told == found.size());
      return found;
    };
    using Keys = std::vector<std::uint64_t>;
    CHECK(scan(0, 3) == Keys{0, 3, 6});
    CHECK(scan(250, 4) == Keys{252, 255, 258, 261});  // beyond a byte of the key
    CHECK(scan(290, 100) == Keys{291, 294, 297});
    CHECK(scan(298, 100).empty());
    CHECK(scan(0, 1000).size() == 100);
    session->put(4, value_of(4));
    CHECK(scan(3, 3) == Keys{3, 4, 6});
  };
#ifdef SP3_WITH_LMDB
  scans_rightly(open_lmdb);
#endif
#ifdef SP3_WITH_ROCKSDB
  scans_rightly(open_rocksdb);
#endif
#ifdef SP3_WITH_SQLITE
  scans_rightly(open_sqlite);
#endif
}

TEST_CASE("Key-value stores name the workloads and the memory that they cannot serve") {
  for (const std::string_view name : kStores) {
    if (!has_system(name)) continue;
    const TempPath path("keyvalue");
    SystemOptions options = small_options(name, path);
    WorkloadSpec spec;
    CHECK(why_unsupported(name, spec, options).find("not sps") != std::string::npos);
    spec.kind = WorkloadKind::hashtable;
    CHECK(why_unsupported(name, spec, options) == "");
    options.pool.memory = sp3::MemoryKind::emulated;
    CHECK(why_unsupported(name, spec, options).find("--memory file") != std::string::npos);
  }
}

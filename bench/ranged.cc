// Writing a range against writing an object of the same size: what the range lock, the chunk table
// and the patch cost a single writer (plain, ranged). And writers side by side, each in its part of
// one object, by range lock (disjoint): which of the two should be the default? One synchronous
// transaction for each iteration, at places that go round in 4 MiB, or the writer's part of them.
//
//   sp3_ranged_bench --benchmark_filter=disjoint --benchmark_repetitions=9
//     --benchmark_enable_random_interleaving=true --benchmark_report_aggregates_only=true
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <sp3/containers/array.h>
#include <sp3/sp3.h>

#include "workloads/scratch_directory.h"
#include "workloads/unused_path.h"

namespace {

using namespace sp3;

constexpr std::uint64_t kData = 4 << 20;

// An empty pool in DRAM, gone with the benchmark.
struct Store {
  std::filesystem::path path = workloads::unused_path(workloads::scratch_directory(), "sp3-ranged");
  Pool pool;
  Session session;
  explicit Store(const Options& options)
      : pool(Pool::create(path, 256 << 20, options)), session(pool.session()) {
    std::filesystem::remove(path);
  }
};

Options emulated(std::uint32_t latency_ns) {
  Options options;
  options.memory = MemoryKind::emulated;
  options.latency.nanoseconds = latency_ns;
  return options;
}

// The `number`-th value, written to each of `places` in turn: never what is there already, or an
// object would find that nothing has changed, and log nothing.
std::byte fresh(std::uint64_t number, std::uint64_t places) {
  return static_cast<std::byte>(number + number / places);
}

template <std::size_t kBytes>
struct Plain {
  std::array<std::byte, kBytes> bytes;
};

template <std::size_t kBytes>
void plain(benchmark::State& state) {
  Store store(emulated(static_cast<std::uint32_t>(state.range(0))));
  using Objects = Array<Plain<kBytes>>;
  constexpr std::uint64_t kCount = kData / kBytes;
  Objects objects;
  store.session.run([&](Transaction& tx) { objects = Objects::reserve(tx, kCount); });
  for (std::uint64_t i = 0; i < kCount; i += 64) {
    store.session.run([&](Transaction& tx) { objects.fill(tx, 64); });
  }
  store.session.run([&](Transaction& tx) { objects = objects.cached(tx); });
  Plain<kBytes> value{};
  std::uint64_t next = 0;
  for (auto _ : state) {
    value.bytes.fill(fresh(next, kCount));
    store.session.run([&](Transaction& tx) { objects.set(tx, next % kCount, value); });
    ++next;
  }
}

// state.range(1): bytes of a chunk; (2): the lock.
template <std::size_t kBytes>
void ranged(benchmark::State& state) {
  Options options = emulated(static_cast<std::uint32_t>(state.range(0)));
  options.range_lock = static_cast<RangeLockKind>(state.range(2));
  Store store(options);
  RangedObject object;
  store.session.run([&](Transaction& tx) {
    object = RangedObject::create(tx, kData, static_cast<std::uint32_t>(state.range(1)));
  });
  for (std::uint64_t at = 0; at < kData; at += 65536) {
    store.session.run([&](Transaction& tx) { object.fill(tx, at, at + 65536); });
  }
  std::vector<std::byte> value(kBytes);
  std::uint64_t next = 0;
  for (auto _ : state) {
    std::fill(value.begin(), value.end(), fresh(next, kData / kBytes));
    store.session.run([&](Transaction& tx) { object.write(tx, next * kBytes % kData, value); });
    ++next;
  }
}

void chunks_and_locks(benchmark::internal::Benchmark* benchmark) {
  for (const int latency : {0, 500}) {
    for (const int chunk : {256, 1024, 4096}) {
      for (const RangeLockKind lock : {RangeLockKind::skiplist, RangeLockKind::grid}) {
        benchmark->Args({latency, chunk, static_cast<int>(lock)});
      }
    }
  }
}

// An object for all threads of a benchmark, with 500 ns added to each persist. They do not fill the
// log at once: a checkpoint takes of the cores that they want. All of it has been written to, since
// one writer, who gets around later than two, would pay for more fresh pages.
struct Shared {
  static constexpr std::uint64_t kPool = 512 << 20;
  static constexpr std::uint64_t kLog = kPool / 2;

  std::filesystem::path path = workloads::unused_path(workloads::scratch_directory(), "sp3-ranged");
  Pool pool;
  RangedObject object;

  Shared(RangeLockKind lock, std::uint32_t chunk_bytes)
      : pool(Pool::create(path, kPool, options_with(lock))) {
    std::filesystem::remove(path);
    Session session = pool.session();
    session.run([&](Transaction& tx) { object = RangedObject::create(tx, kData, chunk_bytes); });
    std::vector<std::byte> value(64 << 10);
    for (std::uint64_t bytes = 0; bytes < kLog; bytes += value.size()) {
      std::fill(value.begin(), value.end(), fresh(bytes / value.size(), kData / value.size()));
      session.run([&](Transaction& tx) { object.write(tx, bytes % kData, value); });
    }
  }
  static Options options_with(RangeLockKind lock) {
    Options options = emulated(500);
    options.range_lock = lock;
    options.geometry.log_size = kLog;
    return options;
  }
};
std::unique_ptr<Shared> shared;

// state.range(0): bytes of a range; (1): bytes of a chunk; (2): the lock.
void disjoint(benchmark::State& state) {
  const auto bytes = static_cast<std::uint64_t>(state.range(0));
  const std::uint64_t part = kData / static_cast<std::uint64_t>(state.threads());
  const std::uint64_t begin = part * static_cast<std::uint64_t>(state.thread_index());
  Session session = shared->pool.session();
  std::vector<std::byte> value(bytes);
  std::uint64_t next = 0;
  for (auto _ : state) {
    std::fill(value.begin(), value.end(), fresh(next, part / bytes));
    session.run(
        [&](Transaction& tx) { shared->object.write(tx, begin + next * bytes % part, value); });
    ++next;
  }
  state.SetItemsProcessed(state.iterations());
}

// Small and large ranges, and wide ones, which the grid has no buckets for.
void sizes_and_locks(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"bytes", "chunk", "lock"})->UseRealTime();
  benchmark->Setup([](const benchmark::State& state) {
    shared = std::make_unique<Shared>(static_cast<RangeLockKind>(state.range(2)),
                                      static_cast<std::uint32_t>(state.range(1)));
  });
  benchmark->Teardown([](const benchmark::State&) { shared.reset(); });
  for (const RangeLockKind lock : {RangeLockKind::skiplist, RangeLockKind::grid}) {
    benchmark->Args({64, 256, static_cast<int>(lock)});
    benchmark->Args({1024, 1024, static_cast<int>(lock)});
    benchmark->Args({16384, 4096, static_cast<int>(lock)});
    benchmark->Args({131072, 4096, static_cast<int>(lock)});
  }
}

BENCHMARK(disjoint)->Apply(sizes_and_locks)->Threads(1)->Threads(2);
BENCHMARK_TEMPLATE(plain, 64)->Arg(0)->Arg(500);
BENCHMARK_TEMPLATE(plain, 1024)->Arg(0)->Arg(500);
BENCHMARK_TEMPLATE(plain, 4096)->Arg(0)->Arg(500);
BENCHMARK_TEMPLATE(plain, 16384)->Arg(0)->Arg(500);
BENCHMARK_TEMPLATE(ranged, 64)->Apply(chunks_and_locks);
BENCHMARK_TEMPLATE(ranged, 1024)->Apply(chunks_and_locks);
BENCHMARK_TEMPLATE(ranged, 4096)->Apply(chunks_and_locks);
BENCHMARK_TEMPLATE(ranged, 16384)->Apply(chunks_and_locks);

}  // namespace

// The floor: what the hardware alone takes for the work of a commit. Everything the runtime adds is
// measured against these. bench/README.md says how to read them.
//
// All memory is a DRAM-backed file; every iteration writes other lines than the last ones, as a log
// does, going round in a region that stays in the cache.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "emu/clock.h"
#include "emu/flush.h"
#include "emu/memory.h"

namespace {

using namespace sp3;
using emu::FlushCounts;
using emu::Memory;

constexpr std::uint64_t kLine = base::kCacheLine;
constexpr std::uint64_t kRegion = std::uint64_t{256} * 1024;

// A nameless file in DRAM, mapped as a pool would be.
class Region {
 public:
  explicit Region(FlushInstruction flush, Latency latency = {}, std::uint64_t bytes = kRegion)
      : bytes_(bytes) {
    fd_ = memfd_create("sp3-floor", MFD_CLOEXEC);
    if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(bytes)) != 0) {
      std::perror("memfd_create");
      std::exit(1);
    }
    emu::MemoryOptions options;
    options.kind = MemoryKind::emulated;
    options.flush = flush;
    options.latency = latency;
    options.log_length = bytes;
    memory_ = Memory::map(fd_, "the benchmark's file", bytes, options);
    raw_ = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_, 0));
    if (raw_ == MAP_FAILED) {
      std::perror("mmap");
      std::exit(1);
    }
  }
  ~Region() {
    memory_.reset();
    munmap(raw_, bytes_);
    close(fd_);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  [[nodiscard]] Memory& memory() { return *memory_; }
  [[nodiscard]] std::byte* raw() { return raw_; }

 private:
  const std::uint64_t bytes_;
  int fd_ = -1;
  std::unique_ptr<Memory> memory_;
  std::byte* raw_ = nullptr;
};

// Offsets of successive records of `bytes` bytes.
class Ring {
 public:
  explicit Ring(std::uint64_t bytes) : bytes_(bytes) {}
  std::uint64_t next() {
    const std::uint64_t at = at_;
    at_ = at_ + 2 * bytes_ <= kRegion ? at_ + bytes_ : 0;
    return at;
  }

 private:
  std::uint64_t bytes_;
  std::uint64_t at_ = 0;
};

struct alignas(64) Record {
  std::array<std::byte, 4096> bytes{};
};

// Keeps the record from being a constant that the compiler could fold into the stores.
void touch(Record& record) { benchmark::DoNotOptimize(record.bytes.data()); }

void raw_instructions(benchmark::State& state, FlushInstruction instruction) {
  Region region(instruction);
  const auto bytes = static_cast<std::size_t>(state.range(0)) * kLine;
  Ring ring(bytes);
  Record record;
  std::byte* const raw = region.raw();
  for (auto _ : state) {
    touch(record);
    std::byte* const to = raw + ring.next();
    if (instruction == FlushInstruction::non_temporal) {
      emu::stream_copy(to, record.bytes.data(), bytes);
    } else {
      std::memcpy(to, record.bytes.data(), bytes);
      emu::flush_lines(instruction, to, to + bytes);
    }
    if (instruction != FlushInstruction::clflush) emu::sfence();
  }
  state.counters["lines"] = static_cast<double>(state.range(0));
}

// As a commit does with a record. Whether all went well.
bool persist(Memory& memory, std::uint64_t at, const void* record, std::size_t bytes,
             bool streaming, FlushCounts& counts) {
  memory.log_store(at, record, bytes, streaming);
  const bool flushed = memory.log_flush(at, bytes, streaming, counts).ok();
  return memory.fence(counts).ok() && flushed;
}

void through_memory(benchmark::State& state, FlushInstruction instruction, Latency latency) {
  Region region(instruction, latency);
  const auto bytes = static_cast<std::size_t>(state.range(0)) * kLine;
  const bool streaming = instruction == FlushInstruction::non_temporal;
  Ring ring(bytes);
  Record record;
  Memory& memory = region.memory();
  FlushCounts counts;
  bool ok = true;
  for (auto _ : state) {
    touch(record);
    ok = persist(memory, ring.next(), record.bytes.data(), bytes, streaming, counts) && ok;
  }
  if (!ok) state.SkipWithError("a flush failed");
  const auto iterations = static_cast<double>(state.iterations());
  state.counters["lines"] = static_cast<double>(counts.lines) / iterations;
  state.counters["fences"] = static_cast<double>(counts.fences) / iterations;
}

void crc(benchmark::State& state) {
  const std::vector<std::byte> data(static_cast<std::size_t>(state.range(0)), std::byte{42});
  std::uint32_t sum = 0;
  for (auto _ : state) sum = base::crc32c(sum, data.data(), data.size());
  benchmark::DoNotOptimize(sum);
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(crc)->Arg(40)->Arg(64)->Arg(128)->Arg(192)->Arg(256)->Arg(320)->Arg(400)->Arg(512);
BENCHMARK(crc)->Arg(1024)->Arg(4096)->Arg(65536);

void copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Record from;
  Record to;
  for (auto _ : state) {
    touch(from);
    std::memcpy(to.bytes.data(), from.bytes.data(), bytes);
    touch(to);
  }
}
BENCHMARK(copy)->Arg(64)->Arg(128)->Arg(384)->Arg(1024)->Arg(4096);

void fetch_add(benchmark::State& state) {
  std::atomic<std::uint64_t> word{0};
  // relaxed: the locked instruction is the same for every order.
  for (auto _ : state) benchmark::DoNotOptimize(word.fetch_add(1, std::memory_order_relaxed));
}
BENCHMARK(fetch_add);

void compare_exchange(benchmark::State& state) {
  std::atomic<std::uint64_t> word{0};
  std::uint64_t seen = 0;
  for (auto _ : state) {
    // relaxed: as above; one thread.
    if (word.compare_exchange_strong(seen, seen + 1, std::memory_order_relaxed)) ++seen;
  }
  benchmark::DoNotOptimize(seen);
}
BENCHMARK(compare_exchange);

// Two threads: the word's cache line goes to and fro.
void fetch_add_shared(benchmark::State& state) {
  static std::atomic<std::uint64_t> word{0};
  for (auto _ : state) benchmark::DoNotOptimize(word.fetch_add(1, std::memory_order_relaxed));
}
BENCHMARK(fetch_add_shared)->Threads(2)->UseRealTime();

// What each store costs a range lock's pair on W1 of `sp3 lockbench`: takes a word by a locked
// addition, makes so many stores, fills a KiB somewhere in 64 MiB, and frees the word.
void fill_and_stores(benchmark::State& state) {
  struct alignas(kLine) Word {
    std::atomic<std::uint64_t> taken{0};
  };
  constexpr std::size_t kFilled = 1024;
  constexpr std::size_t kPlaces = 65536;
  static std::vector<std::byte> array(kPlaces * kFilled);
  static std::vector<Word> words(kPlaces);
  std::array<std::uint64_t, 64> stored{};
  std::uint64_t at = 1;
  for (auto _ : state) {
    at = at * 6364136223846793005U + 1442695040888963407U;
    const std::size_t place = (at >> 32) % kPlaces;
    words[place].taken.fetch_add(1, std::memory_order_acquire);
    for (std::int64_t i = 0; i < state.range(0); ++i) {
      stored[static_cast<std::size_t>(i)] = place;
      benchmark::ClobberMemory();
    }
    std::memset(array.data() + place * kFilled, 1, kFilled);
    benchmark::ClobberMemory();
    words[place].taken.store(0, std::memory_order_release);
  }
  benchmark::DoNotOptimize(stored.data());
}
BENCHMARK(fill_and_stores)->Arg(0)->Arg(8)->Arg(16)->Arg(32)->Arg(64);

// What one thread and two log of large objects, and nothing else: each streams blocks into memory
// that is its own and in no cache, with 500 ns added to the fence behind each. More than twice the
// throughput of one thread no two have, and when memory is busy not that.
void stream_blocks(benchmark::State& state) {
  constexpr std::uint64_t kStreamed = std::uint64_t{128} << 20;
  constexpr Latency kLatency{LatencyModel::fence, 500, 0};
  Region region(FlushInstruction::non_temporal, kLatency, kStreamed);
  Memory& memory = region.memory();
  const auto bytes = static_cast<std::size_t>(state.range(0));
  // Out of the cache it is in, as a record is.
  const std::vector<std::byte> block(bytes, std::byte{1});
  for (std::uint64_t at = 0; at < kStreamed; at += bytes) {  // every page is there
    memory.log_store(at, block.data(), bytes, true);
  }
  FlushCounts counts;
  bool ok = true;
  std::uint64_t at = 0;
  for (auto _ : state) {
    ok = persist(memory, at, block.data(), bytes, true, counts) && ok;
    at = (at + bytes) % kStreamed;
  }
  if (!ok) state.SkipWithError("a flush failed");
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(stream_blocks)
    ->ArgName("bytes")
    ->Arg(1024)
    ->Arg(16384)
    ->Arg(131072)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

void read_clock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(emu::ticks());
}
BENCHMARK(read_clock);

void read_clock_after_loads(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(emu::ticks_after_loads());
}
BENCHMARK(read_clock_after_loads);

const bool registered = [] {
  for (const auto flush :
       {FlushInstruction::clflush, FlushInstruction::clflushopt, FlushInstruction::clwb,
        FlushInstruction::non_temporal, FlushInstruction::none}) {
    if (!emu::cpu_has(flush)) continue;
    const std::string name = to_string(flush);
    auto* raw = benchmark::RegisterBenchmark(
        ("raw/" + name).c_str(),
        [flush](benchmark::State& state) { raw_instructions(state, flush); });
    auto* seam = benchmark::RegisterBenchmark(
        ("memory/" + name).c_str(),
        [flush](benchmark::State& state) { through_memory(state, flush, {}); });
    for (const int lines : {1, 2, 4, 6, 8}) {
      raw->Arg(lines);
      seam->Arg(lines);
    }
  }
  for (const auto model : {LatencyModel::line, LatencyModel::fence, LatencyModel::yield}) {
    for (const std::uint32_t nanoseconds : {0U, 500U}) {
      const Latency latency{model, nanoseconds, 0};
      const std::string name =
          std::string("latency/") + to_string(model) + "/" + std::to_string(nanoseconds);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [latency](benchmark::State& state) {
                                     through_memory(state, FlushInstruction::automatic, latency);
                                   })
          ->Arg(1)
          ->Arg(6);
    }
  }
  return true;
}();

}  // namespace

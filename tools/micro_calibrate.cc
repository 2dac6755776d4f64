// sp3 micro --calibrate: what the hardware and the runtime's instructions take here, for the cost
// model of the simulated machine. No workload is among them: those it is to predict.
//
// Everything is measured in turn, and all again `repeat` times. The lower quartile counts: what
// others do on the machine only ever adds.
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include <immintrin.h>
#include <sched.h>

#include "base/align.h"
#include "emu/clock.h"
#include "tools/bench_run.h"
#include "tools/line_transfer.h"
#include "tools/median.h"
#include "tools/micro.h"
#include "tools/micro_runtime.h"
#include "workloads/rng.h"
#include "workloads/workload.h"

namespace sp3::tools {
namespace {

struct alignas(base::kCacheLine) CacheLine {
  std::uint64_t next = 0;
  std::array<std::uint64_t, 7> rest{};
};

volatile std::uint64_t sink = 0;  // what is computed must be computed

// Blocks of `lines` cache lines, the first naming the block to go to: one cycle in random order.
class Chase {
 public:
  Chase(std::size_t bytes, std::size_t lines)
      : lines_(lines), memory_(bytes / base::kCacheLine / lines * lines) {
    const std::size_t blocks = memory_.size() / lines_;
    std::vector<std::uint32_t> order(blocks);
    std::iota(order.begin(), order.end(), 0U);
    workloads::Rng rng(1);
    for (std::size_t i = blocks - 1; i > 0; --i) std::swap(order[i], order[rng.below(i + 1)]);
    for (std::size_t i = 0; i < blocks; ++i) {
      memory_[order[i] * lines_].next = order[(i + 1) % blocks] * lines_;
    }
  }

  double ns_per_block(std::uint64_t count) {
    std::uint64_t sum = 0;
    const double ns = ns_each(count, [&] {
      const CacheLine* block = &memory_[at_];
      at_ = block->next;
      for (std::size_t i = 1; i < lines_; ++i) sum += block[i].rest[0];
      at_ += sum;  // all of it, before the next; the sum is zero
    });
    sink = sink + sum;
    return ns;
  }

 private:
  const std::size_t lines_;
  std::vector<CacheLine> memory_;
  std::uint64_t at_ = 0;
};

double at_rank(std::vector<double> values, double fraction) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(static_cast<double>(values.size() - 1) * fraction)];
}

// One way of a block of lines between two threads.
template <std::size_t kLines>
double transfer_ns() {
  constexpr unsigned kBursts = 301;
  return median_of_sorted(line_transfers_ns<kLines>(kBursts));
}

double wake_ns() {
  constexpr std::uint64_t kRounds = 2000;
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t turn = 0;
  const auto take_turns = [&](std::uint64_t mine) {
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return turn % 2 == mine; });
      ++turn;
      changed.notify_one();
    }
  };
  std::thread other([&] { take_turns(1); });
  const std::uint64_t start = emu::ticks();
  take_turns(0);
  other.join();
  return emu::nanoseconds_from_ticks(emu::ticks() - start) / (2.0 * kRounds);
}

class Calibration {
 public:
  explicit Calibration(const workloads::SystemOptions& options)
      : hardware_(options), runtime_(options) {
    hardware_.pool.latency = {};
    hardware_.pool_size = 0;
    runtime_.pool_size = kRuntimePool;
  }

  void measure_all() {
    measure_memory();
    measure_instructions();
    measure_flushes();
    add("transfer", transfer_ns<1>());
    add("transfer_block_of_4", transfer_ns<4>());
    add("wake", wake_ns());
    for (const RuntimeMicro& row : run_runtime_micros(runtime_.path, runtime_.pool, 50'000)) {
      add(row.name, row.ns, runtime_);
      if (row.lines > 0) add(row.name + "_lines", row.lines, runtime_);
    }
  }

  [[nodiscard]] std::vector<MicroRow> rows() const {
    std::vector<MicroRow> rows;
    for (const auto& [name, series] : measured_) {
      const bool lines = name.ends_with("_lines");
      rows.push_back(
          {name, at_rank(series.values, 0.25), lines ? "lines" : "ns", "", series.options});
    }
    return rows;
  }

 private:
  struct Series {
    std::vector<double> values;
    workloads::SystemOptions options;
  };

  void add(const std::string& name, double value, const workloads::SystemOptions& with) {
    Series& series = measured_[name];
    series.values.push_back(value);
    series.options = with;
  }
  void add(const std::string& name, double value) { add(name, value, hardware_); }

  void measure_memory() {
    Chase first(std::size_t{16} << 10, 1);
    Chase second(std::size_t{768} << 10, 1);
    for (Chase* chase : {&first, &second}) chase->ns_per_block(100'000);
    add("hit", first.ns_per_block(1'000'000));
    add("near", second.ns_per_block(300'000));
    for (const std::size_t mib : kChaseMiB) {
      const std::string name = "chase_" + std::to_string(mib);
      measure_chase(name, mib << 20, 1);
      if (mib == *std::begin(kChaseMiB) || mib == *std::rbegin(kChaseMiB)) {
        measure_chase(name + "_by_4", mib << 20, 4);
      }
    }
  }

  void measure_chase(const std::string& name, std::size_t bytes, std::size_t lines) {
    Chase chase(bytes, lines);
    chase.ns_per_block(200'000 / lines);
    add(name, chase.ns_per_block(200'000 / lines));
  }

  void measure_instructions() {
    std::atomic<std::uint64_t> word{0};
    // relaxed: only the instruction matters.
    add("exchange", ns_each(300'000, [&] { word.fetch_add(1, std::memory_order_relaxed); }));
    add("clock", ns_each(300'000, [] { sink = sink + emu::ticks(); }));
    add("pause", ns_each(100'000, [] { _mm_pause(); }));
    add("yield", ns_each(20'000, [] { ::sched_yield(); }));
    std::mutex mutex;
    add("mutex", ns_each(300'000, [&] { const std::lock_guard lock(mutex); }));
    std::vector<CacheLine> from(8), to(8);
    const double copied = ns_each(300'000, [&] {
      std::memcpy(to.data(), from.data(), to.size() * base::kCacheLine);
      asm volatile("" ::"r"(to.data()) : "memory");
    });
    add("copy_line", copied / static_cast<double>(to.size()));
    workloads::WorkloadSpec spec;
    spec.kind = workloads::WorkloadKind::hashtable;
    const workloads::Zipf zipf(spec.entries, spec.zipf);
    workloads::OperationStream stream(spec, zipf, 0, 1 << 16);
    add("operation", ns_each(300'000, [&] { sink = sink + stream.next().key; }));
  }

  void measure_flushes() {
    for (const unsigned lines : {1U, 2U, 4U, 8U, 16U}) {
      add("flush_" + std::to_string(lines), measure_floor(hardware_, lines, 0.05).ns_per_write);
    }
  }

  workloads::SystemOptions hardware_;  // without latency, and without a pool
  workloads::SystemOptions runtime_;
  std::map<std::string, Series> measured_;
};

}  // namespace

std::vector<MicroRow> measure_costs(const workloads::SystemOptions& options, unsigned repeat) {
  Calibration calibration(options);
  for (unsigned r = 0; r < repeat; ++r) calibration.measure_all();
  return calibration.rows();
}

}  // namespace sp3::tools

// The life of a worker: connect, warm up, meet the others at the start, measure, drain.
//
// The phase is one shared word that workers only read while they run. With a time limit the calling
// thread sleeps and advances it; with a number of operations each worker counts for itself and the
// phase only serves to stop everyone early when one fails.
#include "workloads/runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "emu/clock.h"
#include "emu/threads.h"

namespace sp3::workloads {

void RunOptions::validate() const {
  if (threads < 1 || threads > kMostThreads) {
    throw std::invalid_argument(
        fmt::format("threads: wanted 1 to {}, found {}", kMostThreads, threads));
  }
  if (operations == 0 && !(seconds > 0 && seconds <= kMostSeconds)) {
    throw std::invalid_argument(
        fmt::format("seconds: wanted more than 0, up to {}; found {}", kMostSeconds, seconds));
  }
  if (!(warmup_seconds >= 0 && warmup_seconds <= kMostSeconds)) {
    throw std::invalid_argument(
        fmt::format("warmup: wanted 0 to {} seconds, found {}", kMostSeconds, warmup_seconds));
  }
}

double RunResult::throughput() const {
  return seconds > 0 ? static_cast<double>(operations) / seconds : 0;
}

double RunResult::new_orders_per_s() const {
  // Nothing else of tpcc misses.
  return seconds > 0 && new_orders > 0 ? static_cast<double>(new_orders - misses) / seconds : 0;
}

namespace {
double per(std::uint64_t count, std::uint64_t transactions) {
  return transactions == 0 ? 0 : static_cast<double>(count) / static_cast<double>(transactions);
}
}  // namespace

double RunResult::abort_ratio() const { return per(counters.aborts, counters.commits); }
double RunResult::fences_per_tx() const { return per(counters.fences, counters.writing_commits); }
double RunResult::lines_per_tx() const { return per(counters.lines, counters.writing_commits); }

double RunResult::latency_ns(double fraction) const {
  return emu::nanoseconds_from_ticks(latency_ticks.percentile(fraction));
}
double RunResult::longest_ns() const { return emu::nanoseconds_from_ticks(latency_ticks.max()); }
double RunResult::slower_per_s(double nanoseconds) const {
  const std::uint64_t above = latency_ticks.count_above(emu::ticks_from_nanoseconds(nanoseconds));
  return static_cast<double>(above) / seconds;
}

namespace {

enum class Phase : int { warm_up, measure, stop };

// std::barrier on the seam's threads, which may be virtual cores.
class Barrier {
 public:
  explicit Barrier(std::size_t parties) : parties_(parties) {}
  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    if (++arrived_ == parties_) {
      arrived_ = 0;
      ++round_;
      all_here_.notify_all();
      return;
    }
    all_here_.wait(lock, [this, round = round_] { return open_ || round_ != round; });
  }
  // Nobody waits here any more: some will never come.
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    all_here_.notify_all();
  }

 private:
  const std::size_t parties_;
  emu::Mutex mutex_;  // guards all below
  bool open_ = false;
  emu::ConditionVariable all_here_;
  std::size_t arrived_ = 0;
  std::uint64_t round_ = 0;
};

class Run {
 public:
  Run(System& system, const WorkloadSpec& spec, const Zipf& zipf, const RunOptions& options)
      : system_(system), spec_(spec), zipf_(zipf), options_(options), start_(options.threads + 1) {
    for (unsigned i = 0; i < options.threads; ++i) workers_.push_back(std::make_unique<Worker>());
    for (const auto& worker : workers_) worker->client = system.connect();
  }

  RunResult execute() {
    BackgroundCounters before;
    try {
      start_workers();
      before = conduct();
    } catch (...) {
      fail();
      start_.open();
    }
    for (const auto& worker : workers_) {
      if (worker->thread.joinable()) worker->thread.join();
    }
    std::vector<ProbeReading> probed;
    for (Probe* const probe : probing_) attempt([&] { probed.push_back(probe->stop()); });
    if (failure_) std::rethrow_exception(failure_);
    RunResult result = collect(before);
    result.clocks_agree = emu::clock_is_synchronised();
    result.probed = std::move(probed);
    if (result.operations == 0) {
      throw std::runtime_error(fmt::format(
          "no transaction ran within {} seconds: the run is too short", options_.seconds));
    }
    return result;
  }

 private:
  struct alignas(64) Worker {
    std::unique_ptr<Client> client;
    emu::Thread thread;
    Histogram latency;
    ClientCounters counters;
    std::uint64_t operations = 0;
    std::uint64_t misses = 0;
    std::uint64_t new_orders = 0;
    std::uint64_t started = 0;  // ticks
    std::uint64_t ended = 0;
  };

  void start_workers() {
    for (unsigned i = 0; i < options_.threads; ++i) {
      try {
        workers_[i]->thread = emu::Thread([this, i] { work(i); });
      } catch (const std::system_error& error) {
        throw thread_not_started(i, options_.threads, error);
      }
    }
  }

  // The calling thread's part, up to the end of the run. Returns what was in the background before.
  BackgroundCounters conduct() {
    start_.arrive_and_wait();  // everyone is connected and running
    if (options_.operations == 0) {
      sleep(options_.warmup_seconds);
      // Not a store: a worker may have failed and said stop.
      Phase expected = Phase::warm_up;
      phase_.compare_exchange_strong(expected, Phase::measure, std::memory_order_relaxed);
    }
    start_.arrive_and_wait();  // everyone is warm
    const BackgroundCounters before = system_.background();
    for (Probe* const probe : options_.probes) {
      probe->start();
      probing_.push_back(probe);
    }
    start_.arrive_and_wait();  // the common start
    if (options_.operations == 0) {
      sleep(options_.seconds);
      phase_.store(Phase::stop, std::memory_order_relaxed);
    }
    return before;
  }

  // Or until a worker fails.
  void sleep(double seconds) {
    std::unique_lock lock(mutex_);
    failed_.wait_for(lock, std::chrono::duration<double>(seconds),
                     [this] { return failure_ != nullptr; });
  }

  // relaxed: a worker may run an operation more or less; the barriers order everything that is
  // read.
  [[nodiscard]] Phase phase() const { return phase_.load(std::memory_order_relaxed); }

  void fail() {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    phase_.store(Phase::stop, std::memory_order_relaxed);
    failed_.notify_all();
  }

  // What thread `index` of `threads` does of `total` operations.
  [[nodiscard]] std::uint64_t share(std::uint64_t total, unsigned index) const {
    return total / options_.threads + (index < total % options_.threads ? 1 : 0);
  }

  // Who fails goes on all the same: to the barriers, to the next probe. The first failure is kept.
  template <class F>
  void attempt(F&& part) {
    try {
      part();
    } catch (...) {
      fail();
    }
  }

  void work(unsigned index) {
    Worker& worker = *workers_[index];
    std::optional<std::uint64_t> operations;
    if (options_.operations != 0) operations = share(options_.operations, index);
    const std::size_t draws =
        OperationStream::draws_for(spec_.entries, options_.threads, operations);
    std::optional<OperationStream> stream;
    attempt([&] { stream.emplace(spec_, zipf_, index, draws); });
    start_.arrive_and_wait();
    if (stream) attempt([&] { warm_up(worker, *stream, index); });
    start_.arrive_and_wait();
    start_.arrive_and_wait();
    if (stream) attempt([&] { measure(worker, *stream, index); });
  }

  void warm_up(Worker& worker, OperationStream& stream, unsigned index) {
    if (options_.operations == 0) {
      while (phase() == Phase::warm_up) worker.client->execute(stream.next());
    } else {
      for (std::uint64_t n = share(options_.operations / 10, index); n > 0; --n) {
        if (phase() == Phase::stop) break;
        worker.client->execute(stream.next());
      }
    }
    worker.client->drain();
  }

  void measure(Worker& worker, OperationStream& stream, unsigned index) {
    const ClientCounters before = worker.client->counters();
    const std::uint64_t new_orders_before = stream.new_orders();
    const std::uint64_t limit =
        options_.operations == 0 ? ~std::uint64_t{0} : share(options_.operations, index);
    worker.started = emu::ticks();
    if (options_.latency) {
      operate<true>(worker, stream, limit);
    } else {
      operate<false>(worker, stream, limit);
    }
    worker.client->drain();
    worker.ended = emu::ticks();
    worker.counters = worker.client->counters();
    worker.counters -= before;
    worker.new_orders = stream.new_orders() - new_orders_before;
  }

  // The hot loop. One reading of the clock ends one operation and starts the next, so a latency
  // includes drawing the operation (some ten nanoseconds).
  template <bool kLatency>
  void operate(Worker& worker, OperationStream& stream, std::uint64_t limit) {
    Client& client = *worker.client;
    std::uint64_t done = 0;
    std::uint64_t misses = 0;
    [[maybe_unused]] std::uint64_t last = emu::ticks();
    for (; done < limit && phase() != Phase::stop; ++done) {
      if (!client.execute(stream.next())) ++misses;
      if constexpr (kLatency) {
        const std::uint64_t now = emu::ticks();
        worker.latency.record(now - last);
        last = now;
      }
    }
    worker.operations = done;
    worker.misses = misses;
  }

  RunResult collect(const BackgroundCounters& before) {
    RunResult result;
    std::uint64_t started = ~std::uint64_t{0};
    std::uint64_t ended = 0;
    for (const auto& worker : workers_) {
      started = std::min(started, worker->started);
      ended = std::max(ended, worker->ended);
      result.operations += worker->operations;
      result.misses += worker->misses;
      result.new_orders += worker->new_orders;
      result.counters += worker->counters;
      result.latency_ticks.merge(worker->latency);
    }
    result.seconds = emu::nanoseconds_from_ticks(ended - started) * 1e-9;
    result.background = system_.background();
    result.background -= before;
    return result;
  }

  System& system_;
  const WorkloadSpec& spec_;
  const Zipf& zipf_;
  const RunOptions& options_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Probe*> probing_;  // those that have started
  Barrier start_;
  alignas(64) std::atomic<Phase> phase_{Phase::warm_up};
  alignas(64) emu::Mutex mutex_;
  emu::ConditionVariable failed_;
  std::exception_ptr failure_;  // guarded by mutex_ while workers run
};

}  // namespace

std::runtime_error thread_not_started(unsigned started, unsigned wanted,
                                      const std::system_error& why) {
  return std::runtime_error(
      fmt::format("thread {} of {} could not be started: {}", started + 1, wanted, why.what()));
}

RunResult run_workload(System& system, const WorkloadSpec& spec, const Zipf& zipf,
                       const RunOptions& options) {
  options.validate();
  return Run(system, spec, zipf, options).execute();
}

}  // namespace sp3::workloads

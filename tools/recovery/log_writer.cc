// The writing process is this program again, not a fork of it, which would have inherited the state
// of threads that it does not have.
#include "tools/recovery/log_writer.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/scope_exit.h"
#include "tools/progress_bar.h"
#include "tools/start_program.h"
#include "tools/telling_program.h"
#include "workloads/pool_remover.h"
#include "workloads/zipf.h"

namespace sp3::tools::recovery_bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class Writer {
 public:
  explicit Writer(const LogPlan& plan)
      : plan_(plan),
        zipf_(plan.spec.entries, plan.spec.zipf),
        system_(workloads::make_system("sp3")) {
    workloads::SystemOptions options = plan.system;
    options.pool_size = plan.pool_size();
    options.pool.geometry.log_size = plan.log_size();
    options.pool.geometry.segment_size = static_cast<std::uint32_t>(plan.segment_size());
    options.pool.checkpoint = {.interval_ms = 0, .log_percent = 100, .background = false};
    system_->create(plan.spec, options);
    system_->populate();
    for (unsigned i = 0; i < plan.writers; ++i) {
      clients_.push_back(system_->connect());
      streams_.emplace_back(plan.spec, zipf_, i);
    }
  }

  // Returns while the threads go on, if it is time that ended it.
  WrittenLog run() {
    const std::uint64_t checkpoints = system_->background().checkpoints;
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> threads;
    const base::ScopeExit leave_them([&threads] {
      for (std::thread& thread : threads) thread.detach();
    });
    try {
      for (unsigned i = 0; i < plan_.writers; ++i) threads.emplace_back([this, i] { write(i); });
    } catch (const std::system_error& error) {
      throw std::runtime_error(
          fmt::format("thread {} of {} that write the log cannot be started: {}",
                      threads.size() + 1, plan_.writers, error.what()));
    }
    wait_for_the_end(start);

    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw std::runtime_error(failure_);
    if (bytes_.load(std::memory_order_relaxed) == 0) {
      throw std::runtime_error(nothing_written(operations_.load(std::memory_order_relaxed)));
    }
    if (system_->background().checkpoints != checkpoints) {
      throw std::runtime_error("a session found the log full and made a checkpoint");
    }
    const std::chrono::duration<double> seconds = Clock::now() - start;
    // relaxed: a batch of transactions more or less.
    return {seconds.count(), bytes_.load(std::memory_order_relaxed),
            operations_.load(std::memory_order_relaxed)};
  }

 private:
  static constexpr std::uint64_t kPatience = 1'000'000;  // transactions without a byte of log

  [[nodiscard]] std::string nothing_written(std::uint64_t operations) const {
    if (operations == 0) {
      return fmt::format("within {} ms the workload wrote nothing to the log", plan_.milliseconds);
    }
    const std::uint64_t bytes = bytes_.load(std::memory_order_relaxed);
    const std::string before = bytes == 0 ? "" : fmt::format(", which has {} bytes", bytes);
    return fmt::format("{} transactions of this workload wrote nothing to the log{}", operations,
                       before);
  }

  // Where time ends a log, it may have stopped growing before.
  [[nodiscard]] bool gives_up(std::uint64_t idle) const {
    return idle >= kPatience &&
           (plan_.milliseconds == 0 || bytes_.load(std::memory_order_relaxed) == 0);
  }

  // Of the log that a client has taken, at most.
  [[nodiscard]] std::uint64_t taken(const workloads::Client& client) const {
    // In file memory what is flushed together begins with a block of its own.
    constexpr std::uint64_t kBlock = 4096;
    const workloads::ClientCounters counters = client.counters();
    const bool blocks = plan_.system.pool.memory == MemoryKind::file;
    return counters.log_bytes + (blocks ? counters.writing_commits * kBlock : 0);
  }

  void write(unsigned thread) {
    workloads::Client& client = *clients_[thread];
    try {
      workloads::OperationStream& stream = streams_[thread];
      const unsigned batch = plan_.batch();
      std::uint64_t before = taken(client);
      while (bytes_.load(std::memory_order_relaxed) < plan_.most_bytes) {
        for (unsigned i = 0; i < batch; ++i) client.execute(stream.next());
        const std::uint64_t now = taken(client);
        // relaxed: a batch of another thread more or less.
        const std::uint64_t done = operations_.fetch_add(batch, std::memory_order_relaxed);
        if (now != before) {
          bytes_.fetch_add(now - before, std::memory_order_relaxed);
          grew_at_.store(done, std::memory_order_relaxed);
        }
        before = now;
        const std::uint64_t grew_at = grew_at_.load(std::memory_order_relaxed);
        const std::uint64_t idle = done - std::min(done, grew_at);
        if (gives_up(idle)) throw std::runtime_error(nothing_written(idle));
      }
      client.drain();
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      if (failure_.empty()) failure_ = error.what();  // what follows may come of this one
      bytes_.store(plan_.most_bytes, std::memory_order_relaxed);
    }
    done_.fetch_add(1, std::memory_order_release);  // (1)
  }

  void wait_for_the_end(Clock::time_point start) {
    ProgressBar progress;
    for (;;) {
      // (2) acquire: synchronizes with (1), so that a failure is seen.
      if (done_.load(std::memory_order_acquire) == plan_.writers) return;
      const auto passed =
          std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
      if (plan_.milliseconds != 0 && passed >= plan_.milliseconds) return;
      progress.show("writing the log", bytes_.load(std::memory_order_relaxed), plan_.most_bytes);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const LogPlan& plan_;
  workloads::Zipf zipf_;
  std::unique_ptr<workloads::System> system_;
  std::vector<std::unique_ptr<workloads::Client>> clients_;
  std::vector<workloads::OperationStream> streams_;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::uint64_t> grew_at_{0};  // operations_ when bytes_ last did
  std::atomic<unsigned> done_{0};
  std::mutex mutex_;
  std::string failure_;
};

// What the child says: a WrittenLog, or else one line that says why there is none.
struct Report {
  bool written = false;
  WrittenLog log;
  char failure[512] = {};
};

bool read_whole(int pipe, Report& report) {
  auto* at = reinterpret_cast<char*>(&report);
  for (std::size_t done = 0; done < sizeof report;) {
    const ssize_t n = ::read(pipe, at + done, sizeof report - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

std::uint64_t LogPlan::segment_size() const {
  return std::clamp<std::uint64_t>(std::bit_floor(most_bytes / 64), 64 << 10, kMiB);
}

std::uint64_t LogPlan::largest_record() const {
  // Beside entries: nodes that split, or the rows of an order of tpcc.
  constexpr std::uint64_t kStructure = 32 << 10;
  if (spec.kind != workloads::WorkloadKind::ranges)
    return kStructure + 2 * std::uint64_t{spec.entry_size};
  // What a range changes of a chunk says where that is. (Chunks of 0 bytes are refused later.)
  constexpr std::uint64_t kHeaders = 64;
  const std::uint64_t bytes = spec.most_range() * spec.entry_size;
  const std::uint64_t chunks = bytes / std::max(spec.range_chunk, 1U) + 2;
  return kStructure + bytes + chunks * kHeaders;
}

unsigned LogPlan::batch() const {
  constexpr std::uint64_t kMost = 64;
  return static_cast<unsigned>(
      std::clamp<std::uint64_t>(segment_size() / largest_record(), 1, kMost));
}

std::uint64_t LogPlan::log_size() const {
  const std::uint64_t segment = segment_size();
  const std::uint64_t record = largest_record();
  // Who looks only after a batch writes so much more.
  const std::uint64_t bytes = most_bytes + writers * std::max(segment, record);
  // The end of a segment that a record did not fit into is smaller than the record, which begins
  // the next: of large records, the ends take no more than the records.
  const std::uint64_t ends =
      2 * record >= segment ? bytes : std::max(bytes / 16, bytes / (segment / record - 1));
  // Each writer has a run or two that are not full, and some do not fit between those of others.
  const std::uint64_t segments_of_run = record / segment + 1;
  const std::uint64_t slack = (2 * std::uint64_t{writers} + 8) * segments_of_run * segment;
  return (bytes + ends + slack + kMiB - 1) / kMiB * kMiB;
}

std::uint64_t LogPlan::pool_size() const { return log_size() + workloads::default_pool_size(spec); }

void live_and_die(const LogPlan& plan, int descriptor) {
  Report report;
  try {
    // Never destroyed: destroying it would close the pool.
    Writer& writer = *new Writer(plan);
    report.log = writer.run();
    report.written = true;
  } catch (const std::exception& error) {
    std::strncpy(report.failure, error.what(), sizeof report.failure - 1);
  }
  // Smaller than PIPE_BUF, so it is written whole.
  static_assert(sizeof report <= 4096);
  if (::write(descriptor, &report, sizeof report) != sizeof report) ::_exit(1);
  ::kill(::getpid(), SIGKILL);
  ::_exit(1);
}

WrittenLog write_log(const std::vector<std::string>& arguments) {
  constexpr int kDescriptor = 3;
  std::vector<std::string> all = arguments;
  all.insert(all.end(), {"--descriptor", fmt::to_string(kDescriptor)});
  TellingProgram child;
  const workloads::PoolMaker maker([&] {
    // Interrupted from the terminal with us, it would be a failure to tell of.
    child = start_telling(kThisProgram, all, kDescriptor, {}, ProcessGroup::its_own);
    return child.pid;
  });
  Report report;
  const bool told = read_whole(child.pipe.get(), report);
  const int status = wait_for(child.pid);
  if (!told) {
    throw std::runtime_error(
        fmt::format("the process that writes the log {}", how_it_ended(status)));
  }
  if (!report.written) throw std::runtime_error(report.failure);
  return report.log;
}

}  // namespace sp3::tools::recovery_bench

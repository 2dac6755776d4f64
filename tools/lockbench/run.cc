// The loops that lockbench measures, one instance for each lock.
//
// A range that cannot be had is tried again in W1 (whose only range it is), and drawn anew in W2:
// to wait for one while holding others could deadlock, and most of the locks compared only try.
// There are ranges enough that one is free for whoever draws (lockbench_command.cc sees to it), so
// that nobody lets go of a batch half-way. A lock that takes batches is asked for the batch first.
#include "tools/lockbench/run.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include <malloc.h>

#include <fmt/format.h>

#include "base/align.h"
#include "emu/clock.h"
#include "workloads/range_locks/baselines.h"
#include "workloads/range_locks/blocks.h"
#include "workloads/range_locks/combiner.h"
#include "workloads/range_locks/list.h"
#include "workloads/range_locks/published.h"
#include "workloads/range_locks/spin_skiplist.h"
#include "workloads/range_locks/tree.h"
#include "workloads/rng.h"
#include "workloads/runner.h"

namespace sp3::tools {

namespace {

using workloads::Rng;

constexpr std::uint64_t kRangeBytes = 1024;
constexpr std::uint64_t kArrayBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kStride = 4 * kRangeBytes;  // of held ranges: a quarter of the space
constexpr unsigned kBatch = kLockBatch;
constexpr unsigned kTimedOf = 16;

template <class Lock>
constexpr bool kHasShared = requires(Lock& lock, RangeOwner& owner) {
  lock.try_lock_shared(owner, 0, 1);
};
template <class Lock>
using LockToken = decltype(std::declval<Lock&>().try_lock(std::declval<RangeOwner&>(), 0, 1));

struct alignas(base::kCacheLine) Thread {
  std::uint64_t pairs = 0;
  std::uint64_t conflicts = 0;
  workloads::Histogram latency;
  const std::atomic<bool>* stop = nullptr;  // set when the run is over
};

// Locks a range, trying until it is there.
template <bool shared, class Lock>
auto lock_range(Lock& lock, RangeOwner& owner, std::uint64_t begin, Thread& mine) {
  const auto attempt = [&] {
    if constexpr (shared) {
      return lock.try_lock_shared(owner, begin, begin + kRangeBytes);
    } else {
      return lock.try_lock(owner, begin, begin + kRangeBytes);
    }
  };
  auto token = attempt();
  for (emu::Spin spin; !token; spin.pause()) {
    ++mine.conflicts;
    token = attempt();
  }
  return token;
}

template <class Lock>
void one_pair(Lock& lock, RangeOwner& owner, const LockRun& run, Rng& rng, Thread& mine) {
  std::byte* const array = lockbench_array();
  const std::uint64_t begin = rng.below(run.slots) * kRangeBytes;
  if constexpr (kHasShared<Lock>) {
    if (run.writes < 100 && rng.below(100) >= run.writes) {
      auto token = lock_range<true>(lock, owner, begin, mine);
      std::byte copy[kRangeBytes];
      std::memcpy(copy, array + begin, kRangeBytes);
      asm volatile("" : : "r"(copy) : "memory");
      lock.unlock(std::move(token));
      ++mine.pairs;
      return;
    }
  }
  auto token = lock_range<false>(lock, owner, begin, mine);
  std::memset(array + begin, static_cast<int>(mine.pairs & 0xff), kRangeBytes);
  lock.unlock(std::move(token));
  ++mine.pairs;
}

// Thrown where a run is over before it has all of a batch: the loops that are measured do not ask.
struct Over {};

template <class Lock>
constexpr bool kHasBatch = requires(Lock& lock, RangeOwner& owner, std::span<const Range> ranges,
                                    std::span<RangeHandle> handles) {
  lock.try_lock_all(owner, ranges, handles);
};

// One that is not in the batch yet: a lock that excludes nobody would give it twice.
Range draw_another(const LockRun& run, Rng& rng, std::span<const Range> batch) {
  for (;;) {
    const std::uint64_t begin = rng.below(run.slots) * kRangeBytes;
    const Range range{begin, begin + kRangeBytes};
    if (std::ranges::find(batch, range) == batch.end()) return range;
  }
}

// One after the other; another is drawn for each that cannot be had.
template <class Lock>
void lock_one_by_one(Lock& lock, RangeOwner& owner, const LockRun& run, Rng& rng, Thread& mine,
                     std::span<Range> ranges, std::span<LockToken<Lock>> tokens) {
  for (unsigned i = 0; i < kBatch; ++i) {
    for (;;) {
      tokens[i] = lock.try_lock(owner, ranges[i].begin, ranges[i].end);
      if (tokens[i]) break;
      ++mine.conflicts;
      if (mine.stop->load(std::memory_order_relaxed)) {
        for (unsigned held = 0; held < i; ++held) lock.unlock(std::move(tokens[held]));
        throw Over();
      }
      ranges[i] = draw_another(run, rng, ranges);
    }
  }
}

template <class Lock>
void one_batch(Lock& lock, RangeOwner& owner, const LockRun& run, Rng& rng, Thread& mine) {
  std::byte* const array = lockbench_array();
  std::array<LockToken<Lock>, kBatch> tokens;
  std::array<Range, kBatch> ranges;
  for (unsigned i = 0; i < kBatch; ++i) {
    ranges[i] = draw_another(run, rng, std::span(ranges).first(i));
  }
  if constexpr (kHasBatch<Lock>) {
    if (!lock.try_lock_all(owner, ranges, tokens)) {
      ++mine.conflicts;
      lock_one_by_one(lock, owner, run, rng, mine, ranges, std::span(tokens));
    }
  } else {
    lock_one_by_one(lock, owner, run, rng, mine, ranges, std::span(tokens));
  }
  for (const Range& range : ranges) {
    std::memset(array + range.begin, static_cast<int>(mine.pairs & 0xff), kRangeBytes);
  }
  if constexpr (kHasBatch<Lock>) {
    lock.unlock_all(std::span(tokens));
  } else {
    for (auto& token : tokens) lock.unlock(std::move(token));
  }
  mine.pairs += kBatch;
}

// Lock and unlock one of the gaps between the held ranges. Always part of the loop that is counted,
// so that no lock's pair saves registers that another's, or that of `none`, does not: how many a
// function saves changes with what else is compiled.
template <class Lock>
[[gnu::always_inline]] inline void one_bare_pair(Lock& lock, RangeOwner& owner, const LockRun& run,
                                                 Rng& rng, Thread& mine) {
  const std::uint64_t begin = rng.below(run.slots) * kStride;
  asm volatile("" : : "r"(begin));  // drawn for the lock `none` as well, which does not look at it
  lock.unlock(lock.try_lock(owner, begin, begin + kRangeBytes));
  ++mine.pairs;
}

template <class Lock>
void step(Lock& lock, RangeOwner& owner, const LockRun& run, Rng& rng, Thread& mine) {
  switch (run.workload) {
    case LockWorkload::w2:
      return one_batch(lock, owner, run, rng, mine);
    case LockWorkload::uncontended:
      return one_bare_pair(lock, owner, run, rng, mine);
    default:
      return one_pair(lock, owner, run, rng, mine);
  }
}

std::uint64_t allocated_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

// The ranges that others hold: every fourth KiB. In random order, but for the list, to which that
// would be quadratic.
template <class Lock>
auto hold_ranges(Lock& lock, RangeOwner& owner, const LockRun& run) {
  std::vector<std::uint64_t> begins(run.held);
  for (std::uint64_t i = 0; i < run.held; ++i) {
    begins[run.held - 1 - i] = i * kStride + 2 * kRangeBytes;
  }
  if constexpr (!std::is_same_v<Lock, workloads::ListLock>) {
    std::shuffle(begins.begin(), begins.end(), Rng(run.seed, 1));
  }
  std::vector<decltype(lock.try_lock(owner, 0, 1))> tokens;
  tokens.reserve(run.held);
  for (const std::uint64_t begin : begins) {
    tokens.push_back(lock.try_lock(owner, begin, begin + kRangeBytes));
    if (tokens.back()) continue;
    if constexpr (std::is_same_v<Lock, workloads::BareLock>) {
      throw CannotHold(fmt::format("{} cannot hold {} ranges in {} buckets", run.lock, run.held,
                                   run.options.buckets));
    }
    throw std::runtime_error(run.lock + ": a free range could not be locked");
  }
  return tokens;
}

// Each range once, so that nothing is counted that happens once only. Not for the list: each pair
// of it walks all held ranges, and nothing in it is different the first time.
template <class Lock>
void warm_up(Lock& lock, RangeOwner& owner, const LockRun& run) {
  if constexpr (!std::is_same_v<Lock, workloads::ListLock>) {
    for (std::uint64_t slot = 0; slot < run.slots; ++slot) {
      lock.unlock(lock.try_lock(owner, slot * kStride, slot * kStride + kRangeBytes));
    }
  }
}

// Where `lockbench --instructions` counts; named there.
template <class Lock>
[[gnu::noinline]] void run_pairs(Lock& lock, RangeOwner& owner, const LockRun& run, Rng& rng,
                                 Thread& mine) {
  if (run.workload == LockWorkload::uncontended) {
    while (mine.pairs < run.pairs) one_bare_pair(lock, owner, run, rng, mine);
    return;
  }
  while (mine.pairs < run.pairs) step(lock, owner, run, rng, mine);
}

template <class Lock>
void run_for_time(Lock& lock, RangeOwner& owner, const LockRun& run, Rng& rng, Thread& mine) {
  const unsigned ranges = run.workload == LockWorkload::w2 ? kBatch : 1;  // of each step
  while (!mine.stop->load(std::memory_order_relaxed)) {
    const std::uint64_t start = emu::ticks();
    step(lock, owner, run, rng, mine);
    mine.latency.record((emu::ticks() - start) / ranges);
    for (unsigned i = 1; i < kTimedOf; ++i) step(lock, owner, run, rng, mine);
  }
}

// The threads of a run: they get ready, start together, and end when each has done its pairs, when
// the time is over, or when one fails. One that cannot be started counts as one that failed.
class Contest {
 public:
  // Each thread calls work(index, start): it gets ready, calls start(), which returns when all may
  // begin, and goes on until it is done or what start() returned is true. Returns the seconds from
  // the common start to the last one's end. Errors: the first of a thread.
  template <class Work>
  double run(const LockRun& run, const Work& work) {
    std::vector<std::jthread> threads;
    threads.reserve(run.threads);
    try {
      for (unsigned i = 0; i < run.threads; ++i) {
        threads.emplace_back([this, &work, i] { run_thread(work, i); });
      }
    } catch (const std::system_error& error) {
      fail(std::make_exception_ptr(workloads::thread_not_started(
          static_cast<unsigned>(threads.size()), run.threads, error)));
    } catch (...) {
      fail(std::current_exception());
    }
    while (ready_.load(std::memory_order_acquire) < run.threads &&
           !stop_.load(std::memory_order_relaxed)) {
      std::this_thread::yield();
    }
    const std::uint64_t start = emu::ticks();
    go_.store(true, std::memory_order_release);  // also what was made of stop_, to those who wait
    if (run.pairs == 0) {
      std::unique_lock lock(mutex_);
      failed_.wait_for(lock, std::chrono::duration<double>(run.seconds),
                       [this] { return failure_ != nullptr; });
      stop_.store(true, std::memory_order_relaxed);
    }
    threads.clear();  // joins
    const std::uint64_t end = emu::ticks();
    if (failure_) std::rethrow_exception(failure_);
    return emu::nanoseconds_from_ticks(end - start) / 1e9;
  }

 private:
  template <class Work>
  void run_thread(const Work& work, unsigned index) {
    try {
      work(index, [this]() -> const std::atomic<bool>& {
        ready_.fetch_add(1, std::memory_order_release);
        while (!go_.load(std::memory_order_acquire)) std::this_thread::yield();
        return stop_;
      });
    } catch (const Over&) {
    } catch (...) {
      fail(std::current_exception());
    }
  }
  void fail(std::exception_ptr why) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(why);
    stop_.store(true, std::memory_order_relaxed);
    failed_.notify_all();
  }

  std::atomic<unsigned> ready_{0};
  std::atomic<bool> go_{false}, stop_{false};
  std::mutex mutex_;
  std::condition_variable failed_;
  std::exception_ptr failure_;  // guarded by mutex_ while threads run
};

template <class Lock>
LockResult measure(Lock& lock, const LockRun& run, RangeLockDomain& domain,
                   std::uint64_t bytes_before) {
  RangeOwner holder(0, domain);
  auto tokens = hold_ranges(lock, holder, run);
  LockResult result;
  if (run.held != 0) {
    // Below what the lock holds by what it got out of memory that was free, but counted, before.
    const std::uint64_t others = bytes_before + run.held * sizeof(tokens.front());
    const std::uint64_t bytes = allocated_bytes();
    result.memory_per_held_bytes =
        static_cast<double>(bytes - std::min(bytes, others)) / static_cast<double>(run.held);
  }

  std::vector<Thread> threads(run.threads);
  result.seconds = Contest().run(run, [&](unsigned index, const auto& start) {
    RangeOwner owner(index + 1, domain);
    Rng rng(run.seed, index + 2);
    Thread& mine = threads[index];
    if (run.pairs != 0 && run.workload == LockWorkload::uncontended) warm_up(lock, owner, run);
    mine.stop = &start();
    if (*mine.stop) return;
    if (run.pairs != 0) {
      run_pairs(lock, owner, run, rng, mine);
    } else {
      run_for_time(lock, owner, run, rng, mine);
    }
  });

  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  for (const Thread& thread : threads) {
    result.pairs += thread.pairs;
    result.conflicts += thread.conflicts;
    result.latency_ticks.merge(thread.latency);
    least = std::min(least, thread.pairs);
    most = std::max(most, thread.pairs);
  }
  result.fairness =
      static_cast<double>(most) / static_cast<double>(std::max<std::uint64_t>(least, 1));
  for (auto& token : tokens) lock.unlock(std::move(token));
  return result;
}

struct Entry {
  std::string name;
  bool shared, buckets, towers;
  LockResult (*run)(const LockRun& run);
};

// A fresh domain and a fresh lock for each run.
template <class Lock, class Make>
LockResult run_with(const LockRun& run, Make&& make) {
  const std::uint64_t before = allocated_bytes();
  RangeLockDomain domain(run.threads + 2);  // who holds ranges meanwhile, and who looks
  LockRun with_domain = run;
  with_domain.options.domain = &domain;
  const std::unique_ptr<Lock> lock = make(with_domain);
  return measure(*lock, with_domain, domain, before);
}

template <class Lock>
Entry entry(const char* name) {
  constexpr bool kOfBare = std::is_constructible_v<Lock, workloads::RivalSpace, std::size_t>;
  // The grid's own towers are of longer ranges than the benchmark's.
  return {name, kHasShared<Lock>, kOfBare || std::is_same_v<Lock, GridRangeLock>,
          std::is_same_v<Lock, SkiplistRangeLock>, [](const LockRun& run) {
            return run_with<Lock>(run, [](const LockRun& r) {
              if constexpr (std::is_constructible_v<Lock, const RangeLockOptions&>) {
                return std::make_unique<Lock>(r.options);
              } else if constexpr (kOfBare) {
                return std::make_unique<Lock>(workloads::RivalSpace{r.space_bytes(), kRangeBytes},
                                              r.options.buckets);
              } else if constexpr (std::is_constructible_v<Lock, workloads::RivalSpace>) {
                return std::make_unique<Lock>(workloads::RivalSpace{r.space_bytes(), kRangeBytes});
              } else {
                return std::make_unique<Lock>();
              }
            });
          }};
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      entry<workloads::NoLock>("none"),
      entry<workloads::BareLock>("bare"),
      entry<GridRangeLock>("grid"),
      entry<SkiplistRangeLock>("skiplist"),
      entry<workloads::SegmentsLock>("segments"),
      entry<workloads::BitmapLock>("bitmap"),
      entry<workloads::ListLock>("list"),
      entry<workloads::SpinSkiplistLock>("spin_skiplist"),
      entry<workloads::TreeLock>("tree"),
      entry<workloads::CombinerLock>("combiner"),
      entry<workloads::PublishedLock>("published"),
  };
  return all;
}

const Entry& find_entry(const std::string& name) {
  return *std::ranges::find(entries(), name, &Entry::name);
}

}  // namespace

const char* to_string(LockWorkload workload) noexcept {
  switch (workload) {
    case LockWorkload::w1:
      return "W1";
    case LockWorkload::w2:
      return "W2";
    case LockWorkload::uncontended:
      return "uncontended";
    case LockWorkload::height:
      return "height";
    case LockWorkload::shared:
      return "shared";
    case LockWorkload::overlap:
      return "overlap";
  }
  return "?";
}

std::uint64_t LockRun::space_bytes() const {
  return workload == LockWorkload::uncontended ? slots * kStride : kArrayBytes;
}

const std::vector<std::string>& lock_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Entry& each : entries()) all.push_back(each.name);
    return all;
  }();
  return names;
}

bool has_shared_mode(const std::string& lock) { return find_entry(lock).shared; }
bool has_buckets(const std::string& lock) { return find_entry(lock).buckets; }
bool has_towers(const std::string& lock) { return find_entry(lock).towers; }

std::byte* lockbench_array() {
  static const std::unique_ptr<std::byte[]> array = std::make_unique<std::byte[]>(kArrayBytes);
  return array.get();
}

LockResult run_lock(const LockRun& run) { return find_entry(run.lock).run(run); }

}  // namespace sp3::tools

// What both locks share besides the fast path (fast_path.h): spinning and sleeping, batches,
// counters. The locks themselves only try and unlock.
//
// A wait: spin for as long as a short critical section may last, trying again now and then. Then
// enter the queue, and until the range is had: note what blocks us, try once more, sleep. With
// Fairness::fifo an acquisition that conflicts with a waiter does not even try.
//
// A batch that holds a range already waits for held ranges only, never behind a waiter, who may be
// waiting for what the batch holds. Then no batches wait in a circle: let B wait at an address that
// C holds. What C waits for begins at or behind all that C holds, and the address where it is held
// against C is not in what C holds, in the same mode; so it is a higher one. Along a chain of waits
// addresses rise, until somebody holds and does not wait. Nobody is overtaken for it who came
// before the batch: with nothing held yet, it waits behind all who conflict with any of its ranges.
#include <sp3/range_lock.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>

#include "base/assert.h"
#include "base/process.h"
#include "base/scope_exit.h"
#include "emu/spin.h"
#include "rangelock/domain.h"
#include "rangelock/fast_path.h"
#include "rangelock/hook.h"
#include "rangelock/wait_queue.h"

namespace sp3 {

using rangelock::OwnerCore;
using rangelock::WaitQueue;

namespace {

using Clock = BlockingRangeLock::Clock;

// Not behind the end of time, however long the wait.
Clock::time_point after(std::chrono::nanoseconds wait) {
  const Clock::time_point now = Clock::now();
  return wait > Clock::time_point::max() - now ? Clock::time_point::max() : now + wait;
}

std::string describe(const Range& range) { return fmt::format("[{}, {})", range.begin, range.end); }

}  // namespace

namespace rangelock {

void refuse_range(Range range) {
  throw Error(ErrorCode::invalid_range, "not a range",
              {.wanted = "begin < end", .found = describe(range)});
}

void refuse_owner() {
  throw Error(ErrorCode::invalid_argument,
              "a range lock was used with an owner of another domain than its own");
}

void refuse_handle(const BlockingRangeLock* lock) {
  throw Error(ErrorCode::range_not_held, "unlock of a range that is not held",
              {.found = lock == nullptr ? "an empty handle" : "a handle of another lock"});
}

}  // namespace rangelock

// --- domains and owners -------------------------------------------------------------------------

RangeLockDomain::RangeLockDomain(std::size_t owners)
    : core_(std::make_unique<rangelock::Domain>(owners)) {}
RangeLockDomain::~RangeLockDomain() = default;

// noinline, as this_thread(): of several shared libraries of a process that each contain sp3, all
// use one's functions, but what a link-time optimiser inlined would use its own library's domain.
[[gnu::noinline]] RangeLockDomain& RangeLockDomain::process() {
  // Never destroyed: threads that outlive main() may still hold owners.
  static auto* const domain = new RangeLockDomain();
  return *domain;
}

RangeLockDomain::Statistics RangeLockDomain::statistics() const {
  return {core_->node_bytes(), core_->owners()};
}

RangeOwner::RangeOwner(std::uint64_t token, RangeLockDomain& domain)
    : core_(domain.core_->admit(token)) {}

RangeOwner::~RangeOwner() {
  SP3_CHECK(held() == 0);
  core_->domain.dismiss(*core_);
}

namespace {

// The owner of a thread that names none. It ends as a pthread key's value does: after all
// thread_locals, whose destructors may still lock. If the destructor of another key locks later, it
// makes a new one, which the next round of these destructors ends. Of the main thread it stays when
// main() returns, for destructors of statics.
struct DefaultOwner {
  alignas(RangeOwner) std::byte bytes[sizeof(RangeOwner)];
  bool exists;
  base::Process process;  // that made it

  [[nodiscard]] RangeOwner& owner() noexcept {
    return *std::launder(reinterpret_cast<RangeOwner*>(bytes));
  }

  [[gnu::noinline]] void make() {
    static const ::pthread_key_t key = make_key();
    RangeOwner* const made = ::new (bytes) RangeOwner();
    if (::pthread_setspecific(key, this) != 0) {
      std::destroy_at(made);
      throw std::bad_alloc();
    }
    process = base::Process::current();
    exists = true;
  }

  static ::pthread_key_t make_key() {
    ::pthread_key_t key = 0;
    const int error = ::pthread_key_create(&key, &DefaultOwner::end);
    if (error == EAGAIN) {
      throw Error(ErrorCode::invalid_argument, "a thread's own owner of ranges",
                  {.wanted = "one more thread-specific key (pthread_key_create)",
                   .found = "none left of " + std::to_string(PTHREAD_KEYS_MAX)});
    }
    if (error != 0) throw std::bad_alloc();
    return key;
  }

  // What still holds ranges stays, and so do they, as with a std::mutex. A child made by fork
  // leaves its parent's: another thread may have held the domain's mutex.
  static void end(void* of_this_thread) {
    auto& self = *static_cast<DefaultOwner*>(of_this_thread);
    if (self.owner().held() != 0 || !self.process.is_this()) return;
    self.exists = false;
    std::destroy_at(&self.owner());
  }
};
constinit thread_local DefaultOwner default_owner{};

}  // namespace

[[gnu::noinline]] RangeOwner& RangeOwner::this_thread() {
  if (!default_owner.exists) [[unlikely]]
    default_owner.make();
  return default_owner.owner();
}

// relaxed: the token is a label, see RangeHolder.
std::uint64_t RangeOwner::token() const noexcept {
  return core_->token.load(std::memory_order_relaxed);
}
void RangeOwner::set_token(std::uint64_t token) noexcept {
  core_->token.store(token, std::memory_order_relaxed);
}
std::size_t RangeOwner::held() const noexcept { return core_->held(); }

RangeOwner::Counters RangeOwner::counters() const noexcept {
  return {core_->acquired.get(), core_->contended.get(), core_->waited_ns.get()};
}

// --- acquiring ----------------------------------------------------------------------------------

// How long a wait may last.
struct BlockingRangeLock::Patience {
  const Clock::time_point* deadline;  // nullptr: for ever
  const std::stop_token& stop;

  [[nodiscard]] bool is_over() const {
    return stop.stop_requested() || (deadline != nullptr && Clock::now() >= *deadline);
  }
};

BlockingRangeLock::BlockingRangeLock(const RangeLockOptions& options)
    : domain_(
          (options.domain != nullptr ? *options.domain : RangeLockDomain::process()).core_.get()),
      queue_(std::make_unique<WaitQueue>()),
      fifo_(options.fairness == Fairness::fifo),
      nested_wait_(options.nested_wait) {
  if (options.max_height < 1 || options.max_height > rangelock::kMaxHeight) {
    throw Error(ErrorCode::invalid_argument, "a range lock's towers cannot be that high",
                {.wanted = fmt::format("1 to {}", rangelock::kMaxHeight),
                 .found = std::to_string(options.max_height)});
  }
  if (options.fairness != Fairness::barging && options.fairness != Fairness::fifo) {
    throw Error(ErrorCode::invalid_argument, "a range lock knows no such fairness",
                {.wanted = "barging or fifo",
                 .found = std::to_string(static_cast<unsigned>(options.fairness))});
  }
  if (nested_wait_ < std::chrono::nanoseconds::zero()) {
    throw Error(ErrorCode::invalid_argument, "a range lock's nested waits cannot be that long",
                {.wanted = "0 ns or more", .found = fmt::format("{} ns", nested_wait_.count())});
  }
}

BlockingRangeLock::~BlockingRangeLock() = default;

inline void BlockingRangeLock::hold(RangeHandle& handle) noexcept {
  handle.claim_.owner->acquired.add(1);
  handle.lock_ = this;
}

// Whether one of the ranges conflicts with one that is waited for.
[[gnu::noinline]] bool BlockingRangeLock::is_overtaking(std::span<const Range> ranges,
                                                        RangeMode mode) const {
  rangelock::Blocker elder;
  return !queue_->is_empty() && queue_->find_elder(ranges, mode, nullptr, elder);
}

RangeHandle BlockingRangeLock::acquire(RangeOwner& by, const Range& range, RangeMode mode,
                                       const Clock::time_point* deadline,
                                       const std::stop_token& stop) {
  const std::size_t held = by.held();
  RangeHandle handle = try_acquire(by.core(), range.begin, range.end, mode);
  if (handle) return handle;
  if (held == 0 || deadline != nullptr) {
    wait(handle, {&range, 1}, {deadline, stop});
    return handle;
  }
  // Two owners that wait for each other would wait for ever; neither can know.
  const Clock::time_point limit = after(nested_wait_);
  wait(handle, {&range, 1}, {&limit, stop});
  if (!handle && !stop.stop_requested()) {
    throw Error(ErrorCode::nested_wait,
                fmt::format("waited {} ms for a range while holding {} others: a deadlock?",
                            std::chrono::duration<double, std::milli>(nested_wait_).count(), held),
                {.wanted = describe(range)});
  }
  return handle;
}

// Takes the range of an empty handle, if it can. With fifo, behind the waiters that conflict with
// one of `wanted`: of the range, of a whole batch that holds nothing yet, or of nothing.
void BlockingRangeLock::wait(RangeHandle& handle, std::span<const Range> wanted,
                             const Patience& patience) {
  rangelock::Claim& claim = handle.claim_;
  OwnerCore& owner = *claim.owner;
  rangelock::Blocker blocker;
  const bool behind_elders = fifo_ && !wanted.empty();
  const auto allowed_attempt = [&](WaitQueue::Waiter* waiter) {
    return !(behind_elders && queue_->find_elder(wanted, claim.mode, waiter, blocker)) &&
           attempt(claim, blocker);
  };
  // relaxed, here and below: numbers, not an order.
  queue_->contended.fetch_add(1, std::memory_order_relaxed);
  const Clock::time_point start = Clock::now();
  const auto finish = [&](bool acquired) {
    const std::chrono::nanoseconds waited = Clock::now() - start;
    owner.waited_ns.add(static_cast<std::uint64_t>(waited.count()));
    queue_->waited_ns.fetch_add(static_cast<std::uint64_t>(waited.count()),
                                std::memory_order_relaxed);
    if (acquired) {
      hold(handle);
    } else {
      queue_->timeouts.fetch_add(1, std::memory_order_relaxed);
    }
  };

  constexpr unsigned kTries = 8, kPauses = 32;  // a microsecond or two in all; offers no core
  for (unsigned i = 0; i < kTries && queue_->is_empty(); ++i) {
    emu::Spin().pause(kPauses);
    if (allowed_attempt(nullptr)) return finish(true);
  }

  WaitQueue::Waiter waiter(owner, claim.range, claim.mode, !fifo_ || behind_elders);
  queue_->enter(waiter);
  // If an attempt throws, the waiter must not stay behind.
  bool with_range = false;
  const base::ScopeExit leave([&] { queue_->leave(waiter, with_range); });
  const std::stop_callback cancel(patience.stop, [&] { WaitQueue::wake(waiter); });
  for (;;) {
    if (allowed_attempt(&waiter)) {
      with_range = true;
      return finish(true);
    }
    const bool known = queue_->set_blocker(waiter, blocker);
    if (patience.is_over()) return finish(false);
    if (!known) continue;  // it may have been unlocked before we noted it
    rangelock::hook(rangelock::Hook::before_sleep);
    WaitQueue::sleep(waiter, patience.deadline);
  }
}

// --- batches ------------------------------------------------------------------------------------

namespace {

// Lines are asked for so many ranges ahead: about as many as a core waits for at once.
constexpr std::size_t kAskAtATime = 16;

template <class T>
std::span<const T> few_from(std::span<T> all, std::size_t first) {
  return all.subspan(first, std::min(kAskAtATime, all.size() - first));
}

[[noreturn]] void refuse_overlap(const Range& one, const Range& other) {
  throw Error(ErrorCode::invalid_range, "two ranges of a batch overlap",
              {.found = describe(one) + " and " + describe(other)});
}

// By begin. Errors: Error{invalid_range}.
std::vector<Range> sorted_ranges(std::span<const Range> ranges, RangeMode mode) {
  std::vector<Range> sorted(ranges.begin(), ranges.end());
  std::ranges::sort(sorted, {}, &Range::begin);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].begin >= sorted[i].end) rangelock::refuse_range(sorted[i]);
    if (mode == RangeMode::exclusive && i > 0 && sorted[i].overlaps(sorted[i - 1])) {
      refuse_overlap(sorted[i - 1], sorted[i]);
    }
  }
  return sorted;
}

}  // namespace

bool BlockingRangeLock::try_lock_all(RangeOwner& owner, std::span<const Range> ranges,
                                     std::span<RangeHandle> handles, RangeMode mode) {
  if (&owner.core().domain != domain_) rangelock::refuse_owner();
  if (ranges.size() != handles.size()) {
    throw Error(ErrorCode::invalid_argument, "a batch needs a handle for each range",
                {.wanted = std::to_string(ranges.size()), .found = std::to_string(handles.size())});
  }
  for (const Range& range : ranges) {
    if (range.begin >= range.end) rangelock::refuse_range(range);
  }
  for (const RangeHandle& handle : handles) {
    if (handle) {
      throw Error(ErrorCode::invalid_argument, "a handle for a batch holds a range already",
                  {.wanted = "an empty handle", .found = describe(handle.range())});
    }
  }
  const rangelock::Lingering lingering(owner.core());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (i % kAskAtATime == 0) ask_ahead(few_from(ranges, i), mode);
    const Range& range = ranges[i];
    RangeHandle& handle = handles[i];
    handle.claim_.owner = &owner.core();
    handle.claim_.range = range;
    handle.claim_.mode = mode;
    try {
      try_fill(handle);
    } catch (...) {
      unlock_all(handles.first(i));
      throw;
    }
    if (handle) continue;
    unlock_all(handles.first(i));
    if (mode == RangeMode::exclusive) {
      for (const Range& other : ranges.first(i)) {
        if (range.overlaps(other)) refuse_overlap(other, range);
      }
    }
    return false;
  }
  return true;
}

std::vector<RangeHandle> BlockingRangeLock::try_lock_all(RangeOwner& owner,
                                                         std::span<const Range> ranges,
                                                         RangeMode mode) {
  std::vector<RangeHandle> handles(ranges.size());
  if (!try_lock_all(owner, sorted_ranges(ranges, mode), handles, mode)) handles.clear();
  return handles;
}

std::vector<RangeHandle> BlockingRangeLock::acquire_all(RangeOwner& owner,
                                                        std::span<const Range> ranges,
                                                        RangeMode mode,
                                                        const Clock::time_point* deadline,
                                                        const std::stop_token& stop) {
  const std::vector<Range> sorted = sorted_ranges(ranges, mode);
  if (&owner.core().domain != domain_) rangelock::refuse_owner();
  std::vector<RangeHandle> handles;
  handles.reserve(sorted.size());
  // Takes the next range without waiting, or returns a handle that wait() will fill.
  const auto try_next = [&](const Range& range) {
    if (handles.size() % kAskAtATime == 0) {
      ask_ahead(few_from(std::span<const Range>(sorted), handles.size()), mode);
    }
    RangeHandle handle(owner.core(), range.begin, range.end, mode);
    rangelock::Blocker blocker;
    const bool is_first_behind = fifo_ && handles.empty() && is_overtaking(sorted, mode);
    if (!is_first_behind && attempt(handle.claim_, blocker)) {
      hold(handle);
    } else {
      owner.core().contended.add(1);
      handle.lock_ = nullptr;
    }
    return handle;
  };
  // A wait is nested if the owner held ranges before; then the whole batch has one deadline.
  Clock::time_point limit;
  const bool limited = deadline == nullptr && owner.held() != 0;
  if (limited) {
    limit = after(nested_wait_);
    deadline = &limit;
  }
  try {
    for (const Range& range : sorted) {
      RangeHandle handle = try_next(range);
      if (!handle) {
        // Behind the elders of the whole batch, or once it holds something, of none of it.
        const std::span<const Range> wanted(sorted.data(), handles.empty() ? sorted.size() : 0);
        wait(handle, wanted, {deadline, stop});
      }
      if (!handle) {
        unlock_all(handles);
        if (!limited || stop.stop_requested()) return handles;
        throw Error(ErrorCode::nested_wait,
                    "waited too long for a batch while holding other ranges: a deadlock?",
                    {.wanted = describe(range)});
      }
      handles.push_back(std::move(handle));
    }
  } catch (...) {
    unlock_all(handles);
    throw;
  }
  return handles;
}

std::vector<RangeHandle> BlockingRangeLock::lock_all(RangeOwner& owner,
                                                     std::span<const Range> ranges, RangeMode mode,
                                                     const std::stop_token& stop) {
  return acquire_all(owner, ranges, mode, nullptr, stop);
}

std::vector<RangeHandle> BlockingRangeLock::try_lock_all_until(RangeOwner& owner,
                                                               std::span<const Range> ranges,
                                                               Clock::time_point deadline,
                                                               RangeMode mode,
                                                               const std::stop_token& stop) {
  return acquire_all(owner, ranges, mode, &deadline, stop);
}

// --- unlocking and looking ----------------------------------------------------------------------

void BlockingRangeLock::unlock_all(std::span<RangeHandle> handles) {
  for (const RangeHandle& handle : handles) {
    if (handle && handle.lock_ != this) rangelock::refuse_handle(handle.lock_);
  }
  std::optional<rangelock::Lingering> lingering;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    if (i % kAskAtATime == 0) ask_ahead(few_from(handles, i));
    if (!handles[i]) continue;
    if (!lingering) lingering.emplace(*handles[i].claim_.owner);
    unlock(handles[i]);
  }
}

std::vector<RangeHolder> BlockingRangeLock::holders() const {
  std::vector<RangeHolder> holders;
  list_holders(holders);
  return holders;
}

std::vector<RangeWaiter> BlockingRangeLock::waiters() const { return queue_->list(*domain_); }

BlockingRangeLock::Counters BlockingRangeLock::counters() const noexcept {
  // relaxed: numbers, not an order.
  return {queue_->contended.load(std::memory_order_relaxed),
          queue_->timeouts.load(std::memory_order_relaxed),
          queue_->waited_ns.load(std::memory_order_relaxed)};
}

void BlockingRangeLock::close() {
  const std::size_t held = holders().size();
  const std::size_t waiting = waiters().size();
  if (held == 0 && waiting == 0) return;
  throw Error(ErrorCode::range_lock_busy, "a range lock is closed while it is in use",
              {.found = fmt::format("{} ranges held, {} waited for", held, waiting)});
}

// noexcept: a guest can always be had, and a list of nothing needs no memory.
void BlockingRangeLock::check_idle() const noexcept {
  const bool no_range_is_held = holders().empty();
  SP3_CHECK(no_range_is_held);
}

}  // namespace sp3

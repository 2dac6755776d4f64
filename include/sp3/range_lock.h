// Range locks: mutual exclusion on ranges of 64-bit addresses, with or without a pool.
//
//   sp3::SkiplistRangeLock lock;
//   {
//     const sp3::RangeGuard guard(lock, 4096, 8192);   // bytes 4096 to 8191 are ours
//   }
//   if (sp3::RangeHandle handle = lock.try_lock(0, sp3::kRangeMax)) lock.unlock(handle);
//
// Ranges are half-open, so [10,20) and [20,30) do not meet; [0, kRangeMax) is the widest, and an
// ordinary one. Two ranges conflict if they overlap and at least one is held exclusively.
//
// Two implementations have the interface below: SkiplistRangeLock keeps the held ranges in a
// lock-free skip list; GridRangeLock keeps narrow ranges in hashed cache lines and the others in a
// skip list. docs/RANGE_LOCKS.md says which to take, and proves both.
//
// Thread safety: locks and domains by any thread; an owner, and the handles made for it, by one
// thread at a time.
// Ownership: a lock outlives its handles, an owner outlives what it holds, a domain outlives its
// locks and owners. A lock also outlives each call of it, until that has returned: an unlock looks
// for waiters after the range is free. So, unlike with a std::mutex, who finds by what the lock
// guards that it is the last user must not destroy the lock, for another's unlock may not have
// returned. Count users outside of the lock, each until its unlock has returned; or join their
// threads, or destroy the lock by epochs.
// Reclamation: by eras, in the domain; nodes are used again, by any of its locks, and freed with
// the domain.
// Fork: a child of a process that had other threads then must not use or destroy what it has
// inherited: locks, owners, domains, handles, nor process() and this_thread(). It may make a domain
// of its own, and locks and owners in that.
// Invariants:
//   1. No two conflicting ranges are held at once.
//   2. What happened before an unlock is visible after a lock that it made possible.
//   3. An acquisition that fails, times out or is cancelled leaves nothing behind.
// Progress: try_lock is lock-free on the skip list; on the grid it waits, as holders() does, for
// whoever is inside a bucket: for some twenty instructions, or, while wide ranges are held or more
// narrow ones than the bucket has slots, for a search of the skip list. It fails without need only
// where a conflicting acquisition is under way that has to retreat itself: from a range in the
// other mode or, a wide one on the grid, from a narrow range in any. With Fairness::fifo, lock is
// starvation-free if every holder unlocks.
// Complexity: O(log n) for n held ranges; plus, for an exclusive range, the shared ones that begin
// before its end by less than twice their length; plus, for a wide range, what acquisitions have
// left for later ones to begin their searches at since the last such visit: at most 1024 signposts
// for each list (docs/RANGE_LOCKS.md), on the grid the buckets used. Ranges unlocked since are
// passed once, by whoever comes first.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include <sp3/detail/export.h>
#include <sp3/error.h>

namespace sp3 {

namespace rangelock {
class Domain;
class GridCore;
struct GridEntered;
class OrderedCore;
class WaitQueue;
struct Blocker;
struct OwnerCore;
}  // namespace rangelock

// [begin, end)
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] constexpr bool overlaps(const Range& other) const noexcept {
    return begin < other.end && other.begin < end;
  }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};
inline constexpr std::uint64_t kRangeMax = ~std::uint64_t{0};

enum class RangeMode : std::uint8_t { exclusive, shared };
constexpr bool conflict(const Range& a, RangeMode mode_a, const Range& b, RangeMode mode_b) {
  return a.overlaps(b) && (mode_a == RangeMode::exclusive || mode_b == RangeMode::exclusive);
}

// What locks share: memory for their nodes, and the eras by which it is reclaimed. Locks that one
// set of threads uses (all ranged objects of a pool) share a domain.
class SP3_API RangeLockDomain {
 public:
  // `owners`: how many there may be at a time, 1 to 32767; each costs a cache line. Errors:
  // Error{invalid_argument}.
  explicit RangeLockDomain(std::size_t owners = 1024);
  ~RangeLockDomain();
  RangeLockDomain(const RangeLockDomain&) = delete;
  RangeLockDomain& operator=(const RangeLockDomain&) = delete;

  // The one used where none is named; it lives as long as the process.
  static RangeLockDomain& process();

  struct Statistics {
    // Taken for nodes so far; nothing is given back before the end.
    std::uint64_t node_bytes = 0;
    std::size_t owners = 0;  // that exist now
  };
  [[nodiscard]] Statistics statistics() const;

 private:
  friend class RangeOwner;
  friend class BlockingRangeLock;
  std::unique_ptr<rangelock::Domain> core_;
};

// Who holds a range: a session, a transaction, a thread. `token` is the user's own name for it; it
// is what introspection reports.
class SP3_API RangeOwner {
 public:
  // Errors: Error{invalid_argument} if the domain has no room for another owner.
  explicit RangeOwner(std::uint64_t token = 0,
                      RangeLockDomain& domain = RangeLockDomain::process());
  // REQUIRES: held() == 0; anything else ends the process.
  ~RangeOwner();
  RangeOwner(const RangeOwner&) = delete;
  RangeOwner& operator=(const RangeOwner&) = delete;

  // The owner used where none is named: one for each thread, in the process' domain, from its first
  // use to the thread's end. That domain has room for 1024; more threads at a time need a domain of
  // their own, and owners that they name.
  // It ends after the thread's thread_locals, whose destructors may use it; that of the main thread
  // with the process, so those of statics may, too. One that holds ranges at the thread's end stays
  // with them, as with a std::mutex, and keeps its place among the 1024.
  // Errors: Error{invalid_argument} if there is no room, or, for the first of the process, no
  // thread-specific key; std::bad_alloc.
  static RangeOwner& this_thread();

  [[nodiscard]] std::uint64_t token() const noexcept;
  // Also of what is held and waited for already. Meant for owners that are made without one, such
  // as this_thread().
  void set_token(std::uint64_t token) noexcept;
  [[nodiscard]] std::size_t held() const noexcept;  // ranges, over all locks

  struct Counters {
    std::uint64_t acquired = 0;   // ranges, those of a batch that failed in the end as well
    std::uint64_t contended = 0;  // acquisitions that met a conflict, successful or not
    std::uint64_t waited_ns = 0;
  };
  [[nodiscard]] Counters counters() const noexcept;
  [[nodiscard]] rangelock::OwnerCore& core() const noexcept { return *core_; }

 private:
  std::unique_ptr<rangelock::OwnerCore> core_;
};

namespace rangelock {
// What is to be held, for whom, and, once it is, where the implementation finds it without a
// search.
struct Claim {
  Claim() noexcept : owner(nullptr), mode(RangeMode::exclusive), place(0) {}
  // Without a place.
  Claim(OwnerCore& by, std::uint64_t begin, std::uint64_t end, RangeMode in_mode) noexcept
      : owner(&by), range{begin, end}, mode(in_mode) {}

  OwnerCore* owner;
  Range range;
  RangeMode mode;
  std::uintptr_t place;  // set by a successful attempt
};
}  // namespace rangelock

class BlockingRangeLock;

// A held range, or nothing. Dropping a handle does not unlock (RangeGuard does).
class RangeHandle {
 public:
  RangeHandle() noexcept : lock_(nullptr) {}
  RangeHandle(RangeHandle&& other) noexcept
      : lock_(std::exchange(other.lock_, nullptr)), claim_(other.claim_) {}
  RangeHandle& operator=(RangeHandle&& other) noexcept {
    lock_ = std::exchange(other.lock_, nullptr);
    claim_ = other.claim_;
    return *this;
  }

  explicit operator bool() const noexcept { return lock_ != nullptr; }
  [[nodiscard]] const Range& range() const noexcept { return claim_.range; }
  [[nodiscard]] RangeMode mode() const noexcept { return claim_.mode; }

 private:
  friend class BlockingRangeLock;

  // Holds nothing yet: lock_ and claim_.place are set by whoever makes it.
  RangeHandle(rangelock::OwnerCore& owner, std::uint64_t begin, std::uint64_t end,
              RangeMode mode) noexcept
      : claim_(owner, begin, end, mode) {}

  BlockingRangeLock* lock_;
  rangelock::Claim claim_;
};

enum class Fairness : std::uint8_t {
  barging,  // whoever comes first after an unlock; the fastest
  // Nobody overtakes a conflicting acquisition that waits; not even an owner of the range that it
  // waits for: who nests a range that is free, but waited for as part of a larger one, waits behind
  // that, in vain (nested_wait).
  fifo,
};

struct RangeLockOptions {
  Fairness fairness = Fairness::barging;
  // An owner that already holds ranges waits at most this long for another, unless it says how
  // long. Not below 0; nanoseconds::max() is for ever, also where owners wait in a circle.
  std::chrono::nanoseconds nested_wait = std::chrono::seconds(1);
  RangeLockDomain* domain = nullptr;  // nullptr: RangeLockDomain::process()
  unsigned max_height = 12;           // of the skip list's towers, 1 to 16
  // Grid only. A range that spans more than two granules goes to the skip list.
  std::uint64_t granule = 4096;  // bytes, a power of two below 2^31
  // Of one cache line, a power of two from 64 to 2^30; best 1 to 2 for each held range.
  std::size_t buckets = 4096;
};

// A range that is held, or waited for.
struct RangeHolder {
  Range range;
  RangeMode mode = RangeMode::exclusive;
  std::uint64_t token = 0;
};
struct RangeWaiter {
  Range range;
  RangeMode mode = RangeMode::exclusive;
  std::uint64_t token = 0;
  Range blocker;  // the range it waits for
  std::uint64_t waited_ns = 0;
};

// The interface of both locks.
//
// Errors of all acquisitions: Error{invalid_range} for begin >= end; Error{invalid_argument} for an
// owner of another domain; std::bad_alloc.
class SP3_API BlockingRangeLock {
 public:
  using Clock = std::chrono::steady_clock;

  BlockingRangeLock(const BlockingRangeLock&) = delete;
  BlockingRangeLock& operator=(const BlockingRangeLock&) = delete;

  // A handle that is empty if a conflicting range is held or, with Fairness::fifo, waited for.
  [[nodiscard]] RangeHandle try_lock(RangeOwner& owner, std::uint64_t begin, std::uint64_t end) {
    return try_acquire(owner.core(), begin, end, RangeMode::exclusive);
  }
  [[nodiscard]] RangeHandle try_lock_shared(RangeOwner& owner, std::uint64_t begin,
                                            std::uint64_t end) {
    return try_acquire(owner.core(), begin, end, RangeMode::shared);
  }

  // Waits. The handle is empty only if `stop` was requested.
  // Errors: Error{nested_wait} if the owner holds ranges and nested_wait has passed.
  [[nodiscard]] RangeHandle lock(RangeOwner& owner, std::uint64_t begin, std::uint64_t end,
                                 const std::stop_token& stop = {}) {
    return acquire(owner, {begin, end}, RangeMode::exclusive, nullptr, stop);
  }
  [[nodiscard]] RangeHandle lock_shared(RangeOwner& owner, std::uint64_t begin, std::uint64_t end,
                                        const std::stop_token& stop = {}) {
    return acquire(owner, {begin, end}, RangeMode::shared, nullptr, stop);
  }

  // Waits until `deadline` at most, then returns an empty handle; so it does if `stop` is
  // requested.
  [[nodiscard]] RangeHandle try_lock_until(RangeOwner& owner, std::uint64_t begin,
                                           std::uint64_t end, Clock::time_point deadline,
                                           const std::stop_token& stop = {}) {
    return acquire(owner, {begin, end}, RangeMode::exclusive, &deadline, stop);
  }
  [[nodiscard]] RangeHandle try_lock_shared_until(RangeOwner& owner, std::uint64_t begin,
                                                  std::uint64_t end, Clock::time_point deadline,
                                                  const std::stop_token& stop = {}) {
    return acquire(owner, {begin, end}, RangeMode::shared, &deadline, stop);
  }

  // The same for the calling thread.
  [[nodiscard]] RangeHandle try_lock(std::uint64_t begin, std::uint64_t end) {
    return try_lock(RangeOwner::this_thread(), begin, end);
  }
  [[nodiscard]] RangeHandle try_lock_shared(std::uint64_t begin, std::uint64_t end) {
    return try_lock_shared(RangeOwner::this_thread(), begin, end);
  }
  [[nodiscard]] RangeHandle lock(std::uint64_t begin, std::uint64_t end,
                                 const std::stop_token& stop = {}) {
    return lock(RangeOwner::this_thread(), begin, end, stop);
  }
  [[nodiscard]] RangeHandle lock_shared(std::uint64_t begin, std::uint64_t end,
                                        const std::stop_token& stop = {}) {
    return lock_shared(RangeOwner::this_thread(), begin, end, stop);
  }
  [[nodiscard]] RangeHandle try_lock_until(std::uint64_t begin, std::uint64_t end,
                                           Clock::time_point deadline,
                                           const std::stop_token& stop = {}) {
    return try_lock_until(RangeOwner::this_thread(), begin, end, deadline, stop);
  }
  [[nodiscard]] RangeHandle try_lock_shared_until(std::uint64_t begin, std::uint64_t end,
                                                  Clock::time_point deadline,
                                                  const std::stop_token& stop = {}) {
    return try_lock_shared_until(RangeOwner::this_thread(), begin, end, deadline, stop);
  }

  // Several ranges, all or none: sorted first, so that batches never wait for each other in a
  // circle. With Fairness::fifo a batch that waits goes behind those who wait for any of its ranges
  // until it holds the first; from then on it waits for held ranges only, and so may overtake who
  // has begun to wait since. One that does not wait fails if any of its ranges is waited for. The
  // result has a handle for each range in ascending order, or is empty if they are not all held.
  // Of no ranges it is an empty vector, too, which is success.
  // Errors: Error{invalid_range} also if two of the ranges overlap and the mode is exclusive.
  [[nodiscard]] std::vector<RangeHandle> try_lock_all(RangeOwner& owner,
                                                      std::span<const Range> ranges,
                                                      RangeMode mode = RangeMode::exclusive);
  // The same in the order given, and without memory of its own: `handles[i]` is for `ranges[i]`.
  // Returns whether all are held; if not, no handle holds anything. Who tries again and again
  // should keep to one order, or two batches can refuse each other for ever. Two ranges that
  // overlap are an error if the attempt gets as far as the second.
  // Errors: Error{invalid_argument} also for other than one empty handle for each range.
  [[nodiscard]] bool try_lock_all(RangeOwner& owner, std::span<const Range> ranges,
                                  std::span<RangeHandle> handles,
                                  RangeMode mode = RangeMode::exclusive);
  // Errors: also as lock.
  [[nodiscard]] std::vector<RangeHandle> lock_all(RangeOwner& owner, std::span<const Range> ranges,
                                                  RangeMode mode = RangeMode::exclusive,
                                                  const std::stop_token& stop = {});
  [[nodiscard]] std::vector<RangeHandle> try_lock_all_until(RangeOwner& owner,
                                                            std::span<const Range> ranges,
                                                            Clock::time_point deadline,
                                                            RangeMode mode = RangeMode::exclusive,
                                                            const std::stop_token& stop = {});

  // Leaves the handle empty; needs no search.
  // Errors: Error{range_not_held} if it is empty, was used before, or is another lock's.
  void unlock(RangeHandle& handle) { release_handle(handle); }
  void unlock(RangeHandle&& handle) { release_handle(handle); }
  // Those of them that are not empty; a vector is cleared. Errors: Error{range_not_held} if one is
  // another lock's, and then all stay locked.
  void unlock_all(std::span<RangeHandle> handles);
  void unlock_all(std::vector<RangeHandle>& handles) {
    unlock_all(std::span(handles));
    handles.clear();
  }

  // As of some moment during the call, each entry by itself. Holders may include acquisitions that
  // are under way and may yet fail: shared ones, wide ones of the grid, and exclusive ones that
  // meet the lock's first shared range.
  [[nodiscard]] std::vector<RangeHolder> holders() const;
  [[nodiscard]] std::vector<RangeWaiter> waiters() const;

  struct Counters {
    std::uint64_t contended = 0;  // acquisitions that met a conflict and could wait
    std::uint64_t timeouts = 0;   // of these, given up by deadline, cancellation or nested_wait
    std::uint64_t waited_ns = 0;
  };
  // Acquisitions are counted by their owners: a counter here would be one more contended line.
  [[nodiscard]] Counters counters() const noexcept;

  // Says that the lock is no longer needed. REQUIRES: no acquisition in progress. It may succeed
  // while an unlock has not returned: that one still needs the lock.
  // Errors: Error{range_lock_busy} if ranges are held or waited for; the lock stays usable then.
  void close();

 protected:
  explicit BlockingRangeLock(const RangeLockOptions& options);
  virtual ~BlockingRangeLock();

  // Takes the range if nothing held conflicts with it, and sets claim.place; else says in `blocker`
  // what it conflicts with.
  virtual bool attempt(rangelock::Claim& claim, rangelock::Blocker& blocker) = 0;
  virtual void list_holders(std::vector<RangeHolder>& holders) const = 0;
  // The two that every acquisition and unlock goes through: in each lock try_fill_by and release_by
  // around what that lock does, so that all of it is one function. try_fill sets lock_ and
  // claim_.place of the handle, whose claim says the rest.
  virtual void try_fill(RangeHandle& handle) = 0;
  virtual void release_handle(RangeHandle& handle) = 0;
  // Asks for the cache lines that acquisitions of the ranges, or unlocks of the handles, begin
  // with; of a few at a time.
  virtual void ask_ahead(std::span<const Range> ranges, RangeMode mode) const noexcept = 0;
  virtual void ask_ahead(std::span<const RangeHandle> handles) const noexcept = 0;

  // rangelock/fast_path.h
  template <class Attempt>
  void try_fill_by(RangeHandle& handle, Attempt&& attempt);
  template <class Attempt>
  [[nodiscard]] bool try_fill_at_once(RangeHandle& handle, Attempt&& attempt) noexcept;
  template <class Release>
  void release_by(RangeHandle& handle, Release&& release);
  template <class May, class Release>
  [[nodiscard]] bool release_at_once(RangeHandle& handle, May&& may, Release&& release) noexcept;

  // For destructors: ends the process if a range is held.
  void check_idle() const noexcept;
  [[nodiscard]] rangelock::Domain& domain() const noexcept { return *domain_; }
  [[nodiscard]] rangelock::WaitQueue& queue() const noexcept { return *queue_; }

 private:
  struct Patience;

  RangeHandle try_acquire(rangelock::OwnerCore& owner, std::uint64_t begin, std::uint64_t end,
                          RangeMode mode) {
    RangeHandle handle(owner, begin, end, mode);
    try_fill(handle);
    return handle;
  }
  RangeHandle acquire(RangeOwner& owner, const Range& range, RangeMode mode,
                      const Clock::time_point* deadline, const std::stop_token& stop);
  std::vector<RangeHandle> acquire_all(RangeOwner& owner, std::span<const Range> ranges,
                                       RangeMode mode, const Clock::time_point* deadline,
                                       const std::stop_token& stop);
  bool is_overtaking(std::span<const Range> ranges, RangeMode mode) const;
  void wait(RangeHandle& handle, std::span<const Range> wanted, const Patience& patience);
  void hold(RangeHandle& handle) noexcept;

  rangelock::Domain* const domain_;
  const std::unique_ptr<rangelock::WaitQueue> queue_;
  const bool fifo_;
  const std::chrono::nanoseconds nested_wait_;
};

class SP3_API SkiplistRangeLock final : public BlockingRangeLock {
 public:
  // Errors: Error{invalid_argument} for a height, a fairness or a nested_wait that cannot be.
  explicit SkiplistRangeLock(const RangeLockOptions& options = {});
  // REQUIRES: nothing is held; anything else ends the process (close() tells by an error instead).
  // And no call is in progress, not even an unlock that has not returned: see Ownership above.
  ~SkiplistRangeLock() override;

 private:
  bool attempt(rangelock::Claim& claim, rangelock::Blocker& blocker) override;
  void list_holders(std::vector<RangeHolder>& holders) const override;
  void try_fill(RangeHandle& handle) override;
  void release_handle(RangeHandle& handle) override;
  void ask_ahead(std::span<const Range> ranges, RangeMode mode) const noexcept override;
  void ask_ahead(std::span<const RangeHandle> handles) const noexcept override;
  void release_slowly(RangeHandle& handle);

  std::unique_ptr<rangelock::OrderedCore> core_;
};

class SP3_API GridRangeLock final : public BlockingRangeLock {
 public:
  // Errors: as SkiplistRangeLock; also for a granule or a number of buckets that is not a power of
  // two, or out of bounds.
  explicit GridRangeLock(const RangeLockOptions& options = {});
  // REQUIRES: as ~SkiplistRangeLock.
  ~GridRangeLock() override;

 private:
  bool attempt(rangelock::Claim& claim, rangelock::Blocker& blocker) override;
  void list_holders(std::vector<RangeHolder>& holders) const override;
  void try_fill(RangeHandle& handle) override;
  void release_handle(RangeHandle& handle) override;
  void ask_ahead(std::span<const Range> ranges, RangeMode mode) const noexcept override;
  void ask_ahead(std::span<const RangeHandle> handles) const noexcept override;
  void try_fill_inside(RangeHandle& handle, rangelock::GridEntered entered);
  void try_fill_slowly(RangeHandle& handle);
  void release_slowly(RangeHandle& handle);

  std::unique_ptr<rangelock::GridCore> core_;
};

// What every range lock in this repository can do, rivals of the benchmark included.
template <class Lock>
concept RangeLock = requires(Lock& lock, RangeOwner& owner, std::uint64_t at) {
  {static_cast<bool>(lock.try_lock(owner, at, at))};
  lock.unlock(lock.try_lock(owner, at, at));
};
static_assert(RangeLock<SkiplistRangeLock> && RangeLock<GridRangeLock>);

// Holds a range for the length of a block.
template <class Lock>
class RangeGuard {
 public:
  // One that nobody keeps would unlock at once.
  [[nodiscard]] RangeGuard(Lock& lock, std::uint64_t begin, std::uint64_t end,
                           RangeMode mode = RangeMode::exclusive)
      : RangeGuard(lock, RangeOwner::this_thread(), begin, end, mode) {}
  [[nodiscard]] RangeGuard(Lock& lock, RangeOwner& owner, std::uint64_t begin, std::uint64_t end,
                           RangeMode mode = RangeMode::exclusive)
      : lock_(lock),
        handle_(mode == RangeMode::exclusive ? lock.lock(owner, begin, end)
                                             : lock.lock_shared(owner, begin, end)) {}
  // Takes over what the handle holds. REQUIRES: it is empty, or one of this lock's.
  [[nodiscard]] RangeGuard(Lock& lock, RangeHandle handle)
      : lock_(lock), handle_(std::move(handle)) {}
  ~RangeGuard() {
    if (handle_) lock_.unlock(handle_);
  }
  RangeGuard(const RangeGuard&) = delete;
  RangeGuard& operator=(const RangeGuard&) = delete;

  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  [[nodiscard]] const RangeHandle& handle() const noexcept { return handle_; }

 private:
  Lock& lock_;
  RangeHandle handle_;
};

}  // namespace sp3

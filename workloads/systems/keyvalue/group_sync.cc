#include "workloads/systems/keyvalue/group_sync.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include "emu/interposed/syncs.h"

namespace sp3::workloads::keyvalue {

// SharedSync knows error numbers only: the exception of the first sync that failed is kept beside.
GroupSync::GroupSync(const AsyncOptions& window, std::function<void()> sync)
    : window_(window),
      sync_(std::move(sync)),
      shared_([this] {
        try {
          sync_once();
          return 0;
        } catch (...) {
          const std::lock_guard lock(mutex_);
          failure_ = std::current_exception();
          return EIO;
        }
      }),
      thread_([this] { sync_by_time(); }) {}

GroupSync::~GroupSync() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

// One at a time (SharedSync).
void GroupSync::sync_once() {
  // acquire: pairs with committed(); what is counted here was committed before.
  const std::uint64_t covered = commits_.load(std::memory_order_acquire);
  sync_();
  durable_.store(covered, std::memory_order_relaxed);
}

void GroupSync::committed(Pending& pending, std::uint64_t bytes) {
  if (durable_.load(std::memory_order_relaxed) >= pending.newest) pending = {};
  pending.newest = commits_.fetch_add(1, std::memory_order_release) + 1;
  ++pending.records;
  pending.bytes += bytes;
  if (pending.records >= window_.group_records || pending.bytes >= window_.group_bytes) {
    flush(pending);
  }
}

void GroupSync::flush(Pending& pending) {
  if (pending.records == 0) return;
  if (shared_.wait() != 0) {
    const std::lock_guard lock(mutex_);
    std::rethrow_exception(failure_);
  }
  pending = {};
}

std::uint64_t GroupSync::timed_syncs() const {
  return timed_syncs_.load(std::memory_order_relaxed);
}

void GroupSync::sync_by_time() {
  const std::chrono::microseconds period(window_.group_microseconds);
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, period, [this] { return stopping_; })) {
    const std::uint64_t due = std::exchange(seen, commits_.load(std::memory_order_relaxed));
    if (durable_.load(std::memory_order_relaxed) >= due || failure_) continue;
    lock.unlock();
    const std::uint64_t before = emu::sync_calls();
    // A failure is remembered for the client that flushes next.
    static_cast<void>(shared_.wait());
    timed_syncs_.fetch_add(emu::sync_calls() - before, std::memory_order_relaxed);
    lock.lock();
  }
}

}  // namespace sp3::workloads::keyvalue

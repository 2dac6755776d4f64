// A caller that finds sync n running cannot use it: n may have begun before the caller's writes
// were in the page cache. It needs number n + 1. The first caller that needs it and finds nothing
// running leads; the others sleep. While one sync runs all newcomers gather for the next, so the
// batch grows with the device's latency and nobody waits for more than two syncs.
#include "emu/shared_sync.h"

#include <mutex>

#include "base/assert.h"
#include "base/mutant.h"
#include "base/no_cancellation.h"

namespace sp3::emu {

int SharedSync::wait() {
  const base::NoCancellation whole;  // who led and was gone would be waited for by all others
  std::unique_lock lock(mutex_);
  const bool joins = base::mutant(base::Mutant::sync_joins_one_under_way) && started_ != finished_;
  const std::uint64_t needed = joins ? started_ : started_ + 1;
  while (finished_ < needed && first_failed_ > needed) {
    if (started_ != finished_) {
      finished_one_.wait(lock);
      continue;
    }
    const std::uint64_t mine = ++started_;
    lock.unlock();
    const int error = sync_();
    lock.lock();
    SP3_ASSERT(mine == finished_ + 1);
    finished_ = mine;
    if (error != 0 && error_ == 0) {
      first_failed_ = mine;
      error_ = error;
    }
    finished_one_.notify_all();
  }
  return needed >= first_failed_ ? error_ : 0;
}

std::uint64_t SharedSync::syncs() const {
  const std::lock_guard lock(mutex_);
  return started_;
}

}  // namespace sp3::emu

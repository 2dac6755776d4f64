// StampClock: TSC ticks since the pool was created, as stamps (design: base/tid.h).
#pragma once

#include "base/tid.h"
#include "emu/clock.h"
#include "runtime/session_shared.h"

namespace sp3::runtime {

class StampClock {
 public:
  // The clock goes on from `largest_stamp`, the largest anywhere on media, so that no stamp comes
  // twice.
  explicit StampClock(base::Stamp largest_stamp)
      : shift_(largest_stamp + kFirstStamp - emu::ticks()),
        synchronised_(emu::clock_is_synchronised()) {}

  [[nodiscard]] base::Stamp now() const noexcept { return stamp_at(emu::ticks()); }
  // For a writer that holds its locks.
  [[nodiscard]] base::Stamp now_after_loads() const noexcept {
    return stamp_at(emu::ticks_after_loads());
  }
  // Whether an earlier moment on one core has a smaller number than a later one on another.
  [[nodiscard]] bool is_synchronised() const noexcept { return synchronised_; }
  // The snapshot of a reader whose later reads all come after the moment `ticks`
  // (emu::ticks_before_loads); 0, below which there is no version, if the counter has started again
  // since (a machine that was suspended or restored): what goes backwards together still agrees.
  // REQUIRES: is_synchronised().
  [[nodiscard]] base::Stamp snapshot_at(std::uint64_t ticks) const noexcept {
    const base::Stamp stamp = ticks + shift_;
    return stamp <= base::kMaxStamp ? stamp : 0;
  }

 private:
  // Where counters disagree a core may read a moment from before the pool was opened, in a new pool
  // even one from before the first stamp, which would wrap around to a huge number.
  [[nodiscard]] base::Stamp stamp_at(std::uint64_t ticks) const noexcept {
    const base::Stamp stamp = ticks + shift_;
    return stamp <= base::kMaxStamp ? stamp : kFirstStamp;
  }

  std::uint64_t shift_;  // modulo 2^64
  bool synchronised_;
};

}  // namespace sp3::runtime

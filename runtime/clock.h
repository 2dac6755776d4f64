// StampClock: TSC ticks since the pool was created, as stamps (design: base/tid.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/tid.h"
#include "emu/clock.h"
#include "pool/limits.h"
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
    return reading(ticks, /*least=*/0);
  }
  // Where counters disagree a core may read a moment from before the pool was opened, in a new pool
  // even one from before the first stamp.
  [[nodiscard]] base::Stamp stamp_at(std::uint64_t ticks) const noexcept {
    return reading(ticks, /*least=*/kFirstStamp);
  }

 private:
  // Below zero, as from a counter that has started again, it is the least. A jump ahead must not
  // use up the stamps that superblocks can say: from the most on the clock stands still, for stamps
  // and snapshots alike, so that no later stamp is below an earlier snapshot.
  [[nodiscard]] base::Stamp reading(std::uint64_t ticks, std::int64_t least) const noexcept {
    constexpr auto kMost = static_cast<std::int64_t>(pool::kMostStampOfClock);
    return static_cast<base::Stamp>(
        std::clamp(static_cast<std::int64_t>(ticks + shift_), least, kMost));
  }

  std::uint64_t shift_;  // modulo 2^64
  bool synchronised_;
};

}  // namespace sp3::runtime

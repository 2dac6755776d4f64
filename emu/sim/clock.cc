#include "emu/clock.h"

#include <cmath>

namespace sp3::emu {
namespace {
bool forced_apart = false;
}

double ticks_per_second() noexcept { return 1e9; }

std::uint64_t ticks_from_nanoseconds(double nanoseconds) noexcept {
  return nanoseconds <= 0 ? 0 : static_cast<std::uint64_t>(std::llround(nanoseconds));
}

double nanoseconds_from_ticks(std::uint64_t ticks) noexcept { return static_cast<double>(ticks); }

bool clock_is_synchronised() noexcept { return !forced_apart && sim::machine().clocks_agree(); }

void force_unsynchronised_clock(bool apart) noexcept { forced_apart = apart; }

}  // namespace sp3::emu

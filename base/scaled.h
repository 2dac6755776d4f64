// scaled: limits that a program of a few transactions has to meet on the simulated machine, where
// each of its events is tried with crashes: how much is collected, kept or taken at a time.
#pragma once

namespace sp3::base {

template <class T>
constexpr T scaled([[maybe_unused]] T native, [[maybe_unused]] T simulated) noexcept {
#ifdef SP3_SIMULATED
  return simulated;
#else
  return native;
#endif
}

}  // namespace sp3::base

// Transaction IDs: <stamp, session>, a hybrid logical clock.
//
// A stamp is a 63-bit count of TSC ticks since the pool was created, pushed forward so that it is
// larger than the stamp of every transaction it depends on: numeric order is a topological order of
// the dependency DAG whatever the clocks do. Stamp 0 means "home, committed long ago". See
// docs/adr/0002-hybrid-logical-clock.md.
#pragma once

#include <compare>
#include <cstdint>

namespace sp3::base {

using Stamp = std::uint64_t;
using SessionId = std::uint16_t;
using Lsn = std::uint64_t;  // numbers the records of one session's log within a generation, from 1

inline constexpr Stamp kMaxStamp = (Stamp{1} << 63) - 1;

struct Tid {
  Stamp stamp = 0;
  SessionId session = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): what the default compares with
  friend constexpr auto operator<=>(const Tid&, const Tid&) = default;
};

}  // namespace sp3::base

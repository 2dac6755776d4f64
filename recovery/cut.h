// The cut: how many records of each session's prefix are committed.
//
// A record is kept if all earlier records of its session are kept and, for each dependency
// <session, stamp> above the floor, that session's kept records reach up to that stamp. The cut is
// the largest set of which this holds; the set is closed under dependencies, so it can be replayed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/tid.h"
#include "log/log_scanner.h"

namespace sp3::recovery {

struct Cut {
  std::vector<std::uint64_t> kept;  // per prefix, the number of records from its start on
  // Per prefix: what its first record that is not kept waits for in vain.
  std::vector<std::optional<base::Tid>> missing;
};

// Linear in records' dependencies, times the logarithm of the sessions that wait for one session.
// REQUIRES: a dependency's stamp is smaller than its record's (the scan sees to that).
Cut compute_cut(std::span<const log::LogPrefix> prefixes);

}  // namespace sp3::recovery

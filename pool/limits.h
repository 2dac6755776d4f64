// How far what only ever goes up may have got in a pool that somebody wrote.
#pragma once

#include <cstdint>

#include "base/tid.h"

namespace sp3::pool {

// Stamps are nanoseconds, more or less: after 2^62 they leave room for as many again. So do the
// numbers that go up by one: a superblock's, a generation's, a checkpoint's.
inline constexpr base::Stamp kMostStamp = base::kMaxStamp / 2;
inline constexpr std::uint64_t kMostCount = std::uint64_t{1} << 62;

}  // namespace sp3::pool

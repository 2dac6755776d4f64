// How far what only ever goes up may have got in a pool that somebody wrote.
#pragma once

#include <cstdint>

#include "base/tid.h"

namespace sp3::pool {

// Stamps are nanoseconds, more or less: after 2^62 they leave room for as many again. So do the
// numbers that go up by one: a superblock's, a generation's, a checkpoint's.
inline constexpr base::Stamp kMostStamp = base::kMaxStamp / 2;
inline constexpr std::uint64_t kMostCount = std::uint64_t{1} << 62;

// Whoever goes on writing goes on from no more than this, and believes no stamp of a log beyond.
// What is written from there on is never out of what superblocks can say; but who begins right
// below may come to what the next one refuses, which takes a pool that was made up for it.
inline constexpr base::Stamp kMostStampToGoOnFrom = kMostStamp - (base::Stamp{1} << 58);
// No reading of a clock is taken for later. A counter may jump there in a machine that is restored;
// then stamps go on one by one, for which there is more room than anybody needs.
inline constexpr base::Stamp kMostStampOfClock = kMostStampToGoOnFrom - (base::Stamp{1} << 57);
inline constexpr std::uint64_t kMostCountToGoOnFrom = kMostCount - (std::uint64_t{1} << 40);

}  // namespace sp3::pool

// Rot: what the media has lost of one copy of a pool's doubled metadata (a superblock, records of
// the directory, a bitmap) or of its log. Not a crash's doing, so that no order of stores explains
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emu/sim/random.h"
#include "pool/layout.h"

namespace sp3::sim {

struct Rot {
  std::string what;  // for messages
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;  // in the place of those that were there
  // The copy that is not in force was hit, or the other copy has the very bytes that were lost and
  // its superblock seals the same metadata, or recovery reads no records there: then nothing may be
  // lost. Else there may be an error.
  bool curable = false;
};

// Damage to the pool `image` of that layout: a bit, a word, a line, or all from some place on.
// REQUIRES: an intact superblock, and nothing has rotted yet.
Rot choose_rot(const pool::Layout& layout, const std::byte* image, emu::sim::Random& choose);
// The same in the log. REQUIRES: the pool was not closed, and a current machine.
Rot choose_log_rot(const pool::Layout& layout, const std::byte* image, emu::sim::Random& choose);

}  // namespace sp3::sim

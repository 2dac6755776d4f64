// Checksums of what tests put into a pool file, as docs/DATA_LAYOUT.md describes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/crc32c.h"
#include "pool/format.h"

namespace sp3::test {

// REQUIRES: as many bytes at `at` as the copy there says that it has.
inline void seal_superblock(std::byte* at) {
  pool::Superblock superblock;
  std::memcpy(&superblock, at, sizeof superblock);
  std::uint32_t crc = 0;
  std::memcpy(at + offsetof(pool::Superblock, crc), &crc, sizeof crc);
  crc = base::crc32c(0, at, superblock.copy_bytes);
  std::memcpy(at + offsetof(pool::Superblock, crc), &crc, sizeof crc);
}

// Of a slab's record and bitmap.
inline std::uint32_t slab_seed(const std::array<std::uint8_t, 16>& uuid, std::uint32_t slab) {
  return base::crc32c(base::crc32c(0, uuid.data(), uuid.size()), &slab, sizeof slab);
}

}  // namespace sp3::test

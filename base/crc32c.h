// CRC-32C (Castagnoli), the checksum of everything sp3 writes. Hardware-accelerated by libisal.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sp3::base {

// The checksum of `bytes` bytes at `data`, continued from `seed` (0 to start). Chaining equals
// checksumming the concatenation.
std::uint32_t crc32c(std::uint32_t seed, const void* data, std::size_t bytes) noexcept;

}  // namespace sp3::base

// Two implementations, chosen by size. libisal's folding loop is the fastest there is for pages,
// but pays for its set-up below 256 bytes, and most log records are that small. There the crc32
// instruction is faster: it takes 8 bytes every 3 cycles in one chain, so three chains run side by
// side and are joined by a carry-less multiplication. Nanoseconds, one thread of a Xeon at 2.3 GHz:
//
//   bytes            40    64    96   128   192   256   320   400   512  1024  4096
//   libisal        13.2  14.7  18.7  22.7  30.7  16.1  23.8  20.4  18.1  22.8  55.6
//   three chains    5.3   8.0   8.1  10.1  12.1  16.1  18.0  22.0  26.0     -     -
//
// Those are for bytes that have been in the cache for a while. A record is checksummed right after
// it was assembled from small stores, which 8-byte loads can be forwarded from and libisal's
// 64-byte loads cannot: in a commit of 330 bytes libisal took 110 ns. Hence a threshold above the
// table's break-even.
#include "base/crc32c.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <immintrin.h>
#include <isa-l/crc.h>

namespace sp3::base {
namespace {

constexpr std::size_t kSmall = 512;  // below this three chains win
constexpr std::size_t kWord = 8;
constexpr std::size_t kHalfWord = 4;
constexpr std::size_t kMaxChain = (kSmall - 1) / (3 * kWord);  // words of one chain

// kShift[n] = x^(64 n - 33) mod P, bit-reflected: multiplying the state of a chain by it (the
// product is one bit short, and crc32 of the product shifts by another 32) moves the chain n words
// ahead.
constexpr auto kShift = [] {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 2 * kMaxChain + 1> shift{};
  constexpr std::size_t kMaxExponent = std::size_t{64} * 2 * kMaxChain - 33;
  std::uint32_t power = std::uint32_t{1} << 31;  // x^0
  for (std::size_t exponent = 0; exponent <= kMaxExponent; ++exponent) {
    if ((exponent + 33) % 64 == 0) shift[(exponent + 33) / 64] = power;
    power = (power >> 1) ^ ((power & 1) != 0 ? kPolynomial : 0);
  }
  return shift;
}();

inline std::uint64_t load_word(const unsigned char* at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, kWord);
  return word;
}

__attribute__((target("pclmul"))) inline std::uint64_t multiply(std::uint64_t state,
                                                                std::uint32_t by) noexcept {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<std::int64_t>(state)),
                                               _mm_cvtsi64_si128(static_cast<std::int64_t>(by)), 0);
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(product));
}

// REQUIRES: bytes < kSmall; the CPU has SSE 4.2 and PCLMUL.
__attribute__((target("sse4.2,pclmul"))) std::uint32_t small_crc(std::uint32_t state,
                                                                 const unsigned char* at,
                                                                 std::size_t bytes) noexcept {
  // A record's checksum begins in the middle of a word. With that half first, every word is read as
  // it was stored, or the read would wait until both its halves have left the store buffer.
  if (bytes >= kHalfWord && reinterpret_cast<std::uintptr_t>(at) % kWord == kHalfWord) {
    std::uint32_t half = 0;
    std::memcpy(&half, at, kHalfWord);
    state = _mm_crc32_u32(state, half);
    at += kHalfWord;
    bytes -= kHalfWord;
  }
  std::uint64_t first = state;
  if (bytes >= 12 * kWord) {  // for less, joining costs more than it gains
    const std::size_t words = bytes / (3 * kWord);
    const std::size_t length = words * kWord;
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    const unsigned char* const last = at + length - kWord;
    for (; at != last; at += kWord) {
      first = _mm_crc32_u64(first, load_word(at));
      second = _mm_crc32_u64(second, load_word(at + length));
      third = _mm_crc32_u64(third, load_word(at + 2 * length));
    }
    first = _mm_crc32_u64(first, load_word(at));
    second = _mm_crc32_u64(second, load_word(at + length));
    const std::uint64_t joined =
        multiply(first, kShift[2 * words]) ^ multiply(second, kShift[words]);
    first = _mm_crc32_u64(third, load_word(at + 2 * length) ^ joined);
    at += 2 * length + kWord;
    bytes -= 3 * length;
  }
  for (; bytes >= kWord; bytes -= kWord, at += kWord) first = _mm_crc32_u64(first, load_word(at));
  auto result = static_cast<std::uint32_t>(first);
  for (; bytes > 0; --bytes, ++at) result = _mm_crc32_u8(result, *at);
  return result;
}

}  // namespace

// Both work on the inverted checksum and leave the inversions of the standard to us; with them, the
// result for one part is the seed for the next.
std::uint32_t crc32c(std::uint32_t seed, const void* data, std::size_t bytes) noexcept {
  std::uint32_t state = ~seed;
  if (bytes < kSmall && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
    return ~small_crc(state, static_cast<const unsigned char*>(data), bytes);
  }
  // libisal wants a mutable pointer, though it only reads, and counts in int.
  constexpr std::size_t kMost = std::size_t{1} << 30;
  auto* at = const_cast<unsigned char*>(static_cast<const unsigned char*>(data));
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, kMost);
    state = crc32_iscsi(at, static_cast<int>(part), state);
    at += part;
    bytes -= part;
  }
  return ~state;
}

}  // namespace sp3::base

// The cache-line flush instructions, usable from a build for the oldest x86-64: inline assembly
// needs no compiler flag, and CPUID tells at run time which of them exist.
//
//   clflush     writes the line back and drops it; ordered with stores and with each other
//   clflushopt  the same, ordered only by fences: several overlap
//   clwb        as clflushopt, but may keep the line in the cache
//   streaming   bypasses the cache; ordered only by fences
#pragma once

#include <cstddef>
#include <cstdint>

#include <emmintrin.h>

#include <sp3/options.h>

#include "base/align.h"
#include "base/assert.h"

namespace sp3::emu {

// Whether this CPU has the instruction. automatic and none: always.
bool cpu_has(FlushInstruction instruction) noexcept;
// The best real flush of this CPU: clwb, else clflushopt, else clflush.
FlushInstruction best_flush() noexcept;

// The "memory" clobbers keep the compiler from moving stores of the line past its flush. The
// hardware orders a flush after earlier stores to the same line, and nothing else: the fence does
// the rest.
inline void clflush(std::byte* line) noexcept {
  __asm__ volatile("clflush %0" : "+m"(*line) : : "memory");
}
inline void clflushopt(std::byte* line) noexcept {
  __asm__ volatile("clflushopt %0" : "+m"(*line) : : "memory");
}
inline void clwb(std::byte* line) noexcept {
  __asm__ volatile("clwb %0" : "+m"(*line) : : "memory");
}
inline void sfence() noexcept { __asm__ volatile("sfence" : : : "memory"); }

// Flushes the lines [first, end). REQUIRES: both at line boundaries; the CPU has the instruction.
inline void flush_lines(FlushInstruction instruction, std::byte* first,
                        const std::byte* end) noexcept {
  switch (instruction) {
    case FlushInstruction::clwb:
      for (std::byte* line = first; line != end; line += base::kCacheLine) clwb(line);
      break;
    case FlushInstruction::clflushopt:
      for (std::byte* line = first; line != end; line += base::kCacheLine) clflushopt(line);
      break;
    case FlushInstruction::clflush:
      for (std::byte* line = first; line != end; line += base::kCacheLine) clflush(line);
      break;
    default:
      break;  // none, and lines that were streamed
  }
}

// Copies past the cache. Whole lines only, so that each leaves the write-combining buffer in one
// piece. REQUIRES: `to` at a line boundary; bytes a multiple of a line.
inline void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  SP3_ASSERT(reinterpret_cast<std::uintptr_t>(to) % base::kCacheLine == 0);
  SP3_ASSERT(bytes % base::kCacheLine == 0);
  for (std::size_t at = 0; at < bytes; at += base::kCacheLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* line = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(line, a);
    _mm_stream_si128(line + 1, b);
    _mm_stream_si128(line + 2, c);
    _mm_stream_si128(line + 3, d);
  }
}

}  // namespace sp3::emu

// How an update becomes a delta.
//
// Lines flushed are what a commit pays for, so an update logs only the 8-byte words it changed:
// runs of <first word, count> and the words. A run's header costs as much as one word, so two runs
// with one unchanged word between them are merged into one; the bytes are the same and the reader
// has less to do. Objects are compared 64 words at a time into a bit mask, on which runs are found
// by arithmetic; a run does not cross such a chunk.
#include "log/record_builder.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <new>

#include <smmintrin.h>

namespace sp3::log {
namespace {

constexpr std::uint32_t kChunkWords = 64;

// All ones in each of two words that are equal.
__m128 equal_pair(const std::byte* before, const std::byte* after) {
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(before));
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(after));
#ifdef __SSE4_1__
  return _mm_castsi128_ps(_mm_cmpeq_epi64(b, a));
#else
  // Half by half, and each half's neighbour too.
  const __m128i halves = _mm_cmpeq_epi32(b, a);
  return _mm_castsi128_ps(_mm_and_si128(halves, _mm_shuffle_epi32(halves, 0xb1)));
#endif
}

// Bit i is set when word i differs. REQUIRES: words <= kChunkWords.
std::uint64_t changed_words(const std::byte* before, const std::byte* after, std::uint32_t words) {
  std::uint64_t equal = 0;
  std::uint32_t i = 0;
  for (; i + 4 <= words; i += 4) {
    const std::size_t at = 8 * std::size_t{i};
    // The low half of each word's mask will do: four of them fill a register.
    const __m128 four = _mm_shuffle_ps(equal_pair(before + at, after + at),
                                       equal_pair(before + at + 16, after + at + 16), 0x88);
    equal |= static_cast<std::uint64_t>(_mm_movemask_ps(four)) << i;
  }
  for (; i < words; ++i) {
    const bool same = std::memcmp(before + 8 * std::size_t{i}, after + 8 * std::size_t{i}, 8) == 0;
    equal |= static_cast<std::uint64_t>(same) << i;
  }
  const std::uint64_t all =
      words == kChunkWords ? ~std::uint64_t{0} : (std::uint64_t{1} << words) - 1;
  return ~equal & all;
}

// Closes the gaps of one word.
std::uint64_t merge_runs(std::uint64_t mask) { return mask | ((mask << 1) & (mask >> 1)); }

std::uint64_t run_bytes(std::uint64_t mask) {
  const int runs = std::popcount(mask & ~(mask << 1));
  return static_cast<std::uint64_t>(runs) * sizeof(DeltaRun) +
         8 * static_cast<std::uint64_t>(std::popcount(mask));
}

// Not std::memcpy: where the compiler knows that it is little, it takes a string instruction, which
// is longer in beginning than most runs are in being copied.
std::byte* copy_words(std::byte* to, const std::byte* from, std::uint32_t words) {
  for (; words >= 2; words -= 2, to += 16, from += 16) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  if (words == 0) return to;
  std::memcpy(to, from, 8);
  return to + 8;
}

// Writes the runs of `mask`; its bit 0 stands for word `base`. Returns the end of what was written.
std::byte* write_runs(std::byte* to, std::uint64_t mask, const std::byte* after,
                      std::uint32_t base) {
  while (mask != 0) {
    const auto first = static_cast<std::uint32_t>(std::countr_zero(mask));
    const auto count = static_cast<std::uint32_t>(std::countr_one(mask >> first));
    const DeltaRun run{base + first, count};
    std::memcpy(to, &run, sizeof run);
    to = copy_words(to + sizeof run, after + 8 * std::size_t{base + first}, count);
    if (first + count >= kChunkWords) break;  // a shift by 64 would be undefined
    mask &= ~std::uint64_t{0} << (first + count);
  }
  return to;
}

}  // namespace

RecordBuilder::~RecordBuilder() { ::operator delete (buffer_, std::align_val_t{kRecordAlignment}); }

void RecordBuilder::grow(std::uint64_t wanted) {
  const std::uint64_t capacity = base::round_up(std::max(wanted, 2 * capacity_), kRecordAlignment);
  auto* larger = static_cast<std::byte*>(::operator new (capacity + kRecordAlignment,  // for seal()
                                                         std::align_val_t{kRecordAlignment}));
  if (buffer_ != nullptr) {
    std::memcpy(larger, buffer_, length_);
    ::operator delete (buffer_, std::align_val_t{kRecordAlignment});
  }
  buffer_ = larger;
  capacity_ = capacity;
}

void RecordBuilder::add_update(std::uint64_t slot, const void* before, const void* after,
                               std::uint32_t size8) {
  SP3_ASSERT(size8 % 8 == 0);
  const auto* was = static_cast<const std::byte*>(before);
  const auto* is = static_cast<const std::byte*>(after);
  // Room for the image: the delta is given up as soon as it would not be smaller.
  ensure(sizeof(WriteHeader) + size8);
  std::byte* to = buffer_ + length_ + sizeof(WriteHeader);
  std::uint64_t bytes = 0;
  const std::uint32_t words = size8 / 8;
  for (std::uint32_t base = 0; base < words; base += kChunkWords) {
    const std::uint32_t count = std::min(words - base, kChunkWords);
    const std::uint64_t mask =
        merge_runs(changed_words(was + 8 * std::size_t{base}, is + 8 * std::size_t{base}, count));
    bytes += run_bytes(mask);
    if (bytes >= size8) return add_image(slot, after, size8);
    to = write_runs(to, mask, is, base);
  }
  begin_write(slot, WriteKind::delta, static_cast<std::uint32_t>(bytes), bytes);
  length_ += bytes;
}

void RecordBuilder::add_runs(std::uint64_t slot, std::span<const ByteRun> runs, const void* after,
                             std::uint32_t size8) {
  SP3_ASSERT(size8 % 8 == 0);
  const auto* is = static_cast<const std::byte*>(after);
  const auto bytes = static_cast<std::uint32_t>(runs_bytes(runs, size8) - sizeof(WriteHeader));
  if (bytes >= size8) return add_image(slot, after, size8);
  std::byte* to = begin_write(slot, WriteKind::delta, bytes, bytes);
  length_ += bytes;
  for (const ByteRun& run : runs) {
    SP3_ASSERT(run.begin < run.end && run.end <= size8);
    const auto first = static_cast<std::uint32_t>(base::round_down(run.begin, 8));
    const auto size = static_cast<std::uint32_t>(base::round_up(run.end, 8)) - first;
    const DeltaRun header{first / 8, size / 8};
    std::memcpy(to, &header, sizeof header);
    std::memcpy(to + sizeof header, is + first, size);
    to += sizeof header + size;
  }
}

void RecordBuilder::seal(Lsn lsn, Stamp stamp, Lsn persisted_upto, std::uint32_t seed,
                         RecordKind kind) noexcept {
  SP3_CHECK(length_ <= std::numeric_limits<std::uint32_t>::max() - kRecordAlignment);
  SP3_CHECK(dependencies_ <= std::numeric_limits<std::uint16_t>::max());
  const auto length = static_cast<std::uint32_t>(length_);
  put_word(0, std::uint64_t{length} << 32);
  put_word(offsetof(RecordHeader, lsn), lsn);
  put_word(offsetof(RecordHeader, stamp), stamp);
  put_word(offsetof(RecordHeader, persisted_upto), persisted_upto);
  static_assert(offsetof(RecordHeader, length) == 4);
  static_assert(offsetof(RecordHeader, dependencies) == offsetof(RecordHeader, writes) + 4);
  static_assert(offsetof(RecordHeader, kind) == offsetof(RecordHeader, writes) + 6);
  put_word(offsetof(RecordHeader, writes),
           writes_ | std::uint64_t{dependencies_} << 32 |
               std::uint64_t{static_cast<std::uint16_t>(kind)} << 48);
  // The padding, and what may come behind it.
  std::memset(buffer_ + length_, 0, kRecordAlignment);
  const std::uint32_t crc = checksum_record(buffer_, length, seed);
  std::memcpy(buffer_, &crc, sizeof crc);
}

}  // namespace sp3::log

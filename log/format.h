// The log, byte for byte: one header shared by the writer, the reader and recovery.
//
// Every session has a log: runs of one or more contiguous segments of the pool's log region, found
// by scanning for their headers. A run starts with a SegmentHeader; records follow at 64-byte
// alignment:
//
//   | SegmentHeader | RecordHeader writes... dependencies... | pad to 64 | RecordHeader ... |
//
// In `file` memory every flush writes whole fresh 4096-byte blocks, so the record after a flush
// starts at the next block. A reader that finds no valid record with the next LSN at the 64-byte
// position looks at the next block boundary too.
//
// Every checksum is seeded with {pool UUID, session, generation} (seed()), and a scan accepts only
// the exact next LSN with a larger stamp: neither a recycled segment nor log bytes inside user data
// can pass for a record. There is no commit mark; a record is complete when its checksum holds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/crc32c.h"
#include "base/mutant.h"
#include "base/tid.h"
#include "emu/memory.h"
#include "pool/format.h"

namespace sp3::log {

using base::Lsn;
using base::SessionId;
using base::Stamp;

inline constexpr std::uint64_t kRecordAlignment = 64;
// On file memory a record that follows a flush begins a new block; a reader looks there too.
using emu::kFileBlock;
inline constexpr std::uint32_t kSegmentMagic = 0x47533353;  // "S3SG"

struct SegmentHeader {
  std::uint32_t crc = 0;  // of the rest, seeded with seed() and then the segment's own number
  std::uint32_t magic = kSegmentMagic;
  std::uint64_t generation = 0;
  std::uint64_t first_lsn = 0;  // LSN of the first record in this run
  // the superblock's when the run was started; larger is damage
  std::uint64_t checkpoint_number = 0;
  std::uint32_t segments = 1;  // contiguous segments in this run
  std::uint16_t session = 0;
  std::uint16_t reserved = 0;
  std::array<std::uint64_t, 3> unused{};
};
static_assert(sizeof(SegmentHeader) == 64);

enum class RecordKind : std::uint16_t {
  transaction = 1,
  // Written by the flusher, of sessions that fell idle or began a run: its Dependency entries mean
  // <session, LSN up to which its log is durable>, so that damage to acknowledged records is told
  // from a torn tail.
  watermark = 2,
};

struct RecordHeader {
  std::uint32_t crc = 0;     // of everything after this field up to length, seeded with seed()
  std::uint32_t length = 0;  // bytes from the start of this header; a multiple of 8
  std::uint64_t lsn = 0;
  std::uint64_t stamp = 0;
  // every record of this session up to this LSN was durable at sealing
  std::uint64_t persisted_upto = 0;
  std::uint32_t writes = 0;
  std::uint16_t dependencies = 0;
  std::uint16_t kind = 0;  // RecordKind
};
static_assert(sizeof(RecordHeader) == 40);

enum class WriteKind : std::uint16_t {
  image = 1,    // payload: the whole object
  delta = 2,    // payload: DeltaRuns, each followed by its words
  make = 3,     // payload: MakePrefix, then the whole object
  destroy = 4,  // no payload
  range = 5,    // reserved: ranges are written as deltas
};

struct WriteHeader {
  std::uint64_t slot = 0;   // file offset of the object's home
  std::uint32_t bytes = 0;  // payload bytes that follow; a multiple of 8
  std::uint16_t kind = 0;   // WriteKind
  std::uint16_t reserved = 0;
};
static_assert(sizeof(WriteHeader) == 16);

// What recovery needs to carve the slab of a new object if no checkpoint has done so.
using MakePrefix = pool::ObjectClass;

// `count` changed 8-byte words from word `first` of the object on.
struct DeltaRun {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
static_assert(sizeof(DeltaRun) == 8);

struct Dependency {
  std::uint64_t stamp = 0;
  std::uint16_t session = 0;
  std::array<std::uint16_t, 3> reserved{};
};
static_assert(sizeof(Dependency) == 16);

inline std::uint32_t seed(const std::array<std::uint8_t, 16>& uuid, SessionId session,
                          std::uint64_t generation) {
  struct {
    std::array<std::uint8_t, 16> uuid;
    std::uint64_t session, generation;
  } const material{uuid, session,
                   base::mutant(base::Mutant::recovery_ignores_generation) ? 0 : generation};
  return base::crc32c(0, &material, sizeof material);
}

inline std::uint32_t checksum(const SegmentHeader& header, std::uint32_t seed,
                              std::uint32_t segment_number) {
  const std::uint32_t with_place = base::crc32c(seed, &segment_number, sizeof segment_number);
  return base::crc32c(with_place, reinterpret_cast<const std::byte*>(&header) + 4,
                      sizeof header - 4);
}

// REQUIRES: record points at a whole record of header.length bytes.
inline std::uint32_t checksum_record(const std::byte* record, std::uint32_t length,
                                     std::uint32_t seed) {
  return base::crc32c(seed, record + 4, length - 4);
}

}  // namespace sp3::log

// The pool file, byte for byte: one header shared by everything that reads or writes it.
// docs/DATA_LAYOUT.md draws it. All integers are little-endian; all checksums CRC-32C.
//
//   +--------------+--------------+-------------+-------------+-----------+----------------------+
//   | superblock A | superblock B | directory A | directory B | log       | slabs                |
//   +--------------+--------------+-------------+-------------+-----------+----------------------+
//
// - A superblock copy is superblock_bytes(max_sessions) long: the fixed part, then one head per
//   session.
// - A directory copy has one SlabRecord per slab. Copy X of the directory and copy X of every
//   slab's bitmap belong to superblock X: they are durable before that superblock is written. So
//   whatever superblock is valid, its metadata is exactly as it was sealed, and a checksum failure
//   is damage.
// - Both copies are written, A then B, by every checkpoint before anything is recycled. With equal
//   numbers B is current: A's metadata may be under way.
// - The log is segments of segment_size (log/format.h).
// - A carved slab holds objects of one type: bitmap A, bitmap B, then the slots (SlabShape).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/align.h"

namespace sp3::pool {

inline constexpr std::uint64_t kMagic = 0x31304C4F4F503353ULL;  // "S3POOL01" in the file
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint32_t kKnownRoCompat = 0;
inline constexpr std::uint32_t kKnownIncompat = 0;
inline constexpr std::uint64_t kBlock = 4096;  // regions start at multiples of this
inline constexpr std::uint32_t kMinSegmentSize = 4096;
inline constexpr std::uint32_t kMinSlabSize = 4096;
// Every number of sessions in the file counts the library's own, which writes the watermarks
// (docs/adr/0008); every number a user gives or gets leaves it out.
inline constexpr std::uint32_t kMaxSessions = 16384;
inline constexpr std::uint32_t kOwnSessions = 1;
inline constexpr std::uint32_t kMaxUserSessions = kMaxSessions - kOwnSessions;

enum class State : std::uint32_t {
  clean = 1,  // every object is home; the log holds nothing
  open = 2,   // opened and not closed: recovery reads the log
};

enum class ExtentKind : std::uint32_t {
  unused = 0,
  superblocks = 1,
  directory = 2,
  log = 3,
  slabs = 4
};

// Format 1 has exactly one extent of each kind; the table is there so that a pool can grow.
struct Extent {
  std::uint32_t kind = 0;
  std::uint32_t reserved = 0;
  std::uint64_t offset = 0;  // bytes from the start of the file
  std::uint64_t length = 0;  // bytes
};
static_assert(sizeof(Extent) == 24);

struct Superblock {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kFormatVersion;
  std::uint32_t crc = 0;  // of the whole copy, heads included, with this field zero
  std::array<std::uint8_t, 16> uuid{};
  std::uint32_t compat = 0;             // unknown bits: ignore
  std::uint32_t ro_compat = 0;          // unknown bits: may be read, not written
  std::uint32_t incompat = 0;           // unknown bits: refuse
  std::uint32_t copy_bytes = 0;         // size of a superblock copy
  std::uint64_t pool_size = 0;          // bytes of the file
  std::uint64_t number = 0;             // grows with every write; the larger valid copy is current
  std::uint64_t generation = 0;         // grows with every opening; seeds every log checksum
  std::uint64_t checkpoint_number = 0;  // grows with every checkpoint
  std::uint64_t floor = 0;              // L: every record with a stamp up to this is home
  std::uint64_t largest_stamp = 0;      // of all on media, those recovery dropped included
  std::uint32_t state = 0;              // State
  std::uint32_t max_sessions = 0;
  std::uint32_t segment_size = 0;
  std::uint32_t slab_size = 0;
  std::array<Extent, 6> extents{};
  std::array<std::uint64_t, 2> reserved{};
  // Followed by max_sessions x uint64: heads. heads[s] is the LSN of session s's first record above
  // the floor in this generation: where recovery starts to read its log. 1 in a fresh generation.
};
static_assert(sizeof(Superblock) == 272);
static_assert(offsetof(Superblock, crc) == 12);
static_assert(offsetof(Superblock, number) == 56);

constexpr bool is_valid_state(std::uint32_t state) {
  return state == static_cast<std::uint32_t>(State::clean) ||
         state == static_cast<std::uint32_t>(State::open);
}
constexpr bool is_clean(const Superblock& superblock) {
  return superblock.state == static_cast<std::uint32_t>(State::clean);
}

constexpr std::uint64_t superblock_bytes(std::uint64_t max_sessions) {
  return base::round_up(sizeof(Superblock) + 8 * max_sessions, kBlock);
}

// What the objects of one slab are.
struct ObjectClass {
  std::uint64_t type = 0;       // fingerprint of the type; 0: none
  std::uint32_t type_size = 0;  // sizeof the type
  std::uint32_t slot_size = 0;  // slot to slot: slot_size_of(type_size)

  friend bool operator==(const ObjectClass&, const ObjectClass&) = default;
};
static_assert(sizeof(ObjectClass) == 16);  // log records hold it as it is

// Slot to slot. The size of a type is a multiple of its alignment, so all slots are aligned.
constexpr std::uint64_t slot_size_of(std::uint64_t type_size) {
  return base::round_up(type_size, 8);
}

constexpr bool has_possible_slots(const ObjectClass& c) {
  return c.type_size != 0 && c.slot_size == slot_size_of(c.type_size);
}

// What one slab is, in both directory copies.
struct SlabRecord {
  std::uint64_t type = 0;  // of the ObjectClass, as the next two; 0: the slab is free
  std::uint32_t type_size = 0;
  std::uint32_t slot_size = 0;
  std::uint32_t live = 0;  // set bits in the bitmap; 0: the bitmap's bytes mean nothing
  // Of the bitmap copy that belongs to this directory copy, seeded as crc; 0 if live is.
  std::uint32_t bitmap_crc = 0;
  std::uint16_t features = 0;  // reserved: per-object checksums
  std::uint16_t reserved = 0;
  std::uint32_t crc = 0;  // of this record with this field zero, seeded with {uuid, slab number}
};
static_assert(sizeof(SlabRecord) == 32);

constexpr ObjectClass class_of(const SlabRecord& record) {
  return {record.type, record.type_size, record.slot_size};
}
// Of a slab of such objects; the directory fills in the rest.
constexpr SlabRecord record_of(const ObjectClass& c) {
  SlabRecord record;
  record.type = c.type;
  record.type_size = c.type_size;
  record.slot_size = c.slot_size;
  return record;
}

// One copy. REQUIRES: slabs fits in 32 bits.
constexpr std::uint64_t directory_bytes(std::uint64_t slabs) {
  return base::round_up(slabs * sizeof(SlabRecord), kBlock);
}

// Where things are inside a slab of objects of `slot_size` bytes.
struct SlabShape {
  std::uint32_t slots = 0;
  // Of one copy; a multiple of 64, so that copies share no cache line.
  std::uint32_t bitmap_bytes = 0;
  std::uint32_t data = 0;  // offset of slot 0 from the start of the slab; a multiple of 64

  [[nodiscard]] constexpr std::uint64_t bitmap(int copy) const {
    return static_cast<std::uint64_t>(copy) * bitmap_bytes;
  }
};

constexpr SlabShape slab_shape(std::uint32_t slab_size, std::uint32_t slot_size) {
  SlabShape shape;
  // A first guess without bitmaps is too large; step down to the most that fit.
  std::uint64_t slots = slab_size / slot_size;
  while (slots > 0) {
    const std::uint64_t bitmap = base::round_up((slots + 7) / 8, base::kCacheLine);
    const std::uint64_t used = 2 * bitmap + slots * slot_size;
    if (used <= slab_size) {
      shape.bitmap_bytes = static_cast<std::uint32_t>(bitmap);
      break;
    }
    // k slots less free at most k (slot_size + 1) bytes and a line of each bitmap: stepping by what
    // that bound needs at least never steps over the answer.
    const std::uint64_t excess = used - slab_size;
    const std::uint64_t lines = 2 * base::kCacheLine;
    const std::uint64_t step = excess > lines ? (excess - lines) / (slot_size + 1) : 0;
    slots -= step > 1 ? step : 1;
  }
  shape.slots = static_cast<std::uint32_t>(slots);
  shape.data = 2 * shape.bitmap_bytes;
  return shape;
}

}  // namespace sp3::pool

// Reading and writing the two superblock copies.
//
// Thread safety: read functions by any thread; write_superblock by one thread at a time.
// Invariant: equal copies are overwritten A first, others the one that is not current first, and
//   both before anything is recycled. So a crash leaves one of: both at number n; A torn, B at n; A
//   at n + 1, B at n; A at n + 1, B torn; both at n + 1 (or the same with the names exchanged, if
//   recovery itself is cut short).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/tid.h"
#include "emu/memory.h"
#include "pool/format.h"
#include "pool/layout.h"

namespace sp3::pool {

// A superblock with the heads that follow it.
struct SuperblockImage {
  Superblock fixed;
  std::vector<base::Lsn> heads;  // one per session
};

// No superblock copy of any pool lies beyond this many bytes.
inline constexpr std::uint64_t kSuperblocksEnd = 2 * superblock_bytes(kMaxSessions);

// What was found in the file. With equal numbers copy B is current: a checkpoint that was cut short
// may have begun to overwrite the metadata that belongs to A, never that of B
// (docs/DATA_LAYOUT.md).
struct SuperblockChoice {
  SuperblockImage image;    // the current one: the valid copy with the larger number
  int copy = 0;             // which copy that is
  bool both_equal = false;  // the other copy is valid and identical
  // What the other copy says of its metadata.
  enum class Other : std::uint8_t {
    // Valid, it seals the same metadata, of which every change has a checkpoint's number: it is
    // identical, or an opening was cut short between the two.
    vouches,
    // Not valid: damaged, or torn as it was written, when its metadata was complete.
    torn,
    older,  // valid, it seals what was before
  };
  Other other = Other::older;
};

// Reads and verifies both copies from the first bytes of a file of `file_size` bytes, which may be
// shorter than a pool: kSuperblocksEnd of them, or all. Never reads beyond them. Errors:
// not_a_pool, wrong_version, wrong_size, damaged_superblock: the most specific that holds for both
// copies; damaged_superblock also where both are intact, but not of one pool.
SuperblockChoice read_superblocks(const std::byte* prefix, std::uint64_t prefix_bytes,
                                  std::uint64_t file_size, const std::string& path);

// One copy, looked at on its own.
struct SuperblockCopy {
  enum class Verdict {
    intact,           // checksum and numbers hold (features may be unknown)
    no_magic,         // something else is there, or nothing
    cut_off,          // the bytes end inside it
    unknown_version,  // another format
    damaged,
  };
  Verdict verdict = Verdict::no_magic;
  bool sealed = false;       // the checksum of this format holds, whatever else is wrong
  std::uint64_t offset = 0;  // of the copy, or of the field that is wrong
  std::string what, wanted, found;
  SuperblockImage image;  // heads only if intact
};
SuperblockCopy examine_superblock(const std::byte* prefix, std::uint64_t prefix_bytes,
                                  std::uint64_t offset);

// A byte in which two superblocks differ though it never changes in the life of a pool; of the UUID
// or the geometry if those differ.
std::optional<std::uint64_t> find_constant_difference(const Superblock& a, const Superblock& b);

// Whether `superblock` needs features that this library does not know in order to be read.
bool has_unknown_features(const Superblock& superblock);

// Seals (checksum) and stores one copy, and flushes it. The caller fences.
void write_superblock(emu::Memory& memory, const Layout& layout, int copy,
                      const SuperblockImage& image, emu::FlushCounts& counts);

}  // namespace sp3::pool

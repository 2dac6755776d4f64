// SlabDirectory: what each slab holds, and which of its slots, as last made durable.
//
// Thread safety: const members by any thread, but store() and what mends by one thread at a time.
// Invariant: copy X of the directory and of every bitmap agree with superblock X (pool/format.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sp3/report.h>

#include "emu/memory.h"
#include "pool/format.h"
#include "pool/layout.h"

namespace sp3::pool {

// A slab's allocation bitmap: bit i of word i/64 is set when slot i holds an object.
using Bitmap = std::vector<std::uint64_t>;

class SlabDirectory {
 public:
  // For checksums and messages.
  struct Identity {
    std::array<std::uint8_t, 16> uuid{};
    std::string path;
  };

  // Reads and verifies directory copy `copy`. Errors: damaged_metadata (offset of the record).
  static SlabDirectory load(const emu::Memory& memory, const Layout& layout, Identity identity,
                            int copy);

  // The same, but where a record of that copy is damaged the other copy's will do, if it is sound.
  // REQUIRES: PoolFile::both_vouch(). The other copy may have been rewritten
  // in part since: then its record is of a state that replaying the log leads to as well.
  static SlabDirectory load_either(const emu::Memory& memory, const Layout& layout,
                                   Identity identity, int copy);

  [[nodiscard]] const SlabRecord& record(std::uint32_t slab) const { return records_[slab]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(records_.size()); }

  // Reads copy `copy` but takes damaged records as free and tells of each, one by one: they may be
  // as many as there are slabs.
  using TellDamage = std::function<void(std::uint32_t slab, Damage damage)>;
  static SlabDirectory load_sound(const emu::Memory& memory, const Layout& layout,
                                  Identity identity, int copy, const TellDamage& tell);

  // Tells of each record that is another in `other`, which was read from copy `copy` of the same
  // clean pool. Each record seals its bitmap, so equal records seal equal bitmaps.
  void find_differences(const SlabDirectory& other, int copy, const TellDamage& tell) const;

  // Reads and verifies one slab's bitmap, sized SlabShape::bitmap_bytes / 8 words, from copy
  // `copy`. All zero if the record says that the slab is empty. Errors: damaged_metadata. REQUIRES:
  // record(slab).type != 0.
  [[nodiscard]] Bitmap load_bitmap(const emu::Memory& memory, std::uint32_t slab, int copy) const;

  // The same, but where that copy is damaged the other will do, if it holds the bytes that the
  // record seals. REQUIRES: PoolFile::shares_bitmaps().
  [[nodiscard]] Bitmap load_either_bitmap(const emu::Memory& memory, std::uint32_t slab,
                                          int copy) const;

  // The same as load_bitmap, but a damaged bitmap is described in `damage` and nullopt returned.
  [[nodiscard]] std::optional<Bitmap> load_sound_bitmap(const emu::Memory& memory,
                                                        std::uint32_t slab, int copy,
                                                        std::vector<Damage>& damage) const;

  // Makes `record` (checksums and live count are filled in here from the bitmap) the slab's
  // description in copy `copy`, with its bitmap; stores and flushes, does not fence. type 0 frees
  // the slab (bitmap empty). Call once per copy with equal arguments. REQUIRES: a slab is empty or
  // free, in both copies and sealed by both superblocks, before it gets another slot size or
  // objects of such a size are written to it.
  void store(emu::Memory& memory, int copy, std::uint32_t slab, SlabRecord record,
             std::span<const std::uint64_t> bitmap, emu::FlushCounts& counts);

  // Whether copy `copy` of the slab's record or bitmap is not what this directory has.
  [[nodiscard]] bool is_damaged(const emu::Memory& memory, int copy, std::uint32_t slab) const;

  // Where the bitmap is damaged, stores what load_either_bitmap takes for it. Flushes it in any
  // case: a process that was killed as it mended it may have left it in caches. Does not fence.
  // REQUIRES: as load_either_bitmap. Errors: damaged_metadata (nothing was stored).
  void mend_bitmap(emu::Memory& memory, int copy, std::uint32_t slab,
                   emu::FlushCounts& counts) const;

  // The same for the record, with what load_either takes for it.
  void mend_record(emu::Memory& memory, int copy, std::uint32_t slab,
                   emu::FlushCounts& counts) const;

  // Of a slab whose bitmap in copy 1 - `copy` is damaged: stores the record into copy `copy`, and
  // that bitmap's bytes unless it has one there that fits the record. Flushes, does not fence.
  void carry(emu::Memory& memory, int copy, std::uint32_t slab, emu::FlushCounts& counts) const;

  // Writes a directory copy of free slabs (pool creation): stores and flushes.
  static void format(emu::Memory& memory, const Layout& layout, const Identity& identity, int copy,
                     emu::FlushCounts& counts);

 private:
  SlabDirectory(const Layout& layout, Identity identity);

  // The seed of the checksums of a slab's record and bitmap: neither passes for another slab's or
  // pool's.
  [[nodiscard]] std::uint32_t seed(std::uint32_t slab) const;
  static SlabDirectory read(const emu::Memory& memory, const Layout& layout, Identity identity,
                            int copy);
  [[nodiscard]] std::optional<Damage> find_damage(std::uint32_t slab, int copy) const;
  [[nodiscard]] std::optional<Damage> find_bitmap_damage(std::uint32_t slab, int copy,
                                                         const Bitmap& bitmap) const;
  [[nodiscard]] Bitmap read_bitmap(const emu::Memory& memory, std::uint32_t slab, int copy) const;
  [[nodiscard]] std::uint64_t record_offset(std::uint32_t slab, int copy) const {
    return layout_.directory_offset[copy] + std::uint64_t{slab} * sizeof(SlabRecord);
  }

  Layout layout_;
  Identity identity_;
  std::uint32_t pool_seed_;
  std::vector<SlabRecord> records_;
};

}  // namespace sp3::pool

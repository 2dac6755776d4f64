#include "recovery/finish.h"

#include <algorithm>

#include "base/mutant.h"
#include "emu/step.h"
#include "recovery/durable.h"

namespace sp3::recovery {

using base::Mutant;
using base::mutant;

namespace {

void fence(pool::PoolFile& file, emu::FlushCounts& counts) {
  require_durable(file, file.memory().fence(counts),
                  "the recovered pool could not be made durable");
}

// Stores the description of every slab that `plan` (if any) changed, and with `all` of every other
// too.
void store_metadata(pool::PoolFile& file, pool::SlabDirectory& directory, const SlabPlan* plan,
                    int copy, bool all, emu::FlushCounts& counts) {
  emu::step(copy == 0 ? emu::Step::recovery_metadata_a : emu::Step::recovery_metadata_b);
  for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
    if (plan != nullptr && plan->changed(slab)) {
      directory.store(file.memory(), copy, slab, plan->record(slab), plan->bitmap(slab), counts);
    } else if (all) {
      const pool::SlabRecord record = directory.record(slab);
      pool::Bitmap bitmap;
      if (record.type != 0)
        bitmap = directory.load_bitmap(file.memory(), slab, file.current_copy());
      directory.store(file.memory(), copy, slab, record, bitmap, counts);
    }
  }
  if (mutant(all ? Mutant::no_fence_recovered_metadata_first
                 : Mutant::no_fence_recovered_metadata_second)) {
    return;
  }
  fence(file, counts);  // (P8, P10) a copy's metadata before the superblock that vouches for it
}

// (P12) A process that was killed may have left a superblock in caches only. The other copy must not
// be touched before the one that was read is on media, or a power cut could go back to the other.
void settle_superblocks(pool::PoolFile& file) {
  if (mutant(Mutant::recovery_does_not_settle_superblocks)) return;
  const pool::Layout& layout = file.layout();
  emu::FlushCounts counts;
  for (const int copy : {0, 1}) {
    if (mutant(Mutant::no_flush_found_superblocks)) break;
    file.memory().flush_found(layout.superblock_offset(copy), layout.superblock_bytes, counts);
  }
  if (!mutant(Mutant::no_fence_found_superblocks)) fence(file, counts);
}

// (P8) to (P11) of docs/RECOVERY.md.
void write_both(pool::PoolFile& file, pool::SlabDirectory& directory, const SlabPlan* plan,
                const pool::SuperblockImage& image) {
  settle_superblocks(file);
  const int first = mutant(Mutant::recovery_overwrites_current_copy) ? file.current_copy()
                                                                     : 1 - file.current_copy();
  for (const int copy : {first, 1 - first}) {
    emu::FlushCounts counts;
    // A copy that was not equal may be torn anywhere; and where a crash interrupted a checkpoint
    // between a copy's metadata and its superblock, equal superblocks say nothing about the rest.
    // So it is rewritten whole from what was read, slab by slab: replay may have written objects
    // over the old bitmaps of a slab carved anew.
    const bool equal = file.copies_equal() &&
                       (plan == nullptr || mutant(Mutant::recovery_trusts_equal_superblocks));
    const bool all = copy == first && !equal;
    if (all || plan != nullptr) store_metadata(file, directory, plan, copy, all, counts);
    emu::step(copy == 0 ? emu::Step::recovery_superblock_a : emu::Step::recovery_superblock_b);
    pool::write_superblock(file.memory(), file.layout(), copy, image, counts);
    if (mutant(copy == first ? Mutant::no_fence_recovered_superblock_first
                             : Mutant::no_fence_recovered_superblock_second)) {
      continue;
    }
    fence(file, counts);  // (P9, P11) one whole copy before the other is touched, both before use
  }
}

// Above the superblock's generation, and above every one that the log's headers tell of. Where the
// superblocks are older than the log (a backup, or a disk that lost the writes of both) a log of the
// next generation may be there already: damage, given up with accept_loss. In its own generation it
// would be believed again at the next crash, in the place of what was acknowledged since.
pool::SuperblockImage next_generation(const pool::PoolFile& file, const log::Newest& newest) {
  pool::SuperblockImage image = file.superblock();
  image.fixed.generation = std::max(image.fixed.generation, newest.generation) + 1;
  image.fixed.number += 1;
  image.fixed.state = static_cast<std::uint32_t>(pool::State::open);
  std::fill(image.heads.begin(), image.heads.end(), base::Lsn{1});
  return image;
}

}  // namespace

pool::SuperblockImage start_generation(pool::PoolFile& file) {
  pool::SuperblockImage image = next_generation(file, {});
  auto directory =
      pool::SlabDirectory::load(file.memory(), file.layout(), file.identity(), file.current_copy());
  write_both(file, directory, nullptr, image);
  return image;
}

pool::SuperblockImage finish_recovery(pool::PoolFile& file, pool::SlabDirectory& directory,
                                      const SlabPlan& plan, base::Stamp floor,
                                      const log::Newest& newest) {
  pool::SuperblockImage image = next_generation(file, newest);
  image.fixed.checkpoint_number =
      std::max(image.fixed.checkpoint_number, newest.checkpoint_number) + 1;
  image.fixed.floor = std::max<std::uint64_t>(image.fixed.floor, floor);
  image.fixed.largest_stamp = std::max<std::uint64_t>(image.fixed.largest_stamp, image.fixed.floor);
  write_both(file, directory, &plan, image);
  return image;
}

}  // namespace sp3::recovery

#include "recovery/finish.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <sp3/error.h>

#include "base/mutant.h"
#include "emu/step.h"
#include "recovery/durable.h"

namespace sp3::recovery {

using base::Mutant;
using base::mutant;

namespace {

void fence(pool::PoolFile& file, emu::FlushCounts& counts) {
  require_durable(file, file.memory().fence(counts),
                  "the pool's metadata could not be made durable");
}

pool::Bitmap load_bitmap(const pool::PoolFile& file, const pool::SlabDirectory& directory,
                         std::uint32_t slab, int copy) {
  return file.shares_bitmaps() ? directory.load_either_bitmap(file.memory(), slab, copy)
                               : directory.load_bitmap(file.memory(), slab, copy);
}

// Stores the description of every slab that `plan` (if any) changed, and if `all_from` is a copy,
// of every other too, as that copy has it.
void store_metadata(pool::PoolFile& file, pool::SlabDirectory& directory, const SlabPlan* plan,
                    int copy, std::optional<int> all_from, emu::FlushCounts& counts) {
  emu::step(copy == 0 ? emu::Step::recovery_metadata_a : emu::Step::recovery_metadata_b);
  for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
    if (plan != nullptr && plan->changed(slab)) {
      directory.store(file.memory(), copy, slab, plan->record(slab), plan->bitmap(slab), counts);
    } else if (all_from) {
      const pool::SlabRecord record = directory.record(slab);
      pool::Bitmap bitmap;
      if (record.type != 0) bitmap = load_bitmap(file, directory, slab, *all_from);
      directory.store(file.memory(), copy, slab, record, bitmap, counts);
    }
  }
  if (mutant(all_from ? Mutant::no_fence_recovered_metadata_first
                      : Mutant::no_fence_recovered_metadata_second)) {
    return;
  }
  fence(file, counts);  // (P8, P10) a copy's metadata before the superblock that vouches for it
}

// (P12) A process that was killed may have left a superblock in caches only. The other copy must
// not be touched before the one that was read is on media, or a power cut could go back to the
// other. A process killed as it opened a closed pool may have left what it mended of the directory
// so.
void settle(pool::PoolFile& file, bool opens) {
  if (mutant(Mutant::recovery_does_not_settle_superblocks)) return;
  const pool::Layout& layout = file.layout();
  emu::FlushCounts counts;
  for (const int copy : {0, 1}) {
    if (mutant(Mutant::no_flush_found_superblocks)) break;
    file.memory().flush_found(layout.superblock_offset(copy), layout.superblock_bytes, counts);
  }
  const bool was_open_before = file.superblock().fixed.generation > 1;  // else it is empty
  for (const int copy : {0, 1}) {
    if (!opens || !was_open_before || mutant(Mutant::recovery_trusts_mended_metadata)) break;
    file.memory().flush_found(layout.directory_offset[copy], layout.directory_bytes, counts);
  }
  if (!mutant(Mutant::no_fence_found_superblocks)) fence(file, counts);
}

enum class Mend : std::uint8_t { nothing, current, both };

// (P13) What was read is in these copies too, and not only in the other, before that is touched:
// where one copy of a record or bitmap is damaged, power could fail in the middle of rewriting the
// only good one.
void mend(pool::PoolFile& file, const pool::SlabDirectory& directory, Mend what) {
  if (what == Mend::nothing || mutant(Mutant::recovery_does_not_mend)) return;
  emu::FlushCounts counts;
  for (const int copy : {0, 1}) {
    if (what == Mend::current && copy != file.current_copy()) continue;
    for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
      if (mutant(Mutant::recovery_trusts_mended_metadata) &&
          !directory.is_damaged(file.memory(), copy, slab)) {
        continue;
      }
      directory.mend(file.memory(), copy, slab, counts);
    }
  }
  if (!mutant(Mutant::no_fence_mended_metadata)) fence(file, counts);
}

// (P8) to (P13) of docs/RECOVERY.md. `directory` is that of the current copy; `whole`: the other
// copy is no better than bytes; `to_mend`: what may be damaged.
void write_both(pool::PoolFile& file, pool::SlabDirectory& directory, bool whole, Mend to_mend,
                const SlabPlan* plan, const pool::SuperblockImage& image) {
  const int sound = file.current_copy();
  const bool opens = plan == nullptr;
  if (!(opens && mutant(Mutant::opening_does_not_settle_superblocks))) settle(file, opens);
  mend(file, directory, to_mend);
  const int first = mutant(Mutant::recovery_overwrites_current_copy) ? sound : 1 - sound;
  for (const int copy : {first, 1 - first}) {
    emu::FlushCounts counts;
    // It is rewritten from what was read, slab by slab: replay may have written objects over the
    // old bitmaps of a slab carved anew.
    const std::optional<int> all_from =
        copy == first && whole ? std::optional<int>(sound) : std::nullopt;
    if (all_from || plan != nullptr) store_metadata(file, directory, plan, copy, all_from, counts);
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
// superblocks are older than the log (a backup, or a disk that lost the writes of both) a log of
// the next generation may be there already: damage, given up with accept_loss. In its own
// generation it would be believed again at the next crash, in the place of what was acknowledged
// since.
pool::SuperblockImage next_generation(const pool::PoolFile& file, const log::Newest& newest) {
  pool::SuperblockImage image = file.superblock();
  image.fixed.generation = std::max(image.fixed.generation, newest.generation) + 1;
  image.fixed.number += 1;
  image.fixed.state = static_cast<std::uint32_t>(pool::State::open);
  std::fill(image.heads.begin(), image.heads.end(), base::Lsn{1});
  return image;
}

// Each record seals its bitmap, so equal records seal equal bitmaps.
void require_equal(const pool::PoolFile& file, const pool::SlabDirectory& a,
                   const pool::SlabDirectory& b) {
  for (std::uint32_t slab = 0; slab < a.size(); ++slab) {
    const pool::SlabRecord& one = a.record(slab);
    if (std::memcmp(&one, &b.record(slab), sizeof one) == 0) continue;
    ErrorFacts facts;
    facts.path = file.path();
    facts.offset =
        file.layout().directory_offset[0] + std::uint64_t{slab} * sizeof(pool::SlabRecord);
    throw Error(ErrorCode::damaged_metadata,
                fmt::format("the copies of the record of slab {} differ in a clean pool", slab),
                std::move(facts));
  }
}

// Whether the copies of a clean pool's directory differ, which they do only where one is damaged.
// The pool that is opened reads copy A and a recovery reads B: damage would be found when it is
// needed, after the pool was declared open, and by then there may be no other. Bitmaps are not read
// here, which would take as long as the pool is large: index::SlabTable mends those it reads.
bool differ(const pool::PoolFile& file, const pool::SlabDirectory& directory) {
  const pool::Layout& layout = file.layout();
  const std::byte* const view = file.memory().view();
  const std::size_t bytes = directory.size() * sizeof(pool::SlabRecord);
  if (std::memcmp(view + layout.directory_offset[0], view + layout.directory_offset[1], bytes) ==
      0) {
    return false;
  }
  require_equal(file, directory,
                pool::SlabDirectory::load_either(file.memory(), layout, file.identity(),
                                                 1 - file.current_copy()));
  return true;
}

// What is rewritten or mended needs every bitmap: all are verified before the first store.
void require_bitmaps(const pool::PoolFile& file, const pool::SlabDirectory& directory) {
  for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
    if (directory.record(slab).type == 0) continue;
    (void)load_bitmap(file, directory, slab, file.current_copy());
  }
}

}  // namespace

pool::SuperblockImage start_generation(pool::PoolFile& file) {
  pool::SuperblockImage image = next_generation(file, {});
  pool::SlabDirectory directory = file.directory();
  const bool whole = !file.both_vouch();
  const bool damaged = !whole && differ(file, directory);
  if (whole || damaged) require_bitmaps(file, directory);
  Mend to_mend = Mend::nothing;
  if (damaged) to_mend = Mend::both;
  if (whole && file.shares_bitmaps()) to_mend = Mend::current;
  write_both(file, directory, whole, to_mend, nullptr, image);
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
  // A copy that was not equal may be torn anywhere; and where a crash interrupted a checkpoint
  // between a copy's metadata and its superblock, equal superblocks say nothing about the rest.
  const bool whole = !(file.copies_equal() && mutant(Mutant::recovery_trusts_equal_superblocks));
  const Mend to_mend = file.shares_bitmaps() ? Mend::current : Mend::nothing;
  write_both(file, directory, whole, to_mend, &plan, image);
  return image;
}

}  // namespace sp3::recovery

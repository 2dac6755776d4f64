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
  return file.copies_equal() ? directory.load_either_bitmap(file.memory(), slab, copy)
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
// other.
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

// (P8) to (P11) of docs/RECOVERY.md. `directory` is that of copy `sound`; `whole`: the other copy
// is no better than bytes.
void write_both(pool::PoolFile& file, pool::SlabDirectory& directory, int sound, bool whole,
                const SlabPlan* plan, const pool::SuperblockImage& image) {
  const bool opens = plan == nullptr;
  if (!(opens && mutant(Mutant::opening_does_not_settle_superblocks))) settle_superblocks(file);
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

pool::SlabDirectory load(const pool::PoolFile& file, int copy) {
  return pool::SlabDirectory::load(file.memory(), file.layout(), file.identity(), copy);
}

std::optional<pool::SlabDirectory> load_if_sound(const pool::PoolFile& file, int copy) {
  try {
    return load(file, copy);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::damaged_metadata) throw;
    return std::nullopt;
  }
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

// The metadata of a clean pool to go by.
struct Sound {
  pool::SlabDirectory directory;
  int copy;
  bool both;  // the other copy is as good
};

// Equal clean superblocks vouch for both copies, so either can stand in for the other. The pool
// that is opened reads copy A and a recovery reads B: one that is damaged would be found when it is
// needed, after the pool was declared open, and by then there may be no other. Bitmaps are not read
// here, which would take as long as the pool is large: they stand in for each other whenever one is
// read.
Sound find_sound(const pool::PoolFile& file) {
  const int current = file.current_copy();
  const int other = 1 - current;
  if (!file.copies_equal()) return {load(file, current), current, false};
  auto of_other = load_if_sound(file, other);
  if (!of_other) return {load(file, current), current, false};
  auto of_current = load_if_sound(file, current);
  if (!of_current) return {std::move(*of_other), other, false};
  require_equal(file, *of_current, *of_other);
  return {std::move(*of_current), current, true};
}

// What is rewritten whole needs every bitmap: all are verified before the first store.
void require_bitmaps(const pool::PoolFile& file, const Sound& sound) {
  for (std::uint32_t slab = 0; slab < sound.directory.size(); ++slab) {
    if (sound.directory.record(slab).type == 0) continue;
    (void)load_bitmap(file, sound.directory, slab, sound.copy);
  }
}

}  // namespace

pool::SuperblockImage start_generation(pool::PoolFile& file) {
  pool::SuperblockImage image = next_generation(file, {});
  Sound sound = find_sound(file);
  if (!sound.both) require_bitmaps(file, sound);
  write_both(file, sound.directory, sound.copy, !sound.both, nullptr, image);
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
  write_both(file, directory, file.current_copy(), whole, &plan, image);
  return image;
}

}  // namespace sp3::recovery

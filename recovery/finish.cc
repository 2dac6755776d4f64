#include "recovery/finish.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <sp3/error.h>

#include "base/damage_list.h"
#include "base/mutant.h"
#include "emu/executor.h"
#include "emu/step.h"
#include "pool/file_system.h"
#include "pool/limits.h"
#include "recovery/durable.h"
#include "recovery/log_source.h"
#include "recovery/roots.h"

namespace sp3::recovery {

using base::Mutant;
using base::mutant;

namespace {

void fence(pool::PoolFile& file, emu::FlushCounts& counts) {
  require_durable(file, file.memory().fence(counts),
                  "the pool's metadata could not be made durable");
}

enum class Mend : std::uint8_t { nothing, current, both };

// What of the metadata is written, besides the superblocks.
struct Rewrite {
  bool whole = false;              // the other copy is no better than bytes
  Mend mend = Mend::nothing;       // what may be damaged
  const SlabPlan* plan = nullptr;  // what recovery has changed; null: a closed pool is opened
  std::vector<bool> unreadable;    // slabs whose bitmap is damaged, and no other stands in

  [[nodiscard]] bool opens() const { return plan == nullptr; }
};

// Stores the description of every slab that recovery changed, and if `all`, of every other too, as
// it was read.
void store_metadata(pool::PoolFile& file, pool::SlabDirectory& directory, const Rewrite& what,
                    int copy, bool all, emu::FlushCounts& counts) {
  emu::step(copy == 0 ? emu::Step::recovery_metadata_a : emu::Step::recovery_metadata_b);
  const SlabPlan* const plan = what.plan;
  for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
    if (plan != nullptr && plan->changed(slab)) {
      directory.store(file.memory(), copy, slab, plan->record(slab), plan->bitmap(slab), counts);
    } else if (all && what.unreadable[slab]) {
      directory.carry(file.memory(), copy, slab, counts);
    } else if (all) {
      const pool::SlabRecord record = directory.record(slab);
      pool::Bitmap bitmap;
      if (record.type != 0) bitmap = file.bitmap(directory, slab);
      directory.store(file.memory(), copy, slab, record, bitmap, counts);
    }
  }
  if (mutant(all ? Mutant::no_fence_recovered_metadata_first
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

// (P13) What was read is in these copies too, and not only in the other, before that is touched:
// where one copy of a record or bitmap is damaged, power could fail in the middle of rewriting the
// only good one. Bitmaps first: as long as what is in caches may not be all on media, the records
// tell the next one to open the pool that there is something to mend.
void mend(pool::PoolFile& file, const pool::SlabDirectory& directory, const Rewrite& what) {
  if (what.mend == Mend::nothing || mutant(Mutant::recovery_does_not_mend)) return;
  emu::FlushCounts counts;
  const auto for_each = [&](auto&& mend_one) {
    for (const int copy : {0, 1}) {
      if (what.mend == Mend::current && copy != file.current_copy()) continue;
      for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
        if (mutant(Mutant::recovery_trusts_mended_metadata) &&
            !directory.is_damaged(file.memory(), copy, slab)) {
          continue;
        }
        mend_one(copy, slab);
      }
    }
    if (!mutant(Mutant::no_fence_mended_metadata)) fence(file, counts);
  };
  for_each([&](int copy, std::uint32_t slab) {
    if (!what.unreadable[slab]) directory.mend_bitmap(file.memory(), copy, slab, counts);
  });
  for_each([&](int copy, std::uint32_t slab) {
    directory.mend_record(file.memory(), copy, slab, counts);
  });
}

// (P8) to (P13) of docs/RECOVERY.md. `directory` is that of the current copy.
void write_both(pool::PoolFile& file, pool::SlabDirectory& directory, const Rewrite& what,
                const pool::SuperblockImage& image) {
  if (!(what.opens() && mutant(Mutant::opening_does_not_settle_superblocks)))
    settle(file, what.opens());
  mend(file, directory, what);
  const int current = file.current_copy();
  const int first = mutant(Mutant::recovery_overwrites_current_copy) ? current : 1 - current;
  for (const int copy : {first, 1 - first}) {
    emu::FlushCounts counts;
    // It is rewritten from what was read, slab by slab: replay may have written objects over the
    // old bitmaps of a slab carved anew.
    const bool all = copy == first && what.whole;
    if (all || !what.opens()) store_metadata(file, directory, what, copy, all, counts);
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
  const int copy = 1 - file.current_copy();
  directory.find_differences(
      pool::SlabDirectory::load_either(file.memory(), layout, file.identity(), copy), copy,
      [&](std::uint32_t, const Damage& damage) {
        throw Error(ErrorCode::damaged_metadata, damage.what,
                    {.path = file.path(), .offset = damage.offset});
      });
  return true;
}

// What is rewritten or mended needs every bitmap: all are verified before the first store.
void require_bitmaps(const pool::PoolFile& file, const pool::SlabDirectory& directory,
                     bool accept_loss, std::vector<bool>& unreadable, RecoveryReport& report) {
  for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
    if (directory.record(slab).type == 0) continue;
    try {
      (void)file.bitmap(directory, slab);
    } catch (const Error& error) {
      if (!accept_loss) throw;
      base::add_damage(report, {error.facts().offset.value_or(0), error.what()});
      unreadable[slab] = true;
    }
  }
}

// A later log than the superblocks': what was acknowledged in it is given up, or else it is an
// error.
log::Newest look_for_later_log(const pool::PoolFile& file, bool accept_loss,
                               RecoveryReport& report) {
  LaterLog later = find_later_log(file);
  if (!later.damage) return {};
  if (!accept_loss) {
    throw Error(ErrorCode::damaged_log, later.damage->what,
                {.path = file.path(), .offset = later.damage->offset});
  }
  base::add_damage(report, std::move(*later.damage));
  return later.newest;
}

}  // namespace

LaterLog find_later_log(const pool::PoolFile& file) {
  // All at once: one after the other a disk would take a second for a thousand of them.
  for (std::uint32_t segment = 0; segment < file.layout().segments; ++segment) {
    pool::read_ahead(file.descriptor(), file.layout().segment_offset(segment),
                     sizeof(log::SegmentHeader));
  }
  emu::Executor executor(1);  // a few thousand lines at most
  log::RunSearch found = log::find_runs(log_source_of(file), executor);
  LaterLog later{.damage = {}, .newest = found.newest};
  const std::uint64_t generation = file.superblock().fixed.generation;
  if (found.newest.generation <= generation) return later;
  // Among those that contradict the superblock it is the first that says so.
  for (log::BadHeader& bad : found.bad) {
    if (bad.generation <= generation) continue;
    later.damage = Damage{file.layout().segment_offset(bad.segment), std::move(bad.what)};
    break;
  }
  return later;
}

std::optional<std::string> find_exhausted_number(const pool::PoolFile& file) {
  const pool::Superblock& s = file.superblock().fixed;
  const struct {
    const char* name;
    std::uint64_t found;
    std::uint64_t most;
  } numbers[] = {{"number", s.number, pool::kMostCountToGoOnFrom},
                 {"generation", s.generation, pool::kMostCountToGoOnFrom},
                 {"checkpoint number", s.checkpoint_number, pool::kMostCountToGoOnFrom},
                 {"floor", s.floor, pool::kMostStampToGoOnFrom},
                 {"largest stamp", s.largest_stamp, pool::kMostStampToGoOnFrom}};
  for (const auto& [name, found, most] : numbers) {
    if (found <= most) continue;
    return fmt::format(
        "the superblock's {} is one that no pool gets to: wanted at most {}, found {}", name, most,
        found);
  }
  return std::nullopt;
}

void require_numbers_left(const pool::PoolFile& file) {
  const std::optional<std::string> exhausted = find_exhausted_number(file);
  if (!exhausted) return;
  throw Error(
      ErrorCode::damaged_superblock, *exhausted,
      {.path = file.path(), .offset = file.layout().superblock_offset(file.current_copy())});
}

pool::SuperblockImage start_generation(pool::PoolFile& file, const RecoveryOptions& options,
                                       RecoveryReport* report) {
  RecoveryReport unwanted;
  RecoveryReport& told = report != nullptr ? *report : unwanted;
  require_numbers_left(file);
  pool::SuperblockImage image =
      next_generation(file, look_for_later_log(file, options.accept_loss, told));
  pool::SlabDirectory directory = file.directory();
  Rewrite what;
  what.whole = !file.both_vouch();
  what.unreadable.resize(directory.size());
  const bool damaged = !what.whole && differ(file, directory);
  if (what.whole || damaged) {
    require_bitmaps(file, directory, options.accept_loss, what.unreadable, told);
  }
  require_roots(file, directory);
  if (damaged) what.mend = Mend::both;
  if (what.whole && file.shares_bitmaps()) what.mend = Mend::current;
  if (!told.damage.empty() && options.assessed) options.assessed(told);
  write_both(file, directory, what, image);
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
  Rewrite what;
  what.whole = !(file.copies_equal() && mutant(Mutant::recovery_trusts_equal_superblocks));
  what.mend = file.shares_bitmaps() ? Mend::current : Mend::nothing;
  what.plan = &plan;
  for (std::uint32_t slab = 0; slab < plan.size(); ++slab)
    what.unreadable.push_back(plan.unreadable(slab));
  write_both(file, directory, what, image);
  return image;
}

}  // namespace sp3::recovery

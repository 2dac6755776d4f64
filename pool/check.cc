// What is damage, and what may a crash leave?
//
//   superblocks         copy A's metadata                copy B's metadata
//   A = B, clean        must hold, must equal B's        must hold
//   A = B, open         may be under way                 must hold
//   A newer than B      must hold                        may be under way
//   A invalid           may be under way                 must hold
//   B invalid           must hold                        may be under way
//   B newer than A      may be under way                 must hold
//
// "Under way" is metadata that belongs to no valid superblock: a checkpoint was writing it, or is
// about to. In a clean pool nothing is, so both copies are held to their word. A superblock copy
// whose checksum fails may be torn, a mixture of two consecutive states; but what both states
// share, everything that never changes in a pool's life, must then still be as in the other copy.
// Of intact copies the older is one number behind at most: checkpoints, openings and recoveries
// write one number into both, and a process whose write failed writes no more.
#include "pool/check.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/damage_list.h"

namespace sp3::pool {
namespace {

char copy_name(int copy) { return copy == 0 ? 'A' : 'B'; }

// The first byte of an invalid copy that a torn write cannot explain, or nothing.
std::optional<std::uint64_t> find_inexplicable(const SuperblockCopy& found, const std::byte* copy,
                                               const PoolFile& file) {
  const Superblock& s = found.image.fixed;
  if (const auto at = find_constant_difference(file.superblock().fixed, s)) return at;
  if (!is_valid_state(s.state)) return offsetof(Superblock, state);
  const Layout& layout = file.layout();
  const std::uint64_t heads_end =
      sizeof(Superblock) + std::uint64_t{layout.max_sessions} * sizeof(base::Lsn);
  for (std::uint64_t i = heads_end; i < layout.superblock_bytes; ++i) {
    if (copy[i] != std::byte{0}) return i;
  }
  return std::nullopt;
}

// What an intact copy says against the current one, or nothing.
std::optional<Damage> find_contradiction(const PoolFile& file, int copy, const Superblock& found) {
  const Superblock& current = file.superblock().fixed;
  const std::uint64_t offset = file.layout().superblock_offset(copy);
  if (const auto at = find_constant_difference(current, found)) {
    return Damage{offset + *at, "the superblock copies differ in what never changes"};
  }
  if (found.number == current.number && !file.copies_equal()) {
    return Damage{offset, "the superblock copies have the same number and differ"};
  }
  if (current.number - found.number > 1) {
    return Damage{offset + offsetof(Superblock, number),
                  fmt::format("superblock copy {} has missed writes: wanted number {} or the one "
                              "before, found {}",
                              copy_name(copy), current.number, found.number)};
  }
  return std::nullopt;
}

void check_superblocks(const PoolFile& file, CheckReport& report) {
  const Layout& layout = file.layout();
  const std::byte* const view = file.memory().view();
  const int other = 1 - file.current_copy();
  const std::uint64_t offset = layout.superblock_offset(other);
  const SuperblockCopy found =
      examine_superblock(view, std::min(layout.size, kSuperblocksEnd), offset);
  if (found.verdict == SuperblockCopy::Verdict::intact) {
    auto contradiction = find_contradiction(file, other, found.image.fixed);
    if (contradiction) base::add_damage(report, std::move(*contradiction));
    return;
  }
  const auto inexplicable = find_inexplicable(found, view + offset, file);
  if (found.sealed || inexplicable) {
    base::add_damage(report,
                     {found.sealed ? found.offset : offset + *inexplicable,
                      fmt::format("superblock copy {} is damaged: {}, wanted {}, found {}",
                                  copy_name(other), found.what, found.wanted, found.found)});
  }
}

// By slab: whether a copy's record is damaged, which makes it free in what is read of that copy.
using DamagedRecords = std::vector<bool>;

// Counts what copy `copy` describes; returns the sound part of its directory.
SlabDirectory check_slabs(const PoolFile& file, int copy, CheckReport& report,
                          DamagedRecords& damaged, bool count) {
  SlabDirectory directory = SlabDirectory::load_sound(file.memory(), file.layout(), file.identity(),
                                                      copy, [&](std::uint32_t slab, Damage damage) {
                                                        damaged[slab] = true;
                                                        base::add_damage(report, std::move(damage));
                                                      });
  std::vector<Damage> found;
  for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
    const SlabRecord& record = directory.record(slab);
    if (record.type == 0) continue;
    found.clear();
    const auto bitmap = directory.load_sound_bitmap(file.memory(), slab, copy, found);
    for (Damage& damage : found) base::add_damage(report, std::move(damage));
    if (!count) continue;
    ++report.slabs;
    if (bitmap) report.objects += record.live;
  }
  return directory;
}

}  // namespace

CheckReport check(const PoolFile& file) {
  CheckReport report;
  report.clean = file.is_clean();
  check_superblocks(file, report);
  DamagedRecords damaged(file.layout().slabs);
  const SlabDirectory current = check_slabs(file, file.current_copy(), report, damaged, true);
  // As opening wants it, which goes on with both.
  if (report.clean && file.both_vouch()) {
    const int copy = 1 - file.current_copy();
    const SlabDirectory other = check_slabs(file, copy, report, damaged, false);
    current.find_differences(other, copy, [&](std::uint32_t slab, Damage damage) {
      if (!damaged[slab]) base::add_damage(report, std::move(damage));
    });
  }
  return report;
}

void require_metadata(const PoolFile& file) {
  SP3_ASSERT(file.is_clean());
  const SlabDirectory directory = file.directory();
  for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
    if (directory.record(slab).type != 0) (void)file.bitmap(directory, slab);
  }
}

}  // namespace sp3::pool

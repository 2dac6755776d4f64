// The end of recovery, and of opening a clean pool: a new generation in one superblock write per
// copy.
//
// Invariant: at every instant one copy of superblock, directory and bitmaps is whole and current.
// The copy that is not the current one is made whole and written first; only then is the other
// touched. Where a copy of a record or bitmap is damaged and the other stands in for it, it is
// mended before anything else is written (P13).
#pragma once

#include <optional>
#include <string>

#include <sp3/options.h>
#include <sp3/report.h>

#include "log/run_search.h"
#include "pool/pool_file.h"
#include "pool/superblock.h"
#include "recovery/slab_plan.h"

namespace sp3::recovery {

// Opens a clean pool for use: generation and number go up, state is open, heads are 1; floor,
// checkpoint number and metadata stay. The directory copies are verified first, and what one has
// lost is taken from the other. Returns the superblock now in force, durable in both copies.
// Errors: io_error; and, nothing being written, damaged_metadata (both copies of something are
// damaged, or the copies differ), damaged_log (the log is of a later generation than the
// superblocks), and as require_numbers_left. With accept_loss that log is given up, and a bitmap
// that is damaged in both copies stays so: both are in the report, and options.assessed is called
// with it before anything is written.
pool::SuperblockImage start_generation(pool::PoolFile& file, const RecoveryOptions& options = {},
                                       RecoveryReport* report = nullptr);

// Of a closed pool: a log of a later generation than the superblocks, which are a backup's then, or
// those of a disk that lost the writes of both. Reads the header of each segment.
struct LaterLog {
  std::optional<Damage> damage;  // nothing: there is none
  log::Newest newest;
};
LaterLog find_later_log(const pool::PoolFile& file);

// A number of the superblock that no pool gets to: it was made up, and whoever went on from there
// would come to some that nobody believes.
std::optional<std::string> find_exhausted_number(const pool::PoolFile& file);
// Errors: damaged_superblock if there is one.
void require_numbers_left(const pool::PoolFile& file);

// Ends a recovery whose homes are durable: what `plan` says of the slabs that changed becomes the
// directory, everything up to `floor` is home, the logs are empty; generation and checkpoint number
// go above those of `newest`, and of the superblock. Returns the superblock now in
// force, state open, durable in both copies. Errors: as start_generation.
pool::SuperblockImage finish_recovery(pool::PoolFile& file, pool::SlabDirectory& directory,
                                      const SlabPlan& plan, base::Stamp floor,
                                      const log::Newest& newest);

}  // namespace sp3::recovery

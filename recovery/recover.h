// Recovery: from a pool that was not closed to one that holds exactly its committed transactions.
//
// docs/RECOVERY.md describes the algorithm, its flush and fence points and why a crash at any
// instant of it does no harm.
//
// Thread safety: one thread; it brings its own helpers through emu::Executor.
// Complexity: linear in the log's bytes. Memory: 16 bytes per record, per write entry and per
// dependency.
#pragma once

#include <sp3/options.h>
#include <sp3/report.h>

#include "pool/pool_file.h"
#include "pool/superblock.h"

namespace sp3::recovery {

struct Result {
  RecoveryReport report;
  pool::SuperblockImage superblock;  // now in force; file.superblock() is what was found
};

// On return: every home, the directory, the bitmaps and both superblocks are durable, state open,
// in a new generation with empty logs. A clean pool is left alone (see start_generation()).
// Errors: damaged_log (path and offset; nothing was written) unless options.accept_loss;
// damaged_metadata (nothing was written); io_error (recovery may be repeated).
// REQUIRES: file was opened for writing.
Result recover(pool::PoolFile& file, const RecoveryOptions& options);

}  // namespace sp3::recovery

// Verifying a pool file at rest: superblocks, slab directory, bitmaps. The log is verified by
// recovery, which lies above and adds to the same report.
#pragma once

#include <sp3/report.h>

#include "pool/pool_file.h"

namespace sp3::pool {

// Reads everything below the log that can be verified. Damage is reported, not thrown; `records`
// stays 0. What an interrupted checkpoint may leave (a torn superblock copy, metadata of the copy
// being written) is not damage. Takes time in the number of slabs, not in their contents.
CheckReport check(const PoolFile& file);

// Verifies that opening a closed pool, and whoever works in it then, finds all metadata in one copy
// or the other: opening reads no bitmaps, which are read when they are needed.
// Errors: damaged_metadata. REQUIRES: file.is_clean().
void require_metadata(const PoolFile& file);

}  // namespace sp3::pool

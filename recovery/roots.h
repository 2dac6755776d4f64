// What slab 0 has to be, in a pool whose root directory is looked at (pool::PoolFile::roots).
#pragma once

#include <cstdint>
#include <optional>

#include <sp3/report.h>

#include "pool/pool_file.h"

namespace sp3::recovery {

inline constexpr const char* kMissingRoots = "the root directory is missing";

// Where the first node of a root directory of that class is: slot 0 of slab 0.
std::uint64_t offset_of_first_root(const pool::Layout& layout, const pool::ObjectClass& roots);

// What keeps a pool with that directory from being opened, or nothing: slab 0 is of another class,
// or in a pool that was closed the first node of the root directory is missing, which it has had
// ever since anything was made. What a log holds may make it yet.
// Errors: damaged_metadata (the bitmap of slab 0).
std::optional<Damage> find_damaged_roots(const pool::PoolFile& file,
                                         const pool::SlabDirectory& directory);

// Errors: damaged_metadata if there is such a thing. Called before anything is written: a pool that
// was closed is one no more then, and the next one to open it would make what is missing.
void require_roots(const pool::PoolFile& file, const pool::SlabDirectory& directory);

}  // namespace sp3::recovery

// What the log of a pool is read with.
#pragma once

#include "log/run_search.h"
#include "pool/pool_file.h"

namespace sp3::recovery {

inline log::LogSource log_source_of(const pool::PoolFile& file) {
  const pool::Superblock& superblock = file.superblock().fixed;
  return {.file = file.memory().view(),
          .layout = file.layout(),
          .uuid = superblock.uuid,
          .generation = superblock.generation,
          .checkpoint_number = superblock.checkpoint_number};
}

}  // namespace sp3::recovery

// newest_run: where a session's log goes on, for tests that damage it under an open pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "log/format.h"
#include "pool/pool_file.h"
#include "tests/support/pools.h"

namespace sp3::test {

// The offset of the header of the newest run of session 1 in the bytes of a pool's file, which is
// locked, so that its layout is read from a copy; 0 if the session has no run.
inline std::uint64_t newest_run(const std::vector<char>& bytes, const Options& options) {
  TempPath copy;
  write_bytes(copy.path(), bytes);
  const pool::Layout layout =
      pool::PoolFile::open(copy.path(), options, pool::PoolFile::Access::read_only)->layout();
  std::uint64_t newest = 0;
  log::Lsn first_lsn = 0;
  for (std::uint32_t segment = 0; segment < layout.segments; ++segment) {
    log::SegmentHeader header;
    std::memcpy(&header, bytes.data() + layout.segment_offset(segment), sizeof header);
    if (header.magic != log::kSegmentMagic || header.session != 1) continue;
    if (header.first_lsn <= first_lsn) continue;
    newest = layout.segment_offset(segment);
    first_lsn = header.first_lsn;
  }
  return newest;
}

}  // namespace sp3::test

// What the command-line tool shows of a log, without changing a byte.
//
// Errors of all: damaged_metadata if the directory cannot be read. Damage in the log is told, not
// thrown.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <sp3/report.h>

#include "base/tid.h"
#include "pool/pool_file.h"

namespace sp3::recovery {

enum class RecordState : std::uint8_t {
  replayable,   // recovery would replay it
  dropped,      // complete, but a predecessor is not, or it or one before it contradicts its slab
  unreachable,  // complete, but behind a torn or damaged record of its session
};
const char* to_string(RecordState) noexcept;

struct LoggedRecord {
  base::SessionId session = 0;
  base::Lsn lsn = 0;
  base::Stamp stamp = 0;
  RecordState state = RecordState::replayable;
  bool watermark = false;
  // Not known of unreachable records.
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint64_t persisted_upto = 0;
  std::uint32_t images = 0;
  std::uint32_t deltas = 0;
  std::uint32_t makes = 0;
  std::uint32_t destroys = 0;
  std::vector<base::Tid> dependencies;  // a watermark's: <LSN as stamp, session>
};

struct LogSummary {
  bool clean = false;            // the pool was closed: no record will be replayed
  std::uint64_t records = 0;     // of transactions
  std::uint64_t watermarks = 0;  // visited like records
  std::vector<Damage> damage;    // the first of it
  std::uint64_t more_damage = 0;
};

// Calls visit for each record above the floor that the log holds, by session and LSN; of those of a
// session that are unreachable, for the first 1000.
LogSummary list_log(pool::PoolFile& file, const std::function<void(const LoggedRecord&)>& visit);

// Adds to `report` what scanning, cutting and checking the log finds: records and damage. A clean
// pool's log is history: of it only what opening looks at, whether it is later than the
// superblocks.
void check_log(pool::PoolFile& file, CheckReport& report);

}  // namespace sp3::recovery

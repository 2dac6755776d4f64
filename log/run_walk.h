// What one run of segments holds, as recovery needs it: walked independently of all other runs, so
// that even one session's log is scanned in parallel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "log/read_allowance.h"
#include "log/record_reader.h"
#include "log/run_search.h"

namespace sp3::log {

// A record that is there, 16 bytes each: LSNs are consecutive, and the rest is in the record.
struct RecordRef {
  Stamp stamp = 0;
  std::uint64_t offset = 0;  // in the file
};

// Record `record` of a list of RecordRefs depends on <session, stamp>.
struct DependencyRef {
  DependencyRef(Stamp of_stamp, SessionId of_session, std::uint64_t of_record)
      : stamp(of_stamp), place(of_record << 16 | of_session) {}
  [[nodiscard]] SessionId session() const { return static_cast<SessionId>(place & 0xffff); }
  [[nodiscard]] std::uint64_t record() const { return place >> 16; }

  Stamp stamp;
  std::uint64_t place;  // record << 16 | session: half a byte more per edge would cost eight
};
static_assert(sizeof(DependencyRef) == 16);

// "The log of `session` was durable up to `lsn`."
struct Watermark {
  Lsn lsn = 0;
  SessionId session = 0;
};

struct RunWalk {
  // Records with a stamp above the floor and an LSN from the head on. Their LSNs are first_lsn and
  // those that follow it.
  std::vector<RecordRef> records;
  std::vector<DependencyRef> dependencies;  // on other sessions above the floor, in record order
  Lsn first_lsn = 0;
  Stamp first_stamp = 0;                // of the first record walked, floor or not; 0: none
  Stamp last_stamp = 0;                 // of the last one
  Lsn next_lsn = 0;                     // after the last one
  std::uint64_t position = 0;           // in the run: where the record next_lsn belongs
  std::uint64_t gap_begin = 0;          // in the run: from here on it could not be read,
  std::uint64_t gap_end = 0;            // up to where it was taken up again; 0: it never was
  std::string contradiction;            // not empty: the record there is intact and still cannot be
  std::uint64_t watermark_records = 0;  // of `records`
  std::vector<Watermark> watermarks;

  // What it holds in memory, of 16 bytes each.
  [[nodiscard]] std::size_t kept() const {
    return records.size() + dependencies.size() + watermarks.size();
  }
  // Whether reading passed over the byte at this position of the run, which lies before `position`.
  [[nodiscard]] bool is_in_gap(std::uint64_t at) const { return at >= gap_begin && at < gap_end; }
};

// Walks `run` from its first record. Records below `head` are passed over; if the chain breaks
// before `head`, it is taken up again at the record with exactly that LSN: what was lost was not
// needed. Goes on for as long as the allowance lasts.
RunWalk walk_run(const LogSource& source, const SegmentRun& run, Lsn head, Stamp floor,
                 ReadAllowance& allowance);

// Records behind the end of a prefix, which tell whether it ended by a torn write or by damage.
struct Beyond {
  struct Record {
    Lsn lsn = 0;
    Stamp stamp = 0;
  };
  static constexpr std::size_t kMostNamed = 1000;

  std::uint64_t records = 0;
  std::vector<Record> named;  // the first kMostNamed of them
  Stamp largest_stamp = 0;
  Lsn persisted_upto = 0;
  std::vector<Watermark> watermarks;
};

// Adds every intact record of the session with an LSN above `lsn` at any 64-byte position of
// `where`. Linear in the size of that, whatever its bytes are.
void look_beyond(const LogSource& source, SessionId session, FileRange where, Lsn lsn,
                 ReadAllowance& allowance, Beyond& beyond);

}  // namespace sp3::log

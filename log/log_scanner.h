// The scan: from the log region's bytes to each session's valid prefix, and a verdict on how it
// ended.
//
// A session's prefix starts at its head (the superblock's LSN of the first record above the floor)
// and goes on while there is a record with exactly the next LSN and a larger stamp: inside a run of
// segments, then in the run whose header promises the next LSN. Headers of recycled runs of the
// same generation promise smaller LSNs, so the run with the greatest first LSN not above the wanted
// one is the right one to start in.
//
// Where a prefix ends, it ends for one of two reasons. Torn: the record was being written when
// power failed, was never acknowledged, and nothing durable says otherwise. Damaged: a later record
// of the session (which says how far the log was durable when it was sealed) or a watermark in any
// session's log covers the missing record. To find these witnesses, the rest of the run and the
// session's later runs are searched beyond the end.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <sp3/report.h>

#include "emu/executor.h"
#include "log/run_walk.h"

namespace sp3::log {

// How a session's prefix ended.
enum class PrefixEnd : std::uint8_t {
  clean,    // nothing beyond: no trace of a further record
  torn,     // a further record was begun and is not whole, as after any crash
  damaged,  // a durable record is missing; what is there of it is listed in ScanResult::damage
};

struct LogPrefix {
  SessionId session = 0;
  // The prefix above the floor; record i has LSN first_lsn + i.
  Lsn first_lsn = 0;
  std::vector<RecordRef> records;
  std::vector<DependencyRef> dependencies;  // on other sessions, above the floor, in record order
  std::uint64_t watermark_records = 0;      // of `records`
  PrefixEnd end = PrefixEnd::clean;
  Lsn next_lsn = 0;               // of the first record that is not there
  std::uint64_t end_offset = 0;   // where it belongs; 0 if no run is known
  std::vector<FileRange> ranges;  // all bytes the prefix was read from
  // Transactions found behind the end: lost, since one before them is missing.
  std::uint64_t beyond_records = 0;
  std::vector<Beyond::Record> beyond;  // the first of them
};

struct ScanResult {
  std::vector<LogPrefix> sessions;  // by session; those with any run, record or damage
  std::vector<Damage> damage;       // the first of it, as base/damage_list.h has it
  std::uint64_t more_damage = 0;
  Stamp largest_stamp = 0;          // in any intact record met, those beyond the prefixes included
  Newest newest;                    // in any intact header of a run
  std::uint64_t bytes_scanned = 0;  // of runs, from their headers to where their records end
  std::uint64_t bytes_read = 0;     // whatever for, and as often as it was read
};

inline constexpr std::uint64_t kMostPasses = 16;
inline constexpr std::uint64_t kBytesForEachKept = 4;

// Bytes walked so far and in all. Called by one thread at a time.
using ScanProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Takes time in the size of the log, whatever its bytes are: at most kMostPasses plus
// layout.max_sessions times that much is read. And it takes memory in the size of the log: one
// record or dependency, of 16 bytes, is kept for each kBytesForEachKept bytes of it at most. Both
// are more than a log that was written ever needs (its records have 64 bytes and more, and 16 for
// each dependency). One that needs more is damaged.
// REQUIRES: source.layout describes source.file; heads has one LSN per session. Reads only.
ScanResult scan_logs(const LogSource& source, Stamp floor, std::span<const Lsn> heads,
                     emu::Executor& executor, const ScanProgress& progress = {});

}  // namespace sp3::log

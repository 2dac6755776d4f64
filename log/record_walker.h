// RecordWalker: the records of one run of segments, in order.
//
// A record is followed by the one with exactly the next LSN and a larger stamp, at the next 64-byte
// position or, in a log that is flushed in blocks, at the next block boundary (log/format.h). The
// walk ends where there is none.
//
// Used over the file by recovery, and over the live log by the checkpoint, which verifies no
// checksums and therefore must bound the walk by what it knows to be sealed: behind that, the bytes
// of an earlier generation could carry the next LSN.
//
// Thread safety: none; the walked bytes must not change, except behind `upto`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "log/record_reader.h"

namespace sp3::log {

class RecordWalker {
 public:
  struct Options {
    Verify verify = Verify::everything;
    Lsn upto = std::numeric_limits<Lsn>::max();  // the last LSN to hand out
  };

  // `run` is the whole run, its SegmentHeader included; `first_lsn` is the header's.
  RecordWalker(std::span<const std::byte> run, Lsn first_lsn, std::uint32_t seed, Options options)
      : run_(run), seed_(seed), options_(options), next_lsn_(first_lsn) {}
  RecordWalker(std::span<const std::byte> run, Lsn first_lsn, std::uint32_t seed)
      : RecordWalker(run, first_lsn, seed, Options{}) {}

  // The next record, or nothing at the end of the chain.
  std::optional<RecordView> next();

  // Goes on with the record at `position` (a multiple of kRecordAlignment), which has this LSN.
  void resume(std::uint64_t position, Lsn lsn) {
    position_ = position;
    next_lsn_ = lsn;
  }

  [[nodiscard]] Lsn next_lsn() const { return next_lsn_; }
  // The end of the last record, from the start of the run: where the next one belongs.
  [[nodiscard]] std::uint64_t position() const { return position_; }
  // The stamp of the last record, 0 before the first.
  [[nodiscard]] Stamp last_stamp() const { return last_stamp_; }
  // Of all records read so far, those included that were not accepted.
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  std::optional<RecordView> record_at(std::uint64_t position);

  std::span<const std::byte> run_;
  std::uint32_t seed_;
  Options options_;
  Lsn next_lsn_;
  Stamp last_stamp_ = 0;
  std::uint64_t position_ = sizeof(SegmentHeader);
  std::uint64_t bytes_read_ = 0;
};

// One run of a live log.
struct LiveRun {
  std::span<const std::byte> bytes;  // the whole run, from its SegmentHeader on
  Lsn first_lsn = 0;
};

// Calls visit(const RecordView&) for a session's sealed records with LSNs in [from, upto], given
// its live runs in LSN order. Checksums are not verified. Ends where one is missing, also at the end
// of a run that another follows; returns the LSN after the last visited (upto + 1 if all are there).
template <class Visitor>
Lsn for_each_record(std::span<const LiveRun> runs, Lsn from, Lsn upto, Visitor&& visit) {
  Lsn next = from;
  for (std::size_t i = 0; i < runs.size() && next <= upto; ++i) {
    if (i + 1 < runs.size() && runs[i + 1].first_lsn <= next) continue;  // all below `from`
    if (runs[i].first_lsn > next) break;
    RecordWalker walker(runs[i].bytes, runs[i].first_lsn, 0, {Verify::shape, upto});
    while (const auto record = walker.next()) {
      if (record->lsn() < next) continue;
      visit(*record);
      next = record->lsn() + 1;
    }
  }
  return next;
}

}  // namespace sp3::log

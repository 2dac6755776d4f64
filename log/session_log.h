// SessionLog: where one session's records go.
//
// A log is a list of runs of segments, oldest first. The owner appends to the last run; the
// checkpointer takes runs away from the front. docs/DATA_LAYOUT.md shows the bytes.
//
// Thread safety: reserve() and append() by the owner, between announcing a transaction and sealing
//   it; recycle() of the last run only while the owner is kept from announcing
//   (runtime/session_shared.h); the rest by any thread.
// Invariant: a record lies inside one run; LSNs are consecutive from run to run.
// Blocks (file memory): once a flusher has taken a block, the owner appends to the next one, so
//   that no acknowledged byte is ever written again. block_lock() orders the two.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/atomic.h"
#include "base/plain_access.h"
#include "base/tid.h"
#include "emu/memory.h"
#include "emu/spin_lock.h"
#include "emu/threads.h"
#include "log/format.h"
#include "log/segment_pool.h"
#include "pool/layout.h"

namespace sp3::log {

class SessionLog {
 public:
  struct Run {
    std::uint32_t first_segment = 0;
    std::uint32_t segments = 0;
    Lsn first_lsn = 0;
    Stamp last_stamp = 0;  // largest in the run; of a closed run
  };
  static constexpr std::uint64_t kLargestRecord = UINT32_MAX - kRecordAlignment;
  // What append() stored, to be flushed.
  struct Appended {
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
  };

  SessionLog(emu::Memory& memory, const pool::Layout& layout, SegmentPool& segments,
             SessionId session, std::uint64_t generation, std::uint32_t seed);

  // Whether a record of this size could be appended if the log were empty.
  [[nodiscard]] bool could_ever_hold(std::uint64_t record_bytes) const noexcept;

  // Whether a record of up to `record_bytes` can be appended as things are.
  [[nodiscard]] bool has_room(std::uint64_t record_bytes) const noexcept {
    return record_bytes <= kLargestRecord && run_end_ != 0 &&
           cursor_ + room_for(record_bytes) - sizeof(SegmentHeader) <= run_end_;
  }
  // Makes sure that a record of up to `record_bytes` can be appended, or says that segments are
  // short. `checkpoint_number` is the superblock's, for the header of a run started here.
  enum class Reserved : std::uint8_t { no, in_last_run, in_new_run };
  Reserved reserve(std::uint64_t record_bytes, std::uint64_t checkpoint_number);
  // Whether the last refusal was for the sake of an earlier request, and still would be.
  [[nodiscard]] bool yields() const { return refused_ != 0 && segments_.yields(refused_); }
  // What reserve() refused last is not wanted any more.
  void forgo() noexcept;

  // Stores a sealed record (a multiple of 64 bytes) with LSN next_lsn(). REQUIRES: reserved; in
  // file memory block_lock() is held until the record is published to flushers.
  Appended append(const std::byte* record, std::uint32_t bytes, Stamp stamp, bool streaming);

  [[nodiscard]] Lsn next_lsn() const noexcept { return next_lsn_; }
  [[nodiscard]] std::uint32_t seed() const noexcept { return seed_; }

  // Held while a flusher reads what is sealed and calls close_blocks().
  [[nodiscard]] emu::SpinLock& block_lock() noexcept { return block_lock_; }
  // Everything up to file offset `end` is being written out: append no more to its block. An end in
  // an older run than the one being appended to closes nothing.
  void close_blocks(std::uint64_t end) noexcept {
    base::plain_write(&fresh_from_, sizeof fresh_from_);
    if (end > append_begin_ && end <= append_end_) fresh_from_ = base::round_up(end, kFileBlock);
  }

  // The runs, oldest first; the last one may still grow.
  [[nodiscard]] std::vector<Run> runs() const;
  // The first LSN of the newest run that begins at or before `lsn`, 0 if there is none.
  [[nodiscard]] Lsn begin_of_run(Lsn lsn) const;

  // Releases the runs in front that hold nothing above `floor`; the last one too if `with_last`.
  void recycle(Stamp floor, bool with_last);

 private:
  // Bytes of a fresh run that a record takes in the worst case: its header, and a block skipped.
  [[nodiscard]] std::uint64_t room_for(std::uint64_t record_bytes) const noexcept {
    return sizeof(SegmentHeader) + base::round_up(record_bytes, kRecordAlignment) +
           (memory_.writes_blocks() ? kFileBlock : 0);
  }
  void release(const Run& run);
  void prefetch(std::uint32_t bytes) const noexcept;

  emu::Memory& memory_;
  const pool::Layout& layout_;
  SegmentPool& segments_;
  const SessionId session_;
  const std::uint64_t generation_;
  const std::uint32_t seed_;

  // The owner's.
  std::uint64_t cursor_ = 0;   // file offset of the next record
  std::uint64_t run_end_ = 0;  // file offset of the end of the last run; 0: there is none
  Lsn next_lsn_ = 1;
  SegmentHeader header_;  // of the last run
  bool header_stored_ = true;
  std::uint32_t refused_ = 0;          // segments that reserve() last asked for in vain
  base::Atomic<Stamp> last_stamp_{0};  // also read by the checkpointer while the owner is kept out

  emu::SpinLock block_lock_;
  std::uint64_t fresh_from_ = 0;    // guarded by block_lock_
  std::uint64_t append_begin_ = 0;  // the last run, for those who hold block_lock_
  std::uint64_t append_end_ = 0;

  mutable emu::Mutex mutex_;
  std::deque<Run> runs_;  // guarded by mutex_
};

}  // namespace sp3::log

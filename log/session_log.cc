#include "log/session_log.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/mutant.h"

namespace sp3::log {

SessionLog::SessionLog(emu::Memory& memory, const pool::Layout& layout, SegmentPool& segments,
                       SessionId session, std::uint64_t generation, std::uint32_t seed)
    : memory_(memory),
      layout_(layout),
      segments_(segments),
      session_(session),
      generation_(generation),
      seed_(seed) {}

bool SessionLog::could_ever_hold(std::uint64_t record_bytes) const noexcept {
  return room_for(record_bytes) <= layout_.log_bytes && record_bytes <= kLargestRecord;
}

SessionLog::Reserved SessionLog::reserve(std::uint64_t record_bytes,
                                         std::uint64_t checkpoint_number) {
  SP3_ASSERT(could_ever_hold(record_bytes));
  if (has_room(record_bytes)) return Reserved::in_last_run;
  const auto count = static_cast<std::uint32_t>(
      (room_for(record_bytes) + layout_.segment_size - 1) / layout_.segment_size);
  if (refused_ != count) forgo();
  const auto first = segments_.take(count);
  refused_ = first ? 0 : count;
  if (!first) return Reserved::no;
  {
    // First of all, since it may fail: then we are where we were.
    const std::lock_guard guard(mutex_);
    try {
      runs_.push_back({*first, count, next_lsn_, 0});
    } catch (...) {
      segments_.give_back(*first, count);
      throw;
    }
    // relaxed: our own store.
    if (runs_.size() > 1) {
      runs_[runs_.size() - 2].last_stamp = last_stamp_.load(std::memory_order_relaxed);
    }
  }
  header_ = SegmentHeader{};
  header_.generation = generation_;
  header_.first_lsn = next_lsn_;
  header_.checkpoint_number = checkpoint_number;
  header_.segments = count;
  header_.session = session_;
  header_.crc = checksum(header_, seed_, *first);
  header_stored_ = false;
  const std::uint64_t start = layout_.segment_offset(*first);
  base::plain_write(&run_end_, sizeof run_end_);
  cursor_ = start + sizeof(SegmentHeader);
  run_end_ = start + static_cast<std::uint64_t>(count) * layout_.segment_size;
  if (memory_.writes_blocks()) {
    const std::lock_guard guard(block_lock_);
    base::plain_write(&fresh_from_, sizeof fresh_from_);
    fresh_from_ = 0;
    append_begin_ = start;
    append_end_ = run_end_;
  }
  return Reserved::in_new_run;
}

void SessionLog::forgo() noexcept {
  if (refused_ != 0) segments_.give_up(std::exchange(refused_, 0));
}

SessionLog::Appended SessionLog::append(const std::byte* record, std::uint32_t bytes, Stamp stamp,
                                        bool streaming) {
  SP3_ASSERT(bytes % kRecordAlignment == 0 && stamp > last_stamp_.load(std::memory_order_relaxed));
  base::plain_read(&fresh_from_, sizeof fresh_from_);
  base::plain_read(&run_end_, sizeof run_end_);
  // 0 but in file memory, where block_lock_ is held, and there too before the header is stored
  if (cursor_ < fresh_from_) cursor_ = fresh_from_;
  SP3_CHECK(cursor_ + bytes <= run_end_);  // behind it is somebody else's log
  Appended appended;
  appended.offset = cursor_;
  if (!header_stored_) {
    header_stored_ = true;
    appended.offset -= sizeof header_;
    memory_.log_store(appended.offset, &header_, sizeof header_, streaming);
  }
  memory_.log_store(cursor_, record, bytes, streaming);
  cursor_ += bytes;
  // The next record will want lines that left the cache when the log last came by here: ask for as
  // many again now, while we flush, wait and run the next body. Streamed lines are not read at all.
  if (!streaming) prefetch(bytes);
  appended.bytes = static_cast<std::uint32_t>(cursor_ - appended.offset);
  ++next_lsn_;
  last_stamp_.store(stamp, std::memory_order_relaxed);  // relaxed: published by the announcement
  return appended;
}

void SessionLog::prefetch(std::uint32_t bytes) const noexcept {
  constexpr std::uint32_t kMostBytes = 1024;
  const std::uint64_t end = std::min(cursor_ + std::min(bytes, kMostBytes), run_end_);
  for (std::uint64_t at = cursor_; at < end; at += kRecordAlignment) memory_.prefetch_store(at);
}

std::vector<SessionLog::Run> SessionLog::runs() const {
  const std::lock_guard guard(mutex_);
  return {runs_.begin(), runs_.end()};
}

Lsn SessionLog::begin_of_run(Lsn lsn) const {
  const std::lock_guard guard(mutex_);
  const auto run = std::find_if(runs_.rbegin(), runs_.rend(),
                                [lsn](const Run& r) { return r.first_lsn <= lsn; });
  return run == runs_.rend() ? 0 : run->first_lsn;
}

void SessionLog::release(const Run& run) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(run.segments) * layout_.segment_size;
  memory_.log_discard(layout_.segment_offset(run.first_segment), bytes);
  segments_.give_back(run.first_segment, run.segments);
}

void SessionLog::recycle(Stamp floor, bool with_last) {
  const std::lock_guard guard(mutex_);
  const bool all = base::mutant(base::Mutant::run_recycled_above_floor);
  while (runs_.size() > 1 && (all || runs_.front().last_stamp <= floor)) {
    release(runs_.front());
    runs_.pop_front();
  }
  if (with_last && runs_.size() == 1 && last_stamp_.load(std::memory_order_relaxed) <= floor) {
    release(runs_.front());
    runs_.pop_front();
    base::plain_write(&run_end_, sizeof run_end_);
    run_end_ = 0;
  }
}

}  // namespace sp3::log

#include "log/record_walker.h"

#include <algorithm>

#include "base/align.h"
#include "base/mutant.h"
#include "base/prefetch.h"

namespace sp3::log {
namespace {

// Cold bytes are asked for a kilobyte ahead, as many as the record has; of a longer one the
// hardware fetches the rest in time.
void ask_ahead(const std::byte* record, std::uint64_t length) {
  constexpr std::ptrdiff_t kAhead = 1024;
  const auto bytes = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(length, kAhead));
  for (std::ptrdiff_t i = 0; i < bytes; i += base::kCacheLine) {
    base::prefetch_beside(record, kAhead + i);
  }
}

}  // namespace

std::optional<RecordView> RecordWalker::record_at(std::uint64_t position) {
  if (position >= run_.size()) return std::nullopt;
  const std::byte* begin = run_.data() + position;
  const std::uint64_t available = run_.size() - position;
  // The LSN first: it is nearly always wrong where there is no record, and costs no checksum.
  const auto header = peek_header(begin, available);
  if (!header || header->stamp <= last_stamp_) return std::nullopt;
  if (header->lsn != next_lsn_ && !base::mutant(base::Mutant::recovery_ignores_lsn)) {
    return std::nullopt;
  }
  bytes_read_ += header->length;
  if (options_.verify == Verify::everything) ask_ahead(begin, header->length);
  return read_record(begin, available, seed_, options_.verify);
}

std::optional<RecordView> RecordWalker::next() {
  if (next_lsn_ > options_.upto) return std::nullopt;
  std::uint64_t at = position_;
  auto record = record_at(at);
  if (!record) {
    // position_ is at most the size of a run, so this does not overflow.
    const std::uint64_t block = base::round_up(position_, kFileBlock);
    if (block == position_) return std::nullopt;
    at = block;
    record = record_at(at);
    if (!record) return std::nullopt;
  }
  position_ = at + record->padded_length();
  last_stamp_ = record->stamp();
  ++next_lsn_;
  return record;
}

}  // namespace sp3::log

#include "log/run_walk.h"

#include <algorithm>

#include <fmt/format.h>

#include "log/record_walker.h"
#include "pool/limits.h"

namespace sp3::log {
namespace {

// Bytes that checksums may cost in a search, per byte searched: intact records cost one; only bytes
// made up to look like headers of long records could cost more, and those must not hang an open.
constexpr std::uint64_t kChecksumFactor = 8;

std::span<const std::byte> bytes_of(const LogSource& source, const SegmentRun& run) {
  return {source.file + run.offset, run.bytes};
}

// Calls visit(offset, record) for intact records at 64-byte positions of `where` whose header
// passes `wanted`, until it returns false.
template <class Wanted, class Visitor>
void search(const LogSource& source, SessionId session, FileRange where, Reading& reading,
            Wanted&& wanted, Visitor&& visit) {
  const std::uint32_t seed = source.seed_of(session);
  std::uint64_t budget = kChecksumFactor * where.length;
  std::uint64_t offset = where.offset;
  while (offset < where.end() && reading.add(kRecordAlignment)) {
    const std::byte* begin = source.file + offset;
    const std::uint64_t available = where.end() - offset;
    const auto header = peek_header(begin, available);
    if (header && wanted(*header) && header->length <= budget) {
      budget -= header->length;
      reading.add(header->length);
      if (const auto record = read_record(begin, available, seed)) {
        if (!visit(offset, *record)) return;
        offset += record->padded_length();
        continue;
      }
    }
    offset += kRecordAlignment;
  }
}

void collect_watermarks(const RecordView& record, std::vector<Watermark>& to) {
  if (record.kind() != RecordKind::watermark) return;
  record.for_each_dependency([&](SessionId session, Lsn lsn) { to.push_back({lsn, session}); });
}

// Why an intact record cannot be true; empty if it can.
std::string find_contradiction(const LogSource& source, const RecordView& record) {
  std::string what;
  // The floor would be raised to it, and a superblock with such a floor is believed by nobody.
  if (record.stamp() > pool::kMostStampToGoOnFrom) {
    return fmt::format("record {} has stamp {}, which no clock reaches", record.lsn(),
                       record.stamp());
  }
  if (record.header().persisted_upto >= record.lsn()) {
    return fmt::format("record {} says that the log is durable up to {}", record.lsn(),
                       record.header().persisted_upto);
  }
  if (record.kind() == RecordKind::watermark) {
    return record.header().writes == 0 ? what : fmt::format("watermark {} writes", record.lsn());
  }
  record.for_each_dependency([&](SessionId session, Stamp stamp) {
    if (session >= source.layout.max_sessions) {
      what = fmt::format("record {} depends on session {} in a pool of {} sessions", record.lsn(),
                         session, source.layout.max_sessions);
    } else if (stamp >= record.stamp()) {
      what = fmt::format("record {} has stamp {} and depends on the later stamp {}", record.lsn(),
                         record.stamp(), stamp);
    }
  });
  return what;
}

void take(const LogSource& source, SessionId run_session, const RecordView& record, Lsn head,
          Stamp floor, RunWalk& walk) {
  if (walk.first_stamp == 0) walk.first_stamp = record.stamp();
  collect_watermarks(record, walk.watermarks);
  if (record.lsn() < head) return;
  if (record.stamp() <= floor) return;
  const auto offset = static_cast<std::uint64_t>(record.data() - source.file);
  if (walk.records.empty()) walk.first_lsn = record.lsn();
  walk.records.push_back({record.stamp(), offset});
  if (record.kind() == RecordKind::watermark) {
    ++walk.watermark_records;
    return;
  }
  record.for_each_dependency([&](SessionId session, Stamp stamp) {
    if (stamp <= floor || session == run_session) return;
    walk.dependencies.emplace_back(stamp, session, walk.records.size() - 1);
  });
}

}  // namespace

RunWalk walk_run(const LogSource& source, const SegmentRun& run, Lsn head, Stamp floor,
                 ReadAllowance& allowance) {
  RunWalk walk;
  Reading reading(allowance);
  RecordWalker walker(bytes_of(source, run), run.first_lsn, source.seed_of(run.session));
  bool searched = false;
  bool more = reading.may_begin();
  for (;;) {
    walk.next_lsn = walker.next_lsn();
    walk.position = walker.position();
    if (!more) break;
    const std::uint64_t before = walker.bytes_read();
    const auto record = walker.next();
    more = reading.add(walker.bytes_read() - before);
    if (record) {
      walk.contradiction = find_contradiction(source, *record);
      if (!walk.contradiction.empty()) break;
      const std::size_t kept = walk.kept();
      take(source, run.session, *record, head, floor, walk);
      reading.keep(walk.kept() - kept);
      walk.last_stamp = record->stamp();
      continue;
    }
    if (searched || walker.next_lsn() >= head) break;
    searched = true;
    std::uint64_t found = 0;
    search(
        source, run.session, {run.offset + walker.position(), run.bytes - walker.position()},
        reading, [&](const RecordHeader& header) { return header.lsn == head; },
        [&](std::uint64_t offset, const RecordView&) {
          found = offset - run.offset;
          return false;
        });
    if (found == 0) break;
    walk.gap_begin = walker.position();
    walk.gap_end = found;
    walker.resume(found, head);
  }
  return walk;
}

void look_beyond(const LogSource& source, SessionId session, FileRange where, Lsn lsn,
                 ReadAllowance& allowance, Beyond& beyond) {
  Reading reading(allowance);
  if (!reading.may_begin()) return;
  search(
      source, session, where, reading, [&](const RecordHeader& header) { return header.lsn > lsn; },
      [&](std::uint64_t, const RecordView& record) {
        if (record.kind() == RecordKind::transaction) {
          ++beyond.records;
          if (beyond.named.size() < Beyond::kMostNamed) {
            beyond.named.push_back({record.lsn(), record.stamp()});
          }
        }
        if (record.stamp() <= pool::kMostStampToGoOnFrom) {
          beyond.largest_stamp = std::max(beyond.largest_stamp, record.stamp());
        }
        beyond.persisted_upto =
            std::max(beyond.persisted_upto, Lsn{record.header().persisted_upto});
        const std::size_t kept = beyond.watermarks.size();
        collect_watermarks(record, beyond.watermarks);
        reading.keep(beyond.watermarks.size() - kept);
        return true;
      });
}

}  // namespace sp3::log

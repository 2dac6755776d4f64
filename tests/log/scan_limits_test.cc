// Logs that were made up to be read again and again.
#include <catch2/catch.hpp>

#include "tests/log/synthetic_log.h"

namespace sp3::test {
namespace {

constexpr std::uint64_t kPoolSize = std::uint64_t{2} << 20;
constexpr std::uint64_t kLogSize = std::uint64_t{1} << 20;  // 256 segments

// A header of the session's at the segment.
void put_run(SyntheticPool& pool, SessionId session, std::uint32_t segment, std::uint32_t segments,
             Lsn first_lsn) {
  log::SegmentHeader header;
  header.generation = pool.superblock.fixed.generation;
  header.first_lsn = first_lsn;
  header.checkpoint_number = pool.superblock.fixed.checkpoint_number;
  header.segments = segments;
  header.session = session;
  pool.put_header(header, segment);
}

// By session 1: a header at each segment from `first` on that claims all segments behind it.
void claim_all(SyntheticPool& pool, std::uint32_t first, Lsn first_lsn, Lsn step) {
  for (std::uint32_t segment = first; segment < pool.layout.segments; ++segment) {
    put_run(pool, 1, segment, pool.layout.segments - segment, first_lsn + step * (segment - first));
  }
}

// An intact record of the session's at the place. It writes one image, of whatever lies there up to
// its dependencies, which are there already.
void put_record(SyntheticPool& pool, SessionId session, std::uint64_t at, std::uint64_t end,
                log::RecordHeader header) {
  header.length = static_cast<std::uint32_t>(end - at);
  header.writes = 1;
  log::WriteHeader write;
  write.slot = pool.layout.slabs_offset;
  write.bytes =
      static_cast<std::uint32_t>(header.length - sizeof header - sizeof write -
                                 std::size_t{header.dependencies} * sizeof(log::Dependency));
  write.kind = static_cast<std::uint16_t>(log::WriteKind::image);
  std::byte* const record = pool.bytes.data() + at;
  std::memcpy(record, &header, sizeof header);
  std::memcpy(record + sizeof header, &write, sizeof write);
  header.crc = log::checksum_record(record, header.length, pool.seed(session));
  std::memcpy(record, &header, sizeof header);
}

log::RecordHeader header_of(Lsn lsn, Stamp stamp) {
  log::RecordHeader header;
  header.lsn = lsn;
  header.stamp = stamp;
  header.kind = static_cast<std::uint16_t>(log::RecordKind::transaction);
  return header;
}

// Behind each of these headers an intact record of all that follows, headers and records included.
void fill_all(SyntheticPool& pool, std::uint32_t first, Lsn first_lsn, Lsn step) {
  const std::uint64_t end = pool.layout.log_offset + pool.layout.log_bytes;
  for (std::uint32_t segment = pool.layout.segments; segment-- > first;) {
    const std::uint64_t at = pool.layout.segment_offset(segment) + sizeof(log::SegmentHeader);
    put_record(pool, 1, at, end, header_of(first_lsn + step * (segment - first), 100 + segment));
  }
}

std::uint64_t most_bytes(const SyntheticPool& pool) {
  return (log::kMostPasses + pool.layout.max_sessions) * pool.layout.log_bytes;
}

}  // namespace

TEST_CASE("a log of which every segment claims all that follow is damage after a bounded time") {
  SyntheticPool pool(kPoolSize, kLogSize);
  claim_all(pool, 0, 2, 2);  // record 1, with which the log begins, is in none of them
  fill_all(pool, 0, 2, 2);
  const auto scan = pool.scan();
  CHECK(scan.bytes_scanned < most_bytes(pool) + pool.layout.log_bytes);
  CHECK(scan.bytes_read < most_bytes(pool) + pool.layout.log_bytes);
  REQUIRE(scan.damage.size() == 1);
  CHECK(scan.damage[0].offset == pool.layout.log_offset);
}

// One session's records, the last of each segment with a header of the next segment in it, which
// claims all that follow.
TEST_CASE("what is kept of a log of which every segment claims all that follow is bounded") {
  SyntheticPool pool(kPoolSize, kLogSize);
  Lsn lsn = 1;
  const std::uint64_t log_end = pool.layout.log_offset + pool.layout.log_bytes;
  put_run(pool, 1, 0, pool.layout.segments, 1);
  std::uint64_t at = pool.layout.log_offset + sizeof(log::SegmentHeader);
  std::uint64_t records = 0;
  for (std::uint32_t segment = 1; at < log_end; ++records) {
    const std::uint64_t boundary = pool.layout.log_offset + segment * pool.layout.segment_size;
    const bool covers = boundary < log_end && at + 64 == boundary;
    if (covers) {
      put_run(pool, 1, segment, pool.layout.segments - segment, lsn + 1);
      ++segment;
    }
    log::RecordHeader header;
    header.length = covers ? 128 : sizeof header + sizeof(log::Dependency);
    header.lsn = lsn++;
    header.stamp = 10 + header.lsn;
    header.writes = covers ? 1 : 0;
    header.dependencies = covers ? 0 : 1;
    header.kind = static_cast<std::uint16_t>(log::RecordKind::transaction);
    std::byte* const record = pool.bytes.data() + at;
    if (covers) {
      log::WriteHeader write;
      write.slot = pool.layout.slabs_offset;
      write.bytes = static_cast<std::uint32_t>(header.length - sizeof header - sizeof write);
      write.kind = static_cast<std::uint16_t>(log::WriteKind::image);
      static_assert(sizeof header + sizeof write <= 64);  // the segment's header is in the object
      std::memcpy(record + sizeof header, &write, sizeof write);
    } else {
      const log::Dependency dependency{.stamp = 1, .session = 2};
      std::memcpy(record + sizeof header, &dependency, sizeof dependency);
    }
    header.crc = 0;
    std::memcpy(record, &header, sizeof header);
    header.crc = log::checksum_record(record, header.length, pool.seed(1));
    std::memcpy(record, &header, sizeof header);
    at += base::round_up(std::uint64_t{header.length}, 64);
  }
  REQUIRE(records > pool.layout.log_bytes / 80);
  const auto scan = pool.scan();
  REQUIRE(scan.damage.size() == 1);
  CHECK(scan.damage[0].what.find("overlap") != std::string::npos);
  const std::uint64_t kept = pool.layout.log_bytes / log::kBytesForEachKept;
  CHECK(scan.bytes_read < kept * 64 + 2 * pool.layout.log_bytes);
  CHECK(scan.bytes_read < most_bytes(pool) / 2);
}

TEST_CASE("what is found in a log that is not read to its end does not depend on threads") {
  SyntheticPool pool(kPoolSize, kLogSize);
  pool.append_simple(0, 5);
  // The runs of session 1 form a chain, with nothing in common but the bytes.
  claim_all(pool, 1, 1, 1);
  fill_all(pool, 1, 1, 1);
  // Whose first one would hide the others, had it a record above the floor.
  pool.superblock.fixed.floor = 100 + pool.layout.segments;
  pool.superblock.heads[1] = 2;
  pool.superblock.heads[0] = 2;
  const auto one = pool.scan(1);
  REQUIRE(one.damage.size() == 1);
  for (int round = 0; round < 50; ++round) {
    const auto many = pool.scan(4);
    CHECK(many.damage.size() == 1);
    CHECK(many.bytes_scanned == one.bytes_scanned);
    CHECK(many.largest_stamp == one.largest_stamp);
  }
}

TEST_CASE("runs that were begun and left empty are searched once, however they overlap") {
  SyntheticPool pool(kPoolSize, kLogSize);
  pool.append_simple(1, 5);
  pool.append_simple(1, 6);
  claim_all(pool, 1, 3, 0);
  const auto scan = pool.scan();
  CHECK(scan.damage.empty());
  CHECK(scan.bytes_read < 4 * pool.layout.log_bytes);
  REQUIRE(scan.sessions.size() == 1);
  CHECK(scan.sessions[0].records.size() == 2);
}

// Two sessions whose heads are found behind gaps, the one's run in the gap of the other's. The
// outer record covers the inner one.
TEST_CASE("no byte belongs to two records") {
  SyntheticPool pool;
  const auto head = [&](SessionId session, std::uint32_t segment, Lsn lsn) {
    put_run(pool, session, segment, 8, lsn - 1);  // whose first record is not there
    pool.superblock.heads[session] = lsn;
  };
  head(1, 0, 10);
  head(2, 1, 20);
  const std::uint64_t outer = pool.layout.segment_offset(3);
  const bool inside = GENERATE(true, false);  // or in the gap, where nobody else's record is
  const std::uint64_t inner = inside ? outer + 64 : outer - 128;
  put_record(pool, 2, inner, inner + 128, header_of(20, 200));
  put_record(pool, 1, outer, outer + 256, header_of(10, 100));
  const auto scan = pool.scan();
  std::uint64_t records = 0;
  for (const log::LogPrefix& prefix : scan.sessions) records += prefix.records.size();
  CHECK(records == (inside ? 1 : 2));
}

// Of each session a watermark that it has not got to, all of which share what they say.
TEST_CASE("of watermarks behind the ends no more is kept than of records") {
  constexpr std::uint64_t kMarks = 16'000;
  SyntheticPool pool(kPoolSize, kLogSize);
  const auto sessions = static_cast<SessionId>(pool.superblock.heads.size());
  const std::uint64_t first = pool.layout.segment_offset(8);
  const std::uint64_t shared = first + std::uint64_t{64} * sessions;
  const log::Dependency mark{.stamp = 1, .session = 1};
  const std::uint64_t end = shared + kMarks * sizeof mark;
  for (std::uint64_t at = shared; at < end; at += sizeof mark) {
    std::memcpy(pool.bytes.data() + at, &mark, sizeof mark);
  }
  log::RecordHeader header = header_of(100, 100);
  header.dependencies = kMarks;
  header.kind = static_cast<std::uint16_t>(log::RecordKind::watermark);
  for (SessionId session = sessions; session-- > 0;) {
    put_run(pool, session, session, pool.layout.segments - session, 1);
    put_record(pool, session, first + std::uint64_t{64} * session, end, header);
  }
  log::ReadAllowance allowance(most_bytes(pool), 2 * kMarks);
  log::Beyond beyond;
  for (SessionId session = 0; session < sessions; ++session) {
    log::look_beyond(pool.source(), session, {first, end - first}, 1, allowance, beyond);
  }
  CHECK(beyond.watermarks.size() > kMarks);
  CHECK(beyond.watermarks.size() <= 4 * kMarks);
}

TEST_CASE("a run is walked once, whatever turns out to be no run") {
  SyntheticPool pool;
  pool.append_simple(2, 5);  // segment 0
  std::vector<std::byte> object(3 * 4096 - 192);
  RecordBuilder builder;
  builder.add_image(pool.layout.slabs_offset, object.data(),
                    static_cast<std::uint32_t>(object.size()));
  pool.append(1, builder, 6);  // segments 1 to 3
  // What session 2 might write next, in the object.
  SyntheticPool forged;
  forged.superblock = pool.superblock;
  forged.writer(2).next_lsn = 2;
  forged.start_run(2, 2);
  forged.append_simple(2, 50);
  const std::uint64_t in_object = pool.layout.segment_offset(2);
  const std::uint64_t begin = pool.layout.segment_offset(1) + sizeof(log::SegmentHeader);
  std::memcpy(pool.bytes.data() + in_object, forged.bytes.data() + in_object, 4096);
  log::RecordHeader header;
  std::memcpy(&header, pool.bytes.data() + begin, sizeof header);
  header.crc = log::checksum_record(pool.bytes.data() + begin, header.length, pool.seed(1));
  std::memcpy(pool.bytes.data() + begin, &header, sizeof header);

  std::vector<std::uint64_t> walked;
  emu::Executor executor(1);
  const auto scan =
      log::scan_logs(pool.source(), pool.superblock.fixed.floor, pool.superblock.heads, executor,
                     [&](std::uint64_t done, std::uint64_t) { walked.push_back(done); });
  CHECK(scan.damage.empty());
  CHECK(scan.largest_stamp == 6);
  CHECK(walked.size() == 3);  // the forged one, too, until it was found to be none
  CHECK(std::is_sorted(walked.begin(), walked.end()));
}

TEST_CASE("of a thousand damaged places the rest is counted") {
  SyntheticPool pool(std::uint64_t{16} << 20, std::uint64_t{8} << 20);
  for (std::uint32_t segment = 0; segment < pool.layout.segments; ++segment) {
    log::SegmentHeader header;
    header.generation = pool.superblock.fixed.generation + 1;
    header.first_lsn = 1;
    pool.put_header(header, segment);
  }
  const auto scan = pool.scan();
  CHECK(scan.damage.size() == 1000);
  CHECK(scan.damage.size() + scan.more_damage == pool.layout.segments);
}

}  // namespace sp3::test

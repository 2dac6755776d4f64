#include <catch2/catch.hpp>

#include "pool/limits.h"
#include "tests/log/prefixes.h"

namespace sp3::test {
namespace {

using log::PrefixEnd;

// The bytes of an object whose record takes a run of three segments.
constexpr std::size_t kThreeSegments = 3 * 4096 - 192;

// By session 1, with stamp 6.
void append_object(SyntheticPool& pool, const std::vector<std::byte>& object) {
  RecordBuilder builder;
  builder.add_image(pool.layout.slabs_offset, object.data(),
                    static_cast<std::uint32_t>(object.size()));
  pool.append(1, builder, 6);
}

}  // namespace

TEST_CASE("an empty log has no sessions and no damage") {
  const SyntheticPool pool;
  const auto scan = pool.scan();
  CHECK(scan.sessions.empty());
  CHECK(scan.damage.empty());
}

TEST_CASE("records of several sessions over several runs are found in order") {
  SyntheticPool pool;
  for (Stamp stamp = 1; stamp <= 120; ++stamp) {
    pool.append_simple(static_cast<SessionId>(stamp % 3), 10 * stamp);
  }
  CHECK(pool.next_segment > 3);
  for (const std::uint32_t threads : {1U, 2U}) {
    const auto scan = pool.scan(threads);
    CHECK(scan.damage.empty());
    for (const SessionId session : {SessionId{0}, SessionId{1}, SessionId{2}}) {
      CHECK(lsns(pool, scan, session) == range(1, 40));
      CHECK(find(scan, session)->end == PrefixEnd::clean);
    }
    CHECK(scan.largest_stamp == 1200);
  }
}

TEST_CASE("records up to the floor are walked but not listed") {
  SyntheticPool pool;
  for (Stamp stamp = 1; stamp <= 60; ++stamp) pool.append_simple(2, stamp);
  pool.superblock.fixed.floor = 47;
  SECTION("with the head where the floor is") { pool.superblock.heads[2] = 48; }
  SECTION("with the head at the start") { pool.superblock.heads[2] = 1; }
  const auto scan = pool.scan();
  CHECK(lsns(pool, scan, 2) == range(48, 60));
  CHECK(scan.damage.empty());
}

TEST_CASE("a damaged record below the head is passed over") {
  SyntheticPool pool;
  std::vector<SyntheticPool::Place> places;
  for (Stamp stamp = 1; stamp <= 20; ++stamp) places.push_back(pool.append_simple(2, stamp));
  pool.superblock.fixed.floor = 9;
  pool.superblock.heads[2] = 10;
  wipe(pool, places[4]);
  const auto scan = pool.scan();
  CHECK(lsns(pool, scan, 2) == range(10, 20));
  CHECK(scan.damage.empty());
}

TEST_CASE("what is lost below the head is no damage though nothing is behind the head") {
  SyntheticPool pool;
  std::vector<SyntheticPool::Place> places;
  for (Stamp stamp = 1; stamp <= 20; ++stamp) {
    places.push_back(pool.append_simple(2, stamp, stamp - 1));
  }
  pool.superblock.fixed.floor = 20;
  pool.superblock.heads[2] = 21;
  wipe(pool, places[4]);
  const auto scan = pool.scan();
  CHECK(scan.damage.empty());
  CHECK(lsns(pool, scan, 2).empty());
  REQUIRE(find(scan, 2));
  CHECK(find(scan, 2)->next_lsn == 21);
  CHECK(find(scan, 2)->end == PrefixEnd::clean);
}

TEST_CASE("watermarks are counted over all runs of a session") {
  SyntheticPool pool;
  for (const std::uint32_t segment : {3U, 5U}) {
    pool.start_run(1, segment);
    pool.append_simple(1, 10 * segment);
    pool.append_watermark(1, 10 * segment + 1, 2, 0);
  }
  const auto scan = pool.scan();
  CHECK(lsns(pool, scan, 1) == range(1, 4));
  CHECK(find(scan, 1)->watermark_records == 2);
}

TEST_CASE("stale runs of recycled segments are history") {
  SyntheticPool pool;
  // Session 1 wrote runs 0 and 1 and lives in 2; session 3 has reused segment 0.
  for (Stamp stamp = 1; pool.next_segment < 3; ++stamp) pool.append_simple(1, stamp);
  const Lsn head = pool.writer(1).next_lsn - 1;
  for (Stamp stamp = 1001; stamp < 1010; ++stamp) pool.append_simple(1, stamp);
  pool.superblock.fixed.floor = 900;
  pool.superblock.heads[1] = head + 1;
  pool.start_run(3, 0);
  pool.append_simple(3, 2000);
  const auto scan = pool.scan();
  CHECK(lsns(pool, scan, 1) == range(head + 1, head + 9));
  CHECK(lsns(pool, scan, 3) == range(1, 1));
  CHECK(scan.damage.empty());
}

TEST_CASE("a session that was checkpointed and idle has nothing, and that is no damage") {
  SyntheticPool pool;
  for (Stamp stamp = 1; stamp <= 5; ++stamp) pool.append_simple(1, stamp);
  pool.superblock.fixed.floor = 5;
  pool.superblock.heads[1] = 6;
  CHECK(pool.scan().damage.empty());
  CHECK(lsns(pool, pool.scan(), 1).empty());
  pool.superblock.heads[1] = 600;  // its runs are all gone
  CHECK(pool.scan().damage.empty());
}

TEST_CASE("a run that was started and left empty does not hide the one after it") {
  SyntheticPool pool;
  for (Stamp stamp = 1; stamp <= 5; ++stamp) pool.append_simple(1, stamp);
  pool.start_run(1, 5);
  pool.start_run(1, 7);
  pool.append_simple(1, 6);
  pool.start_run(1, 9);
  CHECK(lsns(pool, pool.scan(), 1) == range(1, 6));
}

TEST_CASE("a torn last record ends the log at every 8-byte cut") {
  SyntheticPool pool;
  for (Stamp stamp = 1; stamp <= 8; ++stamp) pool.append_simple(1, stamp, 0, 200);
  const auto last = pool.append_simple(1, 9, 0, 200);
  const std::vector<std::byte> whole = pool.bytes;
  for (std::uint64_t cut = 0; cut < 256; cut += 8) {
    pool.bytes = whole;
    std::memset(pool.bytes.data() + last.offset + cut, 0, last.size - cut);
    const auto scan = pool.scan();
    CHECK(scan.damage.empty());
    CHECK(lsns(pool, scan, 1) == range(1, 8));
    // Without a single word of it there is no trace.
    CHECK(find(scan, 1)->end == (cut >= 24 ? PrefixEnd::torn : PrefixEnd::clean));
  }
}

TEST_CASE("a record that was begun in the next block is a torn end") {
  SyntheticPool pool;
  pool.start_run(1, 0, 2);
  pool.append_simple(1, 1);
  pool.skip_to_block(1);
  const auto last = pool.append_simple(1, 2);
  pool.bytes[last.offset + last.size - 8] ^= std::byte{1};
  pool.bytes[last.offset] ^= std::byte{1};
  const auto scan = pool.scan();
  CHECK(lsns(pool, scan, 1) == range(1, 1));
  CHECK(find(scan, 1)->end == PrefixEnd::torn);
}

// Its LSNs begin at 1 as well, and its first segment is the same.
TEST_CASE("what an earlier generation left where the next record belongs is no torn end") {
  SyntheticPool pool;
  for (Stamp stamp = 1; stamp <= 5; ++stamp) pool.append_simple(1, stamp);
  const std::vector<std::byte> before = pool.bytes;
  pool.superblock.fixed.floor = 5;
  pool.superblock.fixed.generation += 1;
  pool.writer(1).next_lsn = 1;
  pool.start_run(1, 0);
  pool.append_simple(1, 6);
  const auto third = pool.append_simple(1, 7).offset + pool.append_simple(1, 8).size;
  const auto scan = [&] { return pool.scan(); };
  std::memcpy(pool.bytes.data() + third, before.data() + third,
              pool.layout.segment_size - (third - pool.layout.segment_offset(0)));
  CHECK(lsns(pool, scan(), 1) == range(1, 2));
  CHECK(find(scan(), 1)->end == PrefixEnd::clean);
  SECTION("one that was begun by this generation is") {
    RecordBuilder builder;
    builder.add_destroy(pool.layout.slabs_offset);
    builder.seal(3, 9, 0, pool.seed(1));
    std::memcpy(pool.bytes.data() + third, builder.data(), sizeof(log::RecordHeader));
    CHECK(find(scan(), 1)->end == PrefixEnd::torn);
  }
}

TEST_CASE("a hole is torn while no later record says that it was durable") {
  SyntheticPool pool;
  std::vector<SyntheticPool::Place> places;
  for (Stamp stamp = 1; stamp <= 9; ++stamp) {
    places.push_back(pool.append_simple(1, stamp, stamp <= 6 ? stamp - 1 : 5));
  }
  SECTION("asynchronous records behind the hole were never acknowledged") {
    wipe(pool, places[6]);
    const auto scan = pool.scan();
    CHECK(scan.damage.empty());
    CHECK(lsns(pool, scan, 1) == range(1, 6));
    CHECK(find(scan, 1)->end == PrefixEnd::torn);
    CHECK(find(scan, 1)->beyond_records == 2);
    CHECK(scan.largest_stamp == 9);
  }
  SECTION("a later record covers it") {
    wipe(pool, places[3]);
    const auto scan = pool.scan();
    REQUIRE(scan.damage.size() == 1);
    CHECK(scan.damage[0].offset == places[3].offset);
    CHECK(lsns(pool, scan, 1) == range(1, 3));
    CHECK(find(scan, 1)->end == PrefixEnd::damaged);
  }
  SECTION("a watermark in another session's log covers it") {
    pool.append_watermark(4, 100, 1, 7);
    wipe(pool, places[6]);
    const auto scan = pool.scan();
    REQUIRE(scan.damage.size() == 1);
    CHECK(scan.damage[0].offset == places[6].offset);
  }
  SECTION("a watermark that stops short of it does not") {
    pool.append_watermark(4, 100, 1, 6);
    wipe(pool, places[6]);
    CHECK(pool.scan().damage.empty());
  }
}

TEST_CASE("of records behind the end the first thousand are named, and all counted") {
  SyntheticPool pool(std::uint64_t{2} << 20, std::uint64_t{512} << 10);
  RecordBuilder builder;
  builder.add_destroy(pool.layout.slabs_offset);
  const auto first = pool.append(1, builder, 1);
  for (Stamp stamp = 2; stamp <= 1101; ++stamp) pool.append(1, builder, stamp);
  pool.append_watermark(1, 1102, 2, 0);  // which is none of anybody's
  wipe(pool, first);
  const auto scan = pool.scan();
  REQUIRE(find(scan, 1));
  CHECK(find(scan, 1)->beyond_records == 1100);
  REQUIRE(find(scan, 1)->beyond.size() == 1000);
  CHECK(find(scan, 1)->beyond.back().lsn == 1001);
}

// A user may have copied one out of a log.
TEST_CASE("a record inside an object behind the end says nothing") {
  SyntheticPool pool;
  const auto lost = pool.append_simple(1, 1);
  RecordBuilder forged;
  forged.add_destroy(pool.layout.slabs_offset);
  forged.seal(9, 50, 8, pool.seed(1));
  constexpr std::size_t kHeaders = sizeof(log::RecordHeader) + sizeof(log::WriteHeader);
  std::vector<std::byte> object(256);
  std::memcpy(object.data() + 128 - kHeaders, forged.data(), forged.size());
  append_object(pool, object);
  wipe(pool, lost);
  const auto scan = pool.scan();
  CHECK(scan.damage.empty());
  CHECK(scan.largest_stamp == 6);
  CHECK(find(scan, 1)->beyond_records == 1);
}

TEST_CASE("what overlaps is searched for witnesses up to the end of the last") {
  SyntheticPool pool;
  for (Stamp stamp = 1; stamp <= 5; ++stamp) pool.append_simple(1, stamp);
  pool.writer(1).next_lsn = 7;  // 6 is lost with its run
  pool.start_run(1, 4, 3);      // left empty
  pool.start_run(1, 6, 3);
  pool.writer(1).position = pool.layout.segment_offset(8);
  pool.append_simple(1, 20, 6);
  const auto scan = pool.scan();
  CHECK(scan.damage.size() == 1);
  CHECK(find(scan, 1)->end == PrefixEnd::damaged);
}

TEST_CASE("a lost first record of the last run is judged by the records behind it") {
  SyntheticPool pool;
  while (pool.next_segment < 2) pool.append_simple(1, pool.writer(1).next_lsn);
  const Lsn lost = pool.writer(1).next_lsn - 1;
  const std::uint64_t at = pool.layout.segment_offset(1) + sizeof(log::SegmentHeader);
  pool.append_simple(1, lost + 1, lost);
  pool.bytes[at + 20] ^= std::byte{1};
  const auto scan = pool.scan();
  REQUIRE(scan.damage.size() == 1);
  CHECK(scan.damage[0].offset == at);
  CHECK(find(scan, 1)->beyond_records == 1);
}

TEST_CASE("a lost run is damage if a later run says that it was durable") {
  SyntheticPool pool;
  while (pool.next_segment < 4) {
    pool.append_simple(1, pool.writer(1).next_lsn, pool.writer(1).next_lsn - 1);
  }
  std::memset(pool.bytes.data() + pool.layout.segment_offset(1), 0, 64);
  const auto scan = pool.scan();
  REQUIRE(scan.damage.size() == 1);
  CHECK(find(scan, 1)->end == PrefixEnd::damaged);
}

TEST_CASE("a log of which nothing is left is damage if a watermark covers it") {
  SyntheticPool pool;
  pool.append_watermark(4, 100, 1, 3);
  CHECK(pool.scan().damage.size() == 1);
  pool.superblock.heads[1] = 3;
  CHECK(pool.scan().damage.size() == 1);
  pool.append_simple(4, 101);
  pool.superblock.heads[4] = 2;  // behind the watermark
  CHECK(pool.scan().damage.size() == 1);
  pool.superblock.heads[1] = 4;
  CHECK(pool.scan().damage.empty());
}

TEST_CASE("a header from after the superblock's checkpoint is damage") {
  SyntheticPool pool;
  pool.append_simple(1, 5);
  pool.superblock.fixed.checkpoint_number -= 1;
  REQUIRE(pool.scan().damage.size() == 1);
  CHECK(pool.scan().damage[0].offset == pool.layout.segment_offset(0));
  pool.superblock.fixed.checkpoint_number += 5;
  CHECK(pool.scan().damage.empty());
}

TEST_CASE("a header that cannot be true is damage, and its run is not read") {
  SyntheticPool pool;
  pool.append_simple(1, 5);
  log::SegmentHeader header;
  header.generation = pool.superblock.fixed.generation;
  header.first_lsn = 1;
  header.checkpoint_number = pool.superblock.fixed.checkpoint_number;
  header.segments = 1;
  header.session = 2;
  SECTION("of a session that the pool has not") {
    header.session = static_cast<SessionId>(pool.layout.max_sessions);
  }
  SECTION("of more segments than there are behind it") {
    header.segments = pool.layout.segments - 4 + 1;
  }
  SECTION("of no segments") { header.segments = 0; }
  SECTION("of a record 0") { header.first_lsn = 0; }
  SECTION("of a later generation") { header.generation += 1; }
  pool.put_header(header, 4);
  const auto scan = pool.scan();
  REQUIRE(scan.damage.size() == 1);
  CHECK(scan.damage[0].offset == pool.layout.segment_offset(4));
  CHECK(lsns(pool, scan, 1) == range(1, 1));
}

TEST_CASE("headers and records of other generations, places and pools are not seen") {
  SyntheticPool pool;
  pool.append_simple(1, 5);
  SECTION("older generation") { pool.superblock.fixed.generation += 1; }
  SECTION("another pool") { pool.superblock.fixed.uuid[3] ^= 1; }
  SECTION("another place") {
    std::memcpy(pool.bytes.data() + pool.layout.segment_offset(4),
                pool.bytes.data() + pool.layout.segment_offset(0), 4096);
    std::memset(pool.bytes.data() + pool.layout.segment_offset(0), 0, 4096);
  }
  const auto scan = pool.scan();
  CHECK(scan.sessions.empty());
  CHECK(scan.damage.empty());
}

TEST_CASE("the record after a flushed block is found at the next block") {
  SyntheticPool pool(256 * 1024, 64 * 1024);
  pool.start_run(1, 0, 4);
  pool.skip_to_block(1);  // even the first record may be there
  pool.append_simple(1, 10);
  pool.append_simple(1, 11);
  pool.skip_to_block(1);
  pool.append_simple(1, 12);
  pool.skip_to_block(1);
  pool.append_simple(1, 13);
  CHECK(lsns(pool, pool.scan(), 1) == range(1, 4));
}

TEST_CASE("log bytes inside a large record are not taken for a log") {
  SyntheticPool pool;
  // What session 2 might write next, made up by a user, where session 1's large record lies.
  SyntheticPool forged;
  forged.superblock = pool.superblock;
  pool.append_simple(2, 5);  // segment 0
  forged.writer(2).next_lsn = 2;
  forged.start_run(2, 2);
  forged.append_simple(2, 50);
  forged.append_simple(2, 51, 2);
  SECTION("nor for one that cannot be true") {
    log::SegmentHeader header;
    header.generation = forged.superblock.fixed.generation;
    header.checkpoint_number = forged.superblock.fixed.checkpoint_number + 1;
    header.first_lsn = 2;
    header.session = 2;
    forged.put_header(header, 2);
  }
  SECTION("as it was written") {}
  std::vector<std::byte> object(kThreeSegments);
  std::memcpy(object.data() + 4096 - 64 - 40 - 16,
              forged.bytes.data() + forged.layout.segment_offset(2), 4096);
  append_object(pool, object);  // segments 1 to 3
  REQUIRE(std::memcmp(pool.bytes.data() + pool.layout.segment_offset(2),
                      forged.bytes.data() + forged.layout.segment_offset(2), 4096) == 0);
  const auto scan = pool.scan();
  CHECK(scan.damage.empty());
  CHECK(lsns(pool, scan, 1) == range(1, 1));
  CHECK(lsns(pool, scan, 2) == range(1, 1));
}

TEST_CASE("a later run inside a recycled long one is found") {
  SyntheticPool pool;
  append_object(pool, std::vector<std::byte>(kThreeSegments));  // segments 0 to 2, then recycled
  pool.superblock.fixed.floor = 6;
  pool.superblock.heads[1] = 2;
  pool.start_run(2, 1);
  pool.append_simple(2, 8);
  CHECK(lsns(pool, pool.scan(), 2) == range(1, 1));
}

// Power failed before the header of session 1's new run was written back, but after its record was.
// The header of the run that was there before is believed, with all the segments that it claims.
TEST_CASE("a recycled long run that is believed once more hides nobody's run") {
  SyntheticPool pool;
  append_object(pool, std::vector<std::byte>(kThreeSegments));  // segments 0 to 2, then recycled
  pool.superblock.fixed.floor = 6;
  pool.superblock.heads[1] = 2;
  std::vector<std::byte> old_header(sizeof(log::SegmentHeader));
  std::byte* const header = pool.bytes.data() + pool.layout.segment_offset(0);
  std::memcpy(old_header.data(), header, old_header.size());
  pool.start_run(1, 0);
  pool.append_simple(1, 9);
  pool.start_run(2, 1);
  pool.append_simple(2, 8);
  std::memcpy(header, old_header.data(), old_header.size());
  const auto scan = pool.scan();
  CHECK(lsns(pool, scan, 2) == range(1, 1));
  CHECK(lsns(pool, scan, 1) == range(2, 2));
  CHECK(scan.damage.empty());
}

TEST_CASE("a record whose predecessor is younger than itself is damage") {
  SyntheticPool pool;
  RecordBuilder builder;
  pool.append_simple(1, 5);
  builder.add_destroy(pool.layout.slabs_offset);
  builder.add_dependency(2, 10);
  const auto place = pool.append(1, builder, 10);
  const auto scan = pool.scan();
  REQUIRE(scan.damage.size() == 1);
  CHECK(scan.damage[0].offset == place.offset);
  CHECK(lsns(pool, scan, 1) == range(1, 1));
}

TEST_CASE("a record that says what no writer can know is damage") {
  SyntheticPool pool;
  RecordBuilder builder;
  pool.append_simple(1, 5);
  builder.add_destroy(pool.layout.slabs_offset);
  std::uint64_t offset = 0;
  SECTION("that it is durable itself") { offset = pool.append(1, builder, 10, 2).offset; }
  SECTION("a predecessor in a session that the pool has not") {
    builder.add_dependency(static_cast<SessionId>(pool.layout.max_sessions), 6);
    offset = pool.append(1, builder, 10).offset;
  }
  SECTION("a watermark, and a write") {
    offset = pool.append(1, builder, 10, 0, log::RecordKind::watermark).offset;
  }
  const auto scan = pool.scan();
  REQUIRE(scan.damage.size() == 1);
  CHECK(scan.damage[0].offset == offset);
  CHECK(lsns(pool, scan, 1) == range(1, 1));
}

TEST_CASE("a record with a stamp that no clock reaches is damage, and no floor") {
  constexpr Stamp kImpossible = pool::kMostStamp + 1;
  SyntheticPool pool;
  pool.append_simple(1, 5);
  const auto place = pool.append_simple(1, kImpossible);
  pool.append_simple(1, kImpossible + 1);
  const auto scan = pool.scan();
  REQUIRE(scan.damage.size() == 1);
  CHECK(scan.damage[0].offset == place.offset);
  CHECK(lsns(pool, scan, 1) == range(1, 1));
  CHECK(scan.largest_stamp == 5);
}

TEST_CASE("a stamp that does not grow ends the prefix") {
  SyntheticPool pool;
  pool.append_simple(1, 5);
  pool.append_simple(1, 7);
  pool.append_simple(1, 7);
  CHECK(lsns(pool, pool.scan(), 1) == range(1, 2));
}

TEST_CASE("a stamp that does not grow from one run to the next ends the prefix") {
  for (const Stamp stamp : {Stamp{6}, Stamp{7}, Stamp{8}}) {
    SyntheticPool pool;
    pool.append_simple(1, 5);
    pool.append_simple(1, 7);
    pool.start_run(1, 9);
    pool.append_simple(1, stamp);
    CHECK(lsns(pool, pool.scan(), 1) == range(1, stamp == 8 ? 3 : 2));
    CHECK(pool.scan().damage.empty());
    pool.append_simple(1, 9, 3);
    CHECK(pool.scan().damage.size() == (stamp == 8 ? 0 : 1));
  }
}

TEST_CASE("bytes made up to look like endless records do not stop the scan") {
  SyntheticPool pool(16 << 20, 8 << 20);
  pool.start_run(1, 0, 2048);
  pool.append_simple(1, 5);
  log::RecordHeader header;
  header.kind = 1;
  header.lsn = 90;
  header.stamp = 100;
  for (std::uint64_t at = 4096; at + 64 <= 8 << 20; at += 64) {
    header.length = static_cast<std::uint32_t>((8 << 20) - at);
    std::memcpy(pool.bytes.data() + pool.layout.log_offset + at, &header, sizeof header);
  }
  const auto scan = pool.scan();
  CHECK(lsns(pool, scan, 1) == range(1, 1));
  CHECK(scan.damage.empty());  // nor do they use up what may be read
}

TEST_CASE("arbitrary bytes in the log region are scanned without harm") {
  SyntheticPool pool;
  for (Stamp stamp = 1; stamp <= 150; ++stamp) {
    pool.append_simple(static_cast<SessionId>(stamp % 4), stamp, 0,
                       static_cast<std::uint32_t>(8 * (1 + stamp % 30)));
  }
  const std::vector<std::byte> whole = pool.bytes;
  std::mt19937_64 random(11);
  for (int round = 0; round < 3000; ++round) {
    pool.bytes = whole;
    const auto flips = 1 + random() % 4;
    for (std::uint64_t i = 0; i < flips; ++i) {
      const std::uint64_t at = pool.layout.log_offset + random() % (pool.next_segment * 4096);
      pool.bytes[at] = static_cast<std::byte>(random());
    }
    const auto scan = pool.scan();
    for (const log::LogPrefix& prefix : scan.sessions) {
      for (const log::RecordRef& accepted : prefix.records) {
        // Every record accepted is one that was written.
        const std::uint64_t at = accepted.offset;
        const auto record = log::trusted_record(pool.bytes.data() + at);
        REQUIRE(std::memcmp(pool.bytes.data() + at, whole.data() + at, record.length()) == 0);
      }
    }
  }
}

// What lies behind the last record may be left from before: its stamp says so.
TEST_CASE("a log ends torn where its next record was begun, and clean where older bytes lie") {
  constexpr Stamp kFloor = 15;
  const bool has_record = GENERATE(true, false);
  const bool at_block = GENERATE(false, true);
  const Stamp newest = has_record ? 20 : kFloor;
  const auto end_with = [&](Lsn lsn, Stamp stamp) {
    SyntheticPool pool;
    pool.superblock.fixed.floor = kFloor;
    pool.start_run(1, 0, 2);
    if (has_record) pool.append_simple(1, newest);
    if (at_block) pool.skip_to_block(1);
    const SyntheticPool::Writer& writer = pool.writer(1);
    log::RecordHeader header;
    header.lsn = writer.next_lsn + lsn;
    header.stamp = stamp;
    std::memcpy(pool.bytes.data() + writer.position, &header, sizeof header);
    const auto scan = pool.scan();
    REQUIRE(scan.damage.empty());
    REQUIRE(scan.sessions.size() == 1);
    return scan.sessions[0].end;
  };
  CHECK(end_with(0, newest + 1) == PrefixEnd::torn);
  CHECK(end_with(0, newest) == PrefixEnd::clean);
  CHECK(end_with(0, newest - 1) == PrefixEnd::clean);
  CHECK(end_with(1, newest + 1) == PrefixEnd::clean);
}

}  // namespace sp3::test

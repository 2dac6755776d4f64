// Which runs a scan joins, and which watermarks it goes by.
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/log/prefixes.h"

namespace sp3::test {
namespace {

using log::PrefixEnd;

// A session's run at the segment, which begins at that LSN and holds what is appended next.
void start_run_at(SyntheticPool& pool, SessionId session, std::uint32_t segment, Lsn first_lsn) {
  pool.writer(session).next_lsn = first_lsn;
  pool.start_run(session, segment);
}

// The flusher lets heads go from the beginning of a run to that of another, and what is before may
// be overwritten from then on.
TEST_CASE("a log whose head begins a run is read from there, whatever became of the run before") {
  SyntheticPool pool;
  for (Stamp stamp = 1; stamp <= 5; ++stamp) pool.append_simple(1, stamp);
  const auto before = pool.layout.segment_offset(0) + sizeof(log::SegmentHeader);
  const Lsn head = pool.writer(1).next_lsn;
  pool.start_run(1, 3);
  for (Stamp stamp = 11; stamp <= 14; ++stamp) pool.append_simple(1, stamp, head - 1);
  pool.superblock.fixed.floor = 5;
  pool.superblock.heads[1] = head;
  // Its header has survived.
  std::memset(pool.bytes.data() + before, 0, pool.layout.segment_size - sizeof(log::SegmentHeader));
  const auto scan = pool.scan();
  CHECK(lsns(pool, scan, 1) == range(head, head + 3));
  CHECK(scan.damage.empty());
}

TEST_CASE("of two runs with one first record the one that goes on is read, wherever they are") {
  SyntheticPool pool;
  const Lsn head = GENERATE(1U, 4U);  // before both, and where they begin
  for (Stamp stamp = 1; stamp <= 3; ++stamp) pool.append_simple(1, stamp);
  const std::uint32_t left_empty = GENERATE(5U, 9U);
  start_run_at(pool, 1, left_empty, 4);
  start_run_at(pool, 1, 7, 4);
  for (Stamp stamp = 4; stamp <= 6; ++stamp) pool.append_simple(1, stamp);
  pool.superblock.heads[1] = head;
  const auto scan = pool.scan();
  CHECK(lsns(pool, scan, 1) == range(head, 6));
  CHECK(scan.damage.empty());
}

TEST_CASE("a run that was left empty among records does not end the log") {
  SyntheticPool pool;
  for (Stamp stamp = 1; stamp <= 5; ++stamp) pool.append_simple(1, stamp);
  start_run_at(pool, 1, 7, 4);
  start_run_at(pool, 1, 9, 6);
  pool.append_simple(1, 6);
  CHECK(lsns(pool, pool.scan(), 1) == range(1, 6));
}

// As "a recycled long run that is believed once more hides nobody's run", where its records end at
// the end of a segment.
TEST_CASE("a long run hides nothing in the segment behind what was read of it") {
  SyntheticPool pool;
  RecordBuilder builder;
  const std::vector<std::byte> object(2 * 4096 - sizeof(log::SegmentHeader) -
                                      sizeof(log::RecordHeader) - sizeof(log::WriteHeader));
  builder.add_image(pool.layout.slabs_offset, object.data(),
                    static_cast<std::uint32_t>(object.size()));
  pool.start_run(1, 0, 3);
  const auto place = pool.append(1, builder, 6);
  REQUIRE(place.offset + place.size == pool.layout.segment_offset(2));
  pool.start_run(2, 2);
  pool.append_simple(2, 8);
  CHECK(lsns(pool, pool.scan(), 1) == range(1, 1));
  CHECK(lsns(pool, pool.scan(), 2) == range(1, 1));
}

TEST_CASE("predecessors are those of their records, in whatever run these are") {
  SyntheticPool pool;
  RecordBuilder builder;
  for (Stamp stamp = 10; stamp < 16; ++stamp) {
    if (stamp % 2 == 0) pool.start_run(1, static_cast<std::uint32_t>(stamp - 10));
    builder.reset();
    builder.add_destroy(pool.layout.slabs_offset);
    if (stamp != 12) builder.add_dependency(2, stamp - 9);
    pool.append(1, builder, stamp);
  }
  const auto scan = pool.scan();
  REQUIRE(lsns(pool, scan, 1) == range(1, 6));
  std::vector<std::pair<std::uint64_t, Stamp>> found;  // record, and on which stamp it depends
  for (const log::DependencyRef& dependency : find(scan, 1)->dependencies) {
    CHECK(dependency.session() == 2);
    found.emplace_back(dependency.record(), dependency.stamp);
  }
  CHECK(found ==
        std::vector<std::pair<std::uint64_t, Stamp>>{{0, 1}, {1, 2}, {3, 4}, {4, 5}, {5, 6}});
}

// The superblocks may come from a backup that is many openings old.
TEST_CASE("a header of whatever later generation a pool gets to is damage, and told") {
  SyntheticPool pool;
  pool.append_simple(1, 5);
  const std::uint64_t later =
      GENERATE(std::uint64_t{1}, 2U, 1000U, log::kFarthest, log::kFarthest + 1);
  const std::uint64_t checkpoint = GENERATE(std::uint64_t{0}, 3U, log::kFarthest + 1);
  log::SegmentHeader header;
  header.generation = pool.superblock.fixed.generation + later;
  header.first_lsn = 1;
  header.checkpoint_number = pool.superblock.fixed.checkpoint_number + checkpoint;
  header.session = 2;
  pool.put_header(header, 4);
  const bool is_seen = later <= log::kFarthest;
  const auto scan = pool.scan();
  REQUIRE(scan.damage.size() == (is_seen ? 1 : 0));
  if (is_seen) CHECK(scan.damage[0].offset == pool.layout.segment_offset(4));
  // What the next generation has to be above.
  const std::uint64_t here = pool.superblock.fixed.generation;
  CHECK(scan.newest.generation == (is_seen ? here + later : here));
  const std::uint64_t number = pool.superblock.fixed.checkpoint_number;
  CHECK(scan.newest.checkpoint_number ==
        (is_seen && checkpoint <= log::kFarthest ? number + checkpoint : number));
  CHECK(lsns(pool, scan, 1) == range(1, 1));
}

// They are home by then, and their records may be gone.
TEST_CASE("predecessors up to the floor are left out, as are those of the same session") {
  SyntheticPool pool;
  RecordBuilder builder;
  builder.add_destroy(pool.layout.slabs_offset);
  for (const Stamp stamp : {4U, 5U, 6U}) builder.add_dependency(2, stamp);
  builder.add_dependency(1, 7);
  pool.append(1, builder, 10);
  pool.superblock.fixed.floor = 5;
  const auto scan = pool.scan();
  REQUIRE(find(scan, 1));
  REQUIRE(find(scan, 1)->dependencies.size() == 1);
  CHECK(find(scan, 1)->dependencies[0].session() == 2);
  CHECK(find(scan, 1)->dependencies[0].stamp == 6);
}

// There is no run in which the place could be that is damaged.
TEST_CASE("a log whose first run is lost is damage, and what is behind it is counted") {
  SyntheticPool pool;
  start_run_at(pool, 1, 3, 5);
  pool.append_simple(1, 10, 4);
  pool.append_simple(1, 11, 4);
  const auto scan = pool.scan();
  REQUIRE(scan.damage.size() == 1);
  CHECK(scan.damage[0].offset == pool.layout.log_offset);
  REQUIRE(find(scan, 1));
  CHECK(find(scan, 1)->end == PrefixEnd::damaged);
  CHECK(find(scan, 1)->records.empty());
  CHECK(find(scan, 1)->beyond_records == 2);
}

// Idle sessions have older ones in the logs of others.
TEST_CASE("of several watermarks of a session the furthest counts, in whatever order they are") {
  SyntheticPool pool;
  std::vector<SyntheticPool::Place> places;
  for (Stamp stamp = 1; stamp <= 9; ++stamp) places.push_back(pool.append_simple(1, stamp));
  const bool in_one_log = GENERATE(false, true);
  const std::vector<Lsn> order = GENERATE(std::vector<Lsn>{7, 2}, std::vector<Lsn>{2, 7});
  pool.append_watermark(4, 100, 1, order[0]);
  pool.append_watermark(in_one_log ? 4 : 5, 101, 1, order[1]);
  wipe(pool, places[6]);
  const auto scan = pool.scan();
  REQUIRE(scan.damage.size() == 1);
  CHECK(scan.damage[0].offset == places[6].offset);
  CHECK(find(scan, 1)->end == PrefixEnd::damaged);
}

TEST_CASE("a watermark of a session that the pool has not says nothing") {
  SyntheticPool pool;
  pool.append_simple(1, 5);
  const bool is_far = GENERATE(false, true);
  const auto beyond = static_cast<SessionId>(is_far ? 65535 : pool.layout.max_sessions);
  pool.append_watermark(4, 100, beyond, 7);
  const auto scan = pool.scan();
  CHECK(lsns(pool, scan, 1) == range(1, 1));
  CHECK(scan.damage.empty());
}

}  // namespace
}  // namespace sp3::test

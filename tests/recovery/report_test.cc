// What is told of a log: by recovery, by a check and by a listing.
#include <map>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "recovery/inspect_log.h"
#include "tests/recovery/support.h"

namespace sp3::test {
namespace {

constexpr std::uint32_t kSlab = 2;

// The home of object `i` in the slab that these logs carve.
std::uint64_t slot_of(const SyntheticPool& pool, std::uint64_t i = 0) {
  return pool.layout.slab_offset(kSlab) + pool::slab_shape(pool.layout.slab_size, 48).data + 48 * i;
}

void add_make(const SyntheticPool& pool, RecordBuilder& builder, std::uint64_t i = 0) {
  const std::vector<std::byte> object(48, std::byte{9});
  builder.add_make(slot_of(pool, i), {5, 44, 48}, object.data(), 48);
}

}  // namespace

TEST_CASE("of more than a thousand dropped records a thousand are named, and all counted") {
  SyntheticPool pool(std::uint64_t{2} << 20, std::uint64_t{512} << 10);
  RecordBuilder builder;
  add_make(pool, builder);
  SECTION("behind one whose predecessor is missing") { builder.add_dependency(5, 7); }
  SECTION("behind one that contradicts its slab") {
    builder.reset();
    builder.add_image(pool.layout.slab_offset(kSlab + 1) + 128, builder.data(), 48);
  }
  pool.append(0, builder, 10);
  builder.reset();
  builder.add_destroy(slot_of(pool));
  for (Stamp stamp = 11; stamp <= 1110; ++stamp) pool.append(0, builder, stamp);
  auto file = pool.open();
  RecoveryOptions options;
  options.accept_loss = true;
  const auto report = recovery::recover(*file, options).report;
  CHECK(report.records == 1101);
  CHECK(report.dropped == 1101);
  REQUIRE(report.dropped_records.size() == 1000);
  CHECK(report.dropped_records.back().lsn == 1000);
}

TEST_CASE("a report counts torn ends, dependencies and bytes") {
  SyntheticPool pool;
  RecordBuilder builder;
  add_make(pool, builder);
  std::uint64_t replayed = builder.length();
  std::uint64_t scanned = sizeof(log::SegmentHeader) + pool.append(0, builder, 10).size;
  builder.reset();
  builder.add_destroy(slot_of(pool));
  builder.add_dependency(0, 10);
  replayed += builder.length();
  scanned += sizeof(log::SegmentHeader) + pool.append(1, builder, 20).size;
  const auto last = pool.append(1, builder, 30);
  pool.bytes[last.offset] ^= std::byte{1};
  auto file = pool.open();
  const auto report = recovery::recover(*file, {}).report;
  CHECK(report.torn == 1);
  CHECK(report.dependencies == 1);
  CHECK(report.bytes_replayed == replayed);
  CHECK(report.bytes_scanned == scanned);
}

TEST_CASE("a report counts no watermark, nor a session that has nothing else") {
  SyntheticPool pool;
  RecordBuilder builder;
  add_make(pool, builder);
  pool.append(0, builder, 10);
  pool.append_watermark(0, 20, 1, 0);
  pool.append_watermark(2, 30, 0, 1);
  auto file = pool.open();
  const auto report = recovery::recover(*file, {}).report;
  CHECK(report.sessions == 1);
  CHECK(report.records == 1);
  CHECK(report.replayed == 1);
  CHECK(report.dropped == 0);
  CHECK(report.dropped_records.empty());
}

TEST_CASE("each dropped record tells why it was dropped") {
  SyntheticPool pool;
  RecordBuilder builder;
  add_make(pool, builder);
  pool.append(0, builder, 10);
  builder.reset();
  builder.add_destroy(slot_of(pool));
  builder.add_dependency(5, 7);
  pool.append(0, builder, 11);  // its predecessor is missing
  builder.reset();
  builder.add_destroy(slot_of(pool));
  pool.append(0, builder, 12);
  const auto torn = pool.append(0, builder, 13);
  pool.append(0, builder, 14);
  pool.bytes[torn.offset] ^= std::byte{1};
  builder.reset();
  const std::vector<std::byte> object(48);
  builder.add_image(pool.layout.slab_offset(kSlab + 1) + 128, object.data(), 48);
  pool.append(1, builder, 20);  // in a slab of nothing
  pool.append(1, builder, 21);
  const auto lost = pool.append(1, builder, 22);
  pool.append(1, builder, 23);
  pool.bytes[lost.offset] ^= std::byte{1};
  auto file = pool.open();
  RecoveryOptions options;
  options.accept_loss = true;
  const auto report = recovery::recover(*file, options).report;
  std::map<std::pair<unsigned, base::Lsn>, std::string> reasons;
  for (const DroppedRecord& dropped : report.dropped_records) {
    reasons[{dropped.session, dropped.lsn}] = dropped.reason;
  }
  CHECK(reasons == std::map<std::pair<unsigned, base::Lsn>, std::string>{
                       {{0, 2}, "its predecessor, session 5 stamp 7, is missing or dropped"},
                       {{0, 3}, "it follows record 2, which is dropped"},
                       {{0, 5}, "it follows record 4, which is torn"},
                       {{1, 1}, "it contradicts the slab it writes to"},
                       {{1, 2}, "it follows record 1, which contradicts its slab"},
                       {{1, 4}, "it follows record 1, which is damaged"}});
  CHECK(report.replayed == 1);
  CHECK(report.dropped == 6);
}

// Recovery may have dropped records whose stamps nobody shall get again.
TEST_CASE("stamps go on behind all that the superblock knows of") {
  SyntheticPool pool;
  pool.superblock.fixed.floor = 4000;
  pool.superblock.fixed.largest_stamp = 5000;
  auto file = pool.open();
  const auto result = recovery::recover(*file, {});
  CHECK(result.report.largest_stamp == 5000);
  CHECK(result.superblock.fixed.floor == 5000);
}

TEST_CASE("watermarks behind a record that contradicts its slab are no transactions") {
  SyntheticPool pool;
  RecordBuilder builder;
  add_make(pool, builder);
  pool.append(0, builder, 10);
  builder.reset();
  builder.add_destroy(slot_of(pool) + 8);
  pool.append(0, builder, 20);
  pool.append_watermark(0, 30, 1, 0);
  auto file = pool.open();
  CheckReport check;
  recovery::check_log(*file, check);
  CHECK(check.records == 2);
  const auto summary = recovery::list_log(*file, [](const recovery::LoggedRecord&) {});
  CHECK(summary.records == 2);
  CHECK(summary.watermarks == 1);
}

TEST_CASE("a listing shows all records in order, what they do, and what cannot be reached") {
  SyntheticPool pool;
  RecordBuilder builder;
  std::vector<SyntheticPool::Place> places;
  for (std::uint64_t i = 0; i < 6; ++i) {
    builder.reset();
    add_make(pool, builder, i);
    if (i == 1) builder.add_destroy(slot_of(pool) + pool.layout.slab_size);
    if (i == 2) {
      // Without this record, which contradicts its slab, nobody carves that of the one before it.
      const std::vector<std::byte> object(48, std::byte{9});
      builder.add_make(slot_of(pool) + pool.layout.slab_size, {5, 44, 48}, object.data(), 48);
      builder.add_image(slot_of(pool) + 8, object.data(), 48);
    }
    places.push_back(pool.append(0, builder, 10 + i, i));
  }
  pool.bytes[places[4].offset + 30] ^= std::byte{4};
  auto file = pool.open();
  std::vector<Lsn> lsns;
  std::uint64_t makes = 0;
  std::uint64_t destroys = 0;
  std::uint64_t unreachable = 0;
  const auto summary = recovery::list_log(*file, [&](const recovery::LoggedRecord& record) {
    lsns.push_back(record.lsn);
    makes += record.makes;
    destroys += record.destroys;
    unreachable += record.state == recovery::RecordState::unreachable ? 1 : 0;
  });
  CHECK(lsns == std::vector<Lsn>{1, 2, 3, 4, 6});
  CHECK(makes == 5);
  CHECK(destroys == 1);
  CHECK(unreachable == 1);
  CHECK_FALSE(summary.clean);
  CHECK(summary.damage.size() == 3);
}

TEST_CASE("a clean pool has no log to list") {
  SyntheticPool pool;
  pool.append_simple(1, 5);  // as an earlier generation left it
  pool.superblock.fixed.state = static_cast<std::uint32_t>(pool::State::clean);
  auto file = pool.open();
  bool any = false;
  CHECK(recovery::list_log(*file, [&](const recovery::LoggedRecord&) { any = true; }).clean);
  CHECK_FALSE(any);
}

// That is told as damage of the directory.
TEST_CASE("a check does not blame the log for a record of the directory that is damaged") {
  SyntheticPool pool;
  describe_slab(pool, kSlab, 0b110);
  RecordBuilder builder;
  builder.add_destroy(pool.layout.slab_offset(kSlab) +
                      pool::slab_shape(pool.layout.slab_size, 8).data + 8);
  pool.append(0, builder, 10);
  for (const int copy : {0, 1}) {
    pool.bytes[pool.layout.directory_offset[copy] + kSlab * sizeof(pool::SlabRecord)] ^=
        std::byte{1};
  }
  auto file = pool.open();
  CheckReport check;
  recovery::check_log(*file, check);
  CHECK(check.damage.empty());
  CHECK(check.records == 1);
}

TEST_CASE("without the slab of its roots a pool is not recovered whatever loss is accepted") {
  SyntheticPool pool;
  describe_slab(pool, 0, 0b110);
  const auto shape = pool::slab_shape(pool.layout.slab_size, 8);
  for (const int copy : {0, 1}) {
    pool.bytes[pool.layout.slab_offset(0) + shape.bitmap(copy)] ^= std::byte{1};
  }
  auto file = pool.open();
  const auto before = read_file(pool.path().path());
  RecoveryOptions options;
  options.accept_loss = true;
  CHECK(code_of([&] { return recovery::recover(*file, options); }) == "damaged_metadata");
  CHECK((read_file(pool.path().path()) == before));
}

}  // namespace sp3::test

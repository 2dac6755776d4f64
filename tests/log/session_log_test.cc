// Where a session's records go: runs of segments that are asked for, filled and let go.
#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "log/session_log.h"
#include "tests/log/synthetic_log.h"

namespace sp3::test {
namespace {

using log::SegmentPool;
using log::SessionLog;
using Reserved = log::SessionLog::Reserved;

// A log of 16 segments of a block each, and one session's part of it.
struct OneLog {
  static constexpr std::uint32_t kSegment = 4096;
  static constexpr std::uint32_t kRecord = 1024;  // three of them to a segment

  Reserved reserve(std::uint64_t bytes = kRecord) { return log.reserve(bytes, 1); }
  void append(Stamp stamp) {
    const std::vector<std::byte> record(kRecord, std::byte{0x5A});
    log.append(record.data(), kRecord, stamp, false);
  }
  // Records with the stamps 1, 2, ..., in as many runs.
  void fill(std::size_t runs) {
    for (Stamp stamp = 1;; ++stamp) {
      const Reserved reserved = reserve();
      REQUIRE(reserved != Reserved::no);
      if (reserved == Reserved::in_new_run && log.runs().size() > runs) break;
      append(stamp);
    }
  }

  SyntheticPool pool;
  std::unique_ptr<pool::PoolFile> file = pool.open();
  SegmentPool segments{file->layout().segments};
  SessionLog log{file->memory(), file->layout(), segments, 1, 1, 7};
};

}  // namespace

TEST_CASE("a session whose large request was refused does not stand in its own way") {
  OneLog one;
  for (std::uint32_t i = 0; i < one.segments.total(); ++i) REQUIRE(one.segments.take(1));
  one.segments.give_back(3, 1);
  REQUIRE(one.reserve(2 * OneLog::kSegment) == Reserved::no);
  CHECK_FALSE(one.log.yields());
  CHECK(one.segments.yields(1));  // others do
  SECTION("when it asks for less") { CHECK(one.reserve() == Reserved::in_new_run); }
  SECTION("when it has been given up") {
    one.log.forgo();
    CHECK_FALSE(one.segments.yields(1));
  }
}

TEST_CASE("a run is let go with the stamp of its last record, and not before") {
  OneLog one;
  one.fill(3);
  const auto runs = one.log.runs();
  REQUIRE(runs.size() == 4);  // nothing is in the last
  const Stamp last_of_first = runs[0].last_stamp;
  CHECK(last_of_first == runs[1].first_lsn - 1);
  one.log.recycle(last_of_first - 1, false);
  CHECK(one.log.runs().size() == 4);
  one.log.recycle(last_of_first, false);
  CHECK(one.log.runs().size() == 3);
  CHECK(one.segments.used() == 3);
  one.log.recycle(runs[2].last_stamp, false);
  CHECK(one.log.runs().size() == 1);
}

TEST_CASE("behind the last run that was let go a session begins a new one") {
  OneLog one;
  REQUIRE(one.reserve() == Reserved::in_new_run);
  one.append(10);
  REQUIRE(one.reserve() == Reserved::in_last_run);
  one.log.recycle(9, true);
  CHECK(one.log.runs().size() == 1);
  CHECK(one.log.has_room(OneLog::kRecord));
  one.log.recycle(10, true);
  CHECK(one.log.runs().empty());
  CHECK(one.segments.used() == 0);
  CHECK_FALSE(one.log.has_room(OneLog::kRecord));
  CHECK(one.reserve() == Reserved::in_new_run);
  CHECK(one.log.runs().front().first_lsn == 2);
}

TEST_CASE("each record is in the run that begins at it or before") {
  OneLog one;
  CHECK(one.log.begin_of_run(1) == 0);
  one.fill(2);
  const auto runs = one.log.runs();
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    CHECK(one.log.begin_of_run(runs[i].first_lsn) == runs[i].first_lsn);
    CHECK(one.log.begin_of_run(runs[i + 1].first_lsn - 1) == runs[i].first_lsn);
  }
  one.log.recycle(runs[0].last_stamp, false);
  CHECK(one.log.begin_of_run(runs[0].first_lsn) == 0);
}

TEST_CASE("a record may be as large as the log, with its header, and no larger") {
  OneLog one;
  const std::uint64_t log_bytes = one.file->layout().log_bytes;
  std::uint64_t most = 0;
  for (std::uint64_t bytes = log::kRecordAlignment; one.log.could_ever_hold(bytes);
       bytes += log::kRecordAlignment) {
    most = bytes;
  }
  CHECK(most < log_bytes);
  CHECK(most + sizeof(log::SegmentHeader) + log::kRecordAlignment > log_bytes);
  CHECK(one.reserve(most) == Reserved::in_new_run);
  CHECK(one.segments.used() == one.segments.total());
  CHECK(one.log.has_room(most));
  CHECK_FALSE(one.log.has_room(most + log::kRecordAlignment));
}

}  // namespace sp3::test

// Which generation comes into force where the log is newer than the superblocks.
#include <catch2/catch.hpp>

#include "tests/recovery/support.h"

namespace sp3::test {
namespace {

constexpr std::uint64_t kBefore = 7;      // generation of the superblocks
constexpr std::uint64_t kCheckpoint = 3;  // and their checkpoint number

// A pool whose superblocks are older than its log, by one generation and two checkpoints: a backup,
// or those of a disk that lost the writes of both. The log holds one whole record.
std::unique_ptr<pool::PoolFile> open_with_newer_log(SyntheticPool& pool) {
  const auto shape = pool::slab_shape(pool.layout.slab_size, 48);
  const std::vector<std::byte> object(48, std::byte{9});
  RecordBuilder builder;
  builder.add_make(pool.layout.slab_offset(2) + shape.data, {5, 44, 48}, object.data(), 48);
  pool.superblock.fixed.generation = kBefore + 1;
  pool.superblock.fixed.checkpoint_number = kCheckpoint + 2;
  pool.append(2, builder, 10);
  pool.superblock.fixed.generation = kBefore;
  pool.superblock.fixed.checkpoint_number = kCheckpoint;
  return pool.open();
}

}  // namespace

TEST_CASE("a log that was given up stays given up") {
  SyntheticPool pool;
  auto file = open_with_newer_log(pool);
  CHECK(code_of([&] { return recovery::recover(*file, {}); }) == "damaged_log");
  RecoveryOptions options;
  options.accept_loss = true;
  const auto result = recovery::recover(*file, options);
  CHECK_FALSE(result.report.damage.empty());
  CHECK(result.superblock.fixed.generation == kBefore + 2);
  CHECK(result.superblock.fixed.checkpoint_number == kCheckpoint + 3);
  file = nullptr;
  file = pool.reopen();
  const auto again = recovery::recover(*file, {});
  CHECK(again.report.records == 0);
  CHECK(again.report.damage.empty());
}

TEST_CASE("a header that names an impossible generation does not use up those that are left") {
  SyntheticPool pool;
  pool.append_simple(1, 5);
  log::SegmentHeader header;
  header.generation = ~std::uint64_t{0};
  header.checkpoint_number = ~std::uint64_t{0};
  header.first_lsn = 1;
  header.segments = 1;
  header.session = 1;
  pool.put_header(header, 0);
  auto file = pool.open();
  RecoveryOptions options;
  options.accept_loss = true;
  const auto result = recovery::recover(*file, options);
  CHECK(result.superblock.fixed.generation == kBefore + 1);
  CHECK(result.superblock.fixed.checkpoint_number == kCheckpoint + 1);
}

}  // namespace sp3::test

// Slab 0 belongs to the root directory, where whoever opens a pool says which class that has.
#include <cstring>
#include <vector>

#include <catch2/catch.hpp>

#include "recovery/finish.h"
#include "recovery/inspect_log.h"
#include "recovery/recover.h"
#include "tests/recovery/support.h"

namespace sp3::test {
namespace {

constexpr pool::ObjectClass kRoots{77, 72, 72};
constexpr pool::ObjectClass kOthers{5, 44, 48};

std::uint64_t slot_of(const SyntheticPool& pool, std::uint32_t slab,
                      const pool::ObjectClass& objects) {
  return pool.layout.slab_offset(slab) +
         pool::slab_shape(pool.layout.slab_size, objects.slot_size).data;
}

void make(SyntheticPool& pool, base::SessionId session, std::uint64_t slot,
          const pool::ObjectClass& objects, base::Stamp stamp) {
  const std::vector<std::byte> object(objects.slot_size, std::byte{9});
  RecordBuilder builder;
  builder.add_make(slot, objects, object.data(), objects.slot_size);
  pool.append(session, builder, stamp);
}

}  // namespace

TEST_CASE("a log that gives the root directory's slab to other objects is damaged") {
  SyntheticPool pool;
  make(pool, 0, slot_of(pool, 1, kOthers), kOthers, 10);
  make(pool, 1, slot_of(pool, 0, kOthers), kOthers, 20);
  auto file = pool.open();
  file->expect_roots(kRoots);
  const auto before = read_file(pool.path().path());
  CheckReport check;
  recovery::check_log(*file, check);
  CHECK_FALSE(check.sound());
  CHECK(code_of([&] { return recovery::recover(*file, {}); }) == "damaged_log");
  CHECK((read_file(pool.path().path()) == before));
  RecoveryOptions options;
  options.accept_loss = true;
  const auto report = recovery::recover(*file, options).report;
  CHECK(report.replayed == 1);
  CHECK(report.damage.size() == 1);
  CHECK(report.dropped_records.size() == 1);
}

TEST_CASE("a log makes the root directory in its slab") {
  SyntheticPool pool;
  make(pool, 0, slot_of(pool, 0, kRoots), kRoots, 10);
  auto file = pool.open();
  file->expect_roots(kRoots);
  CHECK(recovery::recover(*file, {}).report.replayed == 1);
}

TEST_CASE("a log that destroys the root directory's first node is damaged, and no other's is") {
  const bool is_first = GENERATE(true, false);
  SyntheticPool pool;
  const std::uint64_t first = slot_of(pool, 0, kRoots);
  const std::uint64_t second = first + kRoots.slot_size;
  make(pool, 0, first, kRoots, 10);
  make(pool, 0, second, kRoots, 20);
  RecordBuilder builder;
  builder.add_destroy(is_first ? first : second);
  pool.append(0, builder, 30);
  auto file = pool.open();
  file->expect_roots(kRoots);
  const std::string code = code_of([&] { return recovery::recover(*file, {}); });
  CHECK(code == (is_first ? "damaged_log" : "no error"));
}

TEST_CASE("a crashed pool whose first slab is another's is refused as it was") {
  SyntheticPool pool;
  describe_slab(pool, 0, 1);
  auto file = pool.open();
  file->expect_roots(kRoots);
  const auto before = read_file(pool.path().path());
  RecoveryOptions options;
  options.accept_loss = true;
  CHECK(code_of([&] { return recovery::recover(*file, options); }) == "damaged_metadata");
  CHECK((read_file(pool.path().path()) == before));
}

TEST_CASE("a closed pool of objects without a root directory is refused as it was") {
  SyntheticPool pool;
  const bool is_empty = GENERATE(true, false);
  if (!is_empty) describe_slab(pool, 1, 1);
  pool.superblock.fixed.state = static_cast<std::uint32_t>(pool::State::clean);
  pool.save();
  auto file = pool.open();
  file->expect_roots(kRoots);
  const auto before = read_file(pool.path().path());
  const std::string code = code_of([&] { return recovery::start_generation(*file); });
  CHECK(code == (is_empty ? "no error" : "damaged_metadata"));
  CHECK((read_file(pool.path().path()) == before) == !is_empty);
}

}  // namespace sp3::test

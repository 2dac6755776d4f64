#include <cstring>
#include <functional>
#include <vector>

#include <catch2/catch.hpp>

#include "pool/check.h"
#include "tests/pool/support.h"

namespace sp3::pool {
namespace {

using test::make_small;
using test::open_small;
using test::TempPath;

SlabRecord record_of(std::uint64_t type) {
  SlabRecord record;
  record.type = type;
  record.type_size = 16;
  record.slot_size = 16;
  return record;
}

// A pool that goes through a checkpoint step by step, as docs/DATA_LAYOUT.md orders them.
class Checkpoint {
 public:
  explicit Checkpoint(const TempPath& at)
      : pool_(make_small(at)),
        directory_(SlabDirectory::load(pool_->memory(), pool_->layout(), pool_->identity(), 1)),
        image_(pool_->superblock()),
        bitmap_(slab_shape(pool_->layout().slab_size, 16).bitmap_bytes / 8) {}

  void begin(State state) {
    ++image_.fixed.number;
    image_.fixed.state = static_cast<std::uint32_t>(state);
    bitmap_[0] = bitmap_[0] * 2 + 1;
  }
  void write_metadata(int copy) {
    for (const std::uint32_t slab : {1u, 4u}) {
      directory_.store(pool_->memory(), copy, slab, record_of(7), bitmap_, counts_);
    }
  }
  void write_superblock(int copy) {
    pool::write_superblock(pool_->memory(), pool_->layout(), copy, image_, counts_);
  }
  void run(State state) {
    begin(state);
    for (const int copy : {0, 1}) {
      write_metadata(copy);
      write_superblock(copy);
    }
  }
  // Tears what was written last.
  void tear(std::uint64_t offset) { store(offset, pool_->memory().view()[offset] ^ std::byte{1}); }
  void store(std::uint64_t offset, std::byte byte) { pool_->memory().store(offset, &byte, 1); }
  [[nodiscard]] const Layout& layout() const { return pool_->layout(); }
  void close() { pool_.reset(); }

 private:
  std::unique_ptr<PoolFile> pool_;
  SlabDirectory directory_;
  SuperblockImage image_;
  Bitmap bitmap_;
  emu::FlushCounts counts_;
};

TEST_CASE("check counts what a sound pool holds") {
  const TempPath temp("check");
  Checkpoint pool(temp);
  pool.run(State::open);
  pool.run(State::clean);
  pool.close();
  const CheckReport report = test::check_file(temp.path());
  CHECK(report.sound());
  CHECK(report.clean);
  CHECK(report.slabs == 2);
  CHECK(report.objects == 4);
}

TEST_CASE("a checkpoint cut off at any step leaves a sound pool") {
  // Steps: metadata A, superblock A, metadata B, superblock B; each whole or torn at the end.
  for (int steps = 0; steps <= 4; ++steps) {
    for (const bool torn : {false, true}) {
      CAPTURE(steps, torn);
      const TempPath temp("cut");
      Checkpoint pool(temp);
      pool.run(State::open);
      pool.begin(State::open);
      const Layout layout = pool.layout();
      for (int step = 0; step < steps; ++step) {
        const int copy = step / 2;
        if (step % 2 == 0) {
          pool.write_metadata(copy);
        } else {
          pool.write_superblock(copy);
        }
        if (!torn || step != steps - 1) continue;
        pool.tear(step % 2 == 0 ? layout.directory_offset[copy] + 4 * sizeof(SlabRecord) + 17
                                : layout.superblock_offset(copy) + offsetof(Superblock, floor));
      }
      pool.close();
      const CheckReport report = test::check_file(temp.path());
      CHECK(report.sound());
      CHECK_FALSE(report.clean);
      CHECK(report.slabs == 2);
      const bool is_new = steps > 2 || (steps == 2 && !torn);
      CHECK(report.objects == (is_new ? 4 : 2));
      // The same superblock and metadata are what opening finds.
      const auto opened = open_small(temp);
      CHECK(opened->info().objects == (is_new ? 4 : 2));
    }
  }
}

TEST_CASE("check reports every damaged place and goes on") {
  const TempPath temp("damage");
  Checkpoint pool(temp);
  pool.run(State::clean);
  const Layout layout = pool.layout();
  const std::vector<std::uint64_t> places{
      layout.directory_offset[0] + 9 * sizeof(SlabRecord),
      layout.directory_offset[1] + 1 * sizeof(SlabRecord),
      layout.slab_offset(4) + 64,
  };
  for (const std::uint64_t place : places) pool.tear(place);
  pool.tear(offsetof(Superblock, uuid));
  pool.close();
  const CheckReport report = test::check_file(temp.path());
  // A's superblock is gone, so that nothing vouches for A's metadata any more.
  REQUIRE(report.damage.size() == 3);
  CHECK(report.damage[0].offset == offsetof(Superblock, uuid));
  CHECK(report.damage[1].offset == places[1]);
  CHECK(report.damage[2].offset == places[2]);
  for (const Damage& damage : report.damage) CHECK_FALSE(damage.what.empty());
  CHECK(report.slabs == 1);
  CHECK(report.objects == 0);
}

TEST_CASE("check holds a clean pool to both copies") {
  const TempPath temp("clean");
  Checkpoint pool(temp);
  pool.run(State::clean);
  pool.begin(State::clean);
  pool.write_metadata(0);
  const Layout layout = pool.layout();
  pool.close();
  const CheckReport report = test::check_file(temp.path());
  REQUIRE(report.damage.size() == 2);
  CHECK_THAT(report.damage[0].what, Catch::Contains("differ"));
  CHECK(report.damage[0].offset == layout.directory_offset[0] + 1 * sizeof(SlabRecord));
  CHECK(report.damage[1].offset == layout.directory_offset[0] + 4 * sizeof(SlabRecord));
}

// Edits copy A of a pool file and seals it again.
void edit_copy_a(const TempPath& at, const std::function<void(Superblock&)>& edit) {
  std::vector<std::byte> bytes = test::read_file(at.path());
  Superblock superblock;
  std::memcpy(&superblock, bytes.data(), sizeof superblock);
  edit(superblock);
  std::memcpy(bytes.data(), &superblock, sizeof superblock);
  test::seal_superblock(bytes.data());
  test::write_file(at.path(), bytes);
}

// What a check says of a small pool whose copy A was changed so: one thing.
template <class Edit>
Damage told_of(const Edit& edit) {
  const TempPath temp("edited");
  make_small(temp);
  edit_copy_a(temp, edit);
  const CheckReport report = test::check_file(temp.path());
  REQUIRE(report.damage.size() == 1);
  return report.damage[0];
}

TEST_CASE("an intact copy that differs in what never changes is damage") {
  CHECK(told_of([](Superblock& s) { s.compat = 1; }).offset == offsetof(Superblock, compat));
  // The newer copy is believed.
  const Damage damage = told_of([](Superblock& s) {
    s.number += 1;
    s.compat = 1;
  });
  CHECK(damage.offset == superblock_bytes(8) + offsetof(Superblock, compat));
}

TEST_CASE("intact copies of one number that differ are damage") {
  CHECK_THAT(told_of([](Superblock& s) { s.largest_stamp += 1; }).what,
             Catch::Contains("same number"));
}

TEST_CASE("a copy that is sealed and cannot be true is damage") {
  CHECK(told_of([](Superblock& s) { s.generation = 0; }).offset ==
        offsetof(Superblock, generation));
}

TEST_CASE("what no torn write leaves in a copy is damage") {
  const TempPath temp("torn");
  Checkpoint pool(temp);
  pool.run(State::open);
  pool.tear(offsetof(Superblock, floor));
  std::uint64_t at = 0;
  SECTION("torn in what changes with each write") {}
  SECTION("a state that there is not") {
    at = offsetof(Superblock, state);
    pool.store(at, std::byte{7});
  }
  SECTION("something right behind the heads") {
    at = sizeof(Superblock) + 8 * sizeof(base::Lsn);
    pool.store(at, std::byte{1});
  }
  SECTION("something at the end") {
    at = pool.layout().superblock_bytes - 1;
    pool.store(at, std::byte{1});
  }
  SECTION("in copy B") {
    pool.tear(offsetof(Superblock, floor));  // A is whole again
    at = pool.layout().superblock_bytes + offsetof(Superblock, state);
    pool.store(at, std::byte{7});
  }
  pool.close();
  const CheckReport report = test::check_file(temp.path());
  REQUIRE(report.damage.size() == (at != 0 ? 1 : 0));
  if (at != 0) CHECK(report.damage[0].offset == at);
}

TEST_CASE("a damaged record of a clean pool is told once") {
  const TempPath temp("once");
  Checkpoint pool(temp);
  pool.run(State::clean);
  pool.tear(pool.layout().directory_offset[0] + 4 * sizeof(SlabRecord));
  pool.close();
  CHECK(test::check_file(temp.path()).damage.size() == 1);
}

TEST_CASE("an intact copy that has missed more than one write is damage") {
  const TempPath temp("behind");
  Checkpoint pool(temp);
  for (int i = 0; i < 3; ++i) pool.run(State::open);
  pool.close();
  edit_copy_a(temp, [](Superblock& s) { s.number -= 1; });
  CHECK(test::check_file(temp.path()).sound());
  edit_copy_a(temp, [](Superblock& s) { s.number -= 1; });
  const CheckReport report = test::check_file(temp.path());
  REQUIRE(report.damage.size() == 1);
  CHECK(report.damage[0].offset == offsetof(Superblock, number));
  CHECK_THAT(report.damage[0].what, Catch::Contains("missed writes"));
  CHECK_FALSE(open_small(temp)->is_clean());  // opening takes the newer
}

// It tells of what there was a checkpoint before.
TEST_CASE("a damaged record is not taken from a copy that is older") {
  const TempPath temp("older");
  Checkpoint pool(temp);
  pool.run(State::open);
  pool.tear(pool.layout().directory_offset[0] + 4 * sizeof(SlabRecord));
  pool.close();
  const bool is_older = GENERATE(false, true);
  edit_copy_a(temp, [&](Superblock& s) {
    s.number += 1;
    if (is_older) s.checkpoint_number += 1;
  });
  CHECK(test::code_of([&] { return open_small(temp)->info(); }) ==
        (is_older ? "damaged_metadata" : "no error"));
}

TEST_CASE("check writes nothing") {
  const TempPath temp("untouched");
  Checkpoint pool(temp);
  pool.run(State::open);
  pool.close();
  const auto before = test::read_file(temp.path());
  test::check_file(temp.path());
  CHECK(test::read_file(temp.path()) == before);
}

}  // namespace
}  // namespace sp3::pool

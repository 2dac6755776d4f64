#include <cstring>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "pool/slab_directory.h"
#include "tests/pool/support.h"

namespace sp3::pool {
namespace {

using test::code_of;
using test::error_of;
using test::TempPath;

SlabRecord record_of(std::uint64_t type, std::uint32_t type_size) {
  SlabRecord record;
  record.type = type;
  record.type_size = type_size;
  record.slot_size = static_cast<std::uint32_t>(slot_size_of(type_size));
  return record;
}

Bitmap bitmap_of(const Layout& layout, std::uint32_t slot_size, std::uint64_t seed) {
  const SlabShape shape = slab_shape(layout.slab_size, slot_size);
  Bitmap bitmap(shape.bitmap_bytes / 8);
  std::mt19937_64 random(seed);
  for (std::uint32_t slot = 0; slot < shape.slots; ++slot) {
    if (random() % 2 != 0) bitmap[slot / 64] |= std::uint64_t{1} << (slot % 64);
  }
  return bitmap;
}

class Fixture {
 public:
  explicit Fixture(std::uint32_t slab_size = 4096) {
    Options options = test::small_options();
    options.geometry.slab_size = slab_size;
    pool_ = PoolFile::create(temp_.path(), test::kSmall, options);
  }
  [[nodiscard]] SlabDirectory load(int copy) {
    return SlabDirectory::load(memory(), layout(), pool_->identity(), copy);
  }
  emu::Memory& memory() { return pool_->memory(); }
  [[nodiscard]] const Layout& layout() const { return pool_->layout(); }
  [[nodiscard]] const std::byte* view() { return memory().view(); }
  void flip(std::uint64_t offset, int bit = 0) {
    const std::byte changed = view()[offset] ^ std::byte{static_cast<unsigned char>(1 << bit)};
    memory().store(offset, &changed, 1);
  }
  // Stores a record as it is but for its checksum, as docs/DATA_LAYOUT.md describes it.
  void seal(std::uint32_t slab, int copy, SlabRecord record) {
    record.crc = 0;
    const auto uuid = pool_->identity().uuid;
    record.crc = base::crc32c(test::slab_seed(uuid, slab), &record, sizeof record);
    memory().store(layout().directory_offset[copy] + slab * sizeof record, &record, sizeof record);
  }
  emu::FlushCounts counts;

 private:
  TempPath temp_{"directory"};
  std::unique_ptr<PoolFile> pool_;
};

TEST_CASE("the directory of a new pool has free slabs only, in both copies") {
  Fixture fixture;
  for (const int copy : {0, 1}) {
    const SlabDirectory directory = fixture.load(copy);
    REQUIRE(directory.size() == fixture.layout().slabs);
    for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
      REQUIRE(directory.record(slab).type == 0);
    }
  }
}

TEST_CASE("what is stored in a directory copy is loaded from it and not from the other") {
  Fixture fixture;
  SlabDirectory directory = fixture.load(0);
  const Bitmap bitmap = bitmap_of(fixture.layout(), 24, 1);
  directory.store(fixture.memory(), 0, 5, record_of(77, 20), bitmap, fixture.counts);

  const SlabDirectory again = fixture.load(0);
  CHECK(again.record(5).type == 77);
  CHECK(again.record(5).type_size == 20);
  CHECK(again.record(5).slot_size == 24);
  CHECK(again.record(5).live > 0);
  CHECK(again.load_bitmap(fixture.memory(), 5, 0) == bitmap);
  CHECK(fixture.load(1).record(5).type == 0);
  // A bitmap that was not written yet does not pass for the one its record promises.
  CHECK(code_of([&] { return again.load_bitmap(fixture.memory(), 5, 1); }) == "damaged_metadata");

  directory.store(fixture.memory(), 0, 5, SlabRecord{}, {}, fixture.counts);
  CHECK(fixture.load(0).record(5).type == 0);
}

TEST_CASE("the bitmap of an empty slab is neither written nor read") {
  Fixture fixture(16384);
  SlabDirectory directory = fixture.load(0);
  // Small slots have large bitmaps; the objects of large slots begin where those were.
  const SlabShape small = slab_shape(fixture.layout().slab_size, 8);
  const SlabShape large = slab_shape(fixture.layout().slab_size, 1000);
  REQUIRE(large.data < small.data);
  directory.store(fixture.memory(), 0, 5, record_of(1, 8), bitmap_of(fixture.layout(), 8, 1),
                  fixture.counts);
  directory.store(fixture.memory(), 0, 5, record_of(1, 8), Bitmap(small.bitmap_bytes / 8),
                  fixture.counts);
  // An object of the next shape is written, and then comes the crash.
  const std::vector<std::byte> object(1000, std::byte{0xAB});
  fixture.memory().store(fixture.layout().slab_offset(5) + large.data, object.data(),
                         object.size());
  const SlabDirectory again = fixture.load(0);
  CHECK(again.record(5).live == 0);
  CHECK(again.load_bitmap(fixture.memory(), 5, 0) == Bitmap(small.bitmap_bytes / 8));
  // The checkpoint after that gives the slab its new shape.
  Bitmap bitmap(large.bitmap_bytes / 8);
  bitmap[0] = 1;
  directory.store(fixture.memory(), 0, 5, record_of(2, 1000), bitmap, fixture.counts);
  CHECK(fixture.load(0).load_bitmap(fixture.memory(), 5, 0) == bitmap);
}

TEST_CASE("any flipped bit of a record is found at its offset") {
  Fixture fixture;
  SlabDirectory directory = fixture.load(0);
  directory.store(fixture.memory(), 0, 2, record_of(9, 40), bitmap_of(fixture.layout(), 40, 2),
                  fixture.counts);
  for (const std::uint32_t slab : {1u, 2u}) {
    const std::uint64_t offset = fixture.layout().directory_offset[0] + slab * sizeof(SlabRecord);
    for (std::uint64_t i = 0; i < sizeof(SlabRecord) * 8; ++i) {
      fixture.flip(offset + i / 8, static_cast<int>(i % 8));
      const auto error = error_of([&] { return fixture.load(0); });
      REQUIRE(error);
      REQUIRE(error->code() == ErrorCode::damaged_metadata);
      REQUIRE(error->facts().offset == offset);
      fixture.flip(offset + i / 8, static_cast<int>(i % 8));
    }
  }
}

TEST_CASE("any flipped bit of a bitmap is found") {
  Fixture fixture;
  SlabDirectory directory = fixture.load(1);
  directory.store(fixture.memory(), 1, 0, record_of(9, 8), bitmap_of(fixture.layout(), 8, 2),
                  fixture.counts);
  const SlabShape shape = slab_shape(fixture.layout().slab_size, 8);
  const std::uint64_t offset = fixture.layout().slab_offset(0) + shape.bitmap(1);
  for (std::uint64_t i = 0; i < shape.bitmap_bytes * std::uint64_t{8}; ++i) {
    fixture.flip(offset + i / 8, static_cast<int>(i % 8));
    const auto error = error_of([&] { return directory.load_bitmap(fixture.memory(), 0, 1); });
    REQUIRE(error);
    REQUIRE(error->code() == ErrorCode::damaged_metadata);
    REQUIRE(error->facts().offset == offset);
    fixture.flip(offset + i / 8, static_cast<int>(i % 8));
  }
  CHECK(code_of([&] { return directory.load_bitmap(fixture.memory(), 0, 1); }) == "no error");
}

// What is stored is the record of a slab that had objects, more often than not.
TEST_CASE("a record without objects is stored as one, whatever it said before") {
  Fixture fixture;
  SlabDirectory directory = fixture.load(0);
  SlabRecord record = record_of(9, 40);
  record.live = 3;
  record.bitmap_crc = 77;
  const SlabShape shape = slab_shape(fixture.layout().slab_size, record.slot_size);
  directory.store(fixture.memory(), 0, 4, record, Bitmap(shape.bitmap_bytes / 8), fixture.counts);
  CHECK(code_of([&] { return fixture.load(0).record(4).live; }) == "no error");
  CHECK(fixture.load(0).record(4).live == 0);
}

// With accept_loss: what is given up is the same in both copies, and is told as damage from then on.
TEST_CASE("a slab whose bitmap is lost is carried over to the other copy as it is") {
  Fixture fixture;
  SlabDirectory directory = fixture.load(1);
  const Bitmap bitmap = bitmap_of(fixture.layout(), 40, 3);
  for (const int copy : {0, 1}) {
    directory.store(fixture.memory(), copy, 4, record_of(9, 40), bitmap, fixture.counts);
  }
  const SlabShape shape = slab_shape(fixture.layout().slab_size, 40);
  const std::uint64_t slab = fixture.layout().slab_offset(4);
  const bool both = GENERATE(false, true);
  if (both) fixture.flip(slab + shape.bitmap(0), 1);
  fixture.flip(slab + shape.bitmap(1), 2);
  fixture.flip(fixture.layout().directory_offset[0] + 4 * sizeof(SlabRecord));
  directory.carry(fixture.memory(), 0, 4, fixture.counts);
  CHECK(std::memcmp(&fixture.load(0).record(4), &directory.record(4), sizeof(SlabRecord)) == 0);
  const std::byte* const found = fixture.view() + slab;
  const bool same =
      std::memcmp(found + shape.bitmap(0), found + shape.bitmap(1), shape.bitmap_bytes) == 0;
  CHECK(same == both);  // a sound one stays
  CHECK(code_of([&] { return fixture.load(0).load_bitmap(fixture.memory(), 4, 0); }) ==
        (both ? "damaged_metadata" : "no error"));
}

TEST_CASE("a record does not pass for that of another slab or another pool") {
  Fixture fixture;
  Fixture other;
  const std::uint64_t base = fixture.layout().directory_offset[0];
  std::vector<std::byte> record(fixture.view() + base, fixture.view() + base + sizeof(SlabRecord));
  fixture.memory().store(base + sizeof(SlabRecord), record.data(), record.size());
  CHECK(code_of([&] { return fixture.load(0); }) == "damaged_metadata");
  other.memory().store(base, record.data(), record.size());
  CHECK(code_of([&] { return other.load(0); }) == "damaged_metadata");
}

TEST_CASE("a sealed record that makes no sense is damage") {
  Fixture fixture;
  SlabRecord sound = record_of(9, 40);
  const SlabShape shape = slab_shape(fixture.layout().slab_size, 40);
  const auto code = [&](auto edit) {
    SlabRecord record = sound;
    edit(record);
    fixture.seal(4, 0, record);
    return code_of([&] { return fixture.load(0); });
  };
  CHECK(code([](SlabRecord&) {}) == "no error");
  CHECK(code([&](SlabRecord& r) { r.live = shape.slots; }) == "no error");
  CHECK(code([](SlabRecord& r) { r.slot_size = 64; }) == "damaged_metadata");
  CHECK(code([](SlabRecord& r) { r.bitmap_crc = 1; }) == "damaged_metadata");
  CHECK(code([&](SlabRecord& r) { r.live = shape.slots + 1; }) == "damaged_metadata");
  CHECK(code([](SlabRecord& r) { r.slot_size = 0; }) == "damaged_metadata");
  CHECK(code([](SlabRecord& r) { r.slot_size = 32; }) == "damaged_metadata");
  CHECK(code([](SlabRecord& r) { r.slot_size = 44; }) == "damaged_metadata");
  CHECK(code([](SlabRecord& r) { r.slot_size = 128; }) == "damaged_metadata");
  CHECK(code([](SlabRecord& r) { r.type_size = 0; }) == "damaged_metadata");
  CHECK(code([](SlabRecord& r) { r.type_size = r.slot_size = 4096; }) == "damaged_metadata");
  CHECK(code([](SlabRecord& r) { r.type_size = r.slot_size = 0xFFFFFFF8; }) == "damaged_metadata");
  CHECK(code([](SlabRecord& r) { r.type_size = 0xFFFFFFFF; }) == "damaged_metadata");
  CHECK(code([](SlabRecord& r) { r.features = 1; }) == "damaged_metadata");
  CHECK(code([](SlabRecord& r) { r.reserved = 1; }) == "damaged_metadata");
  CHECK(code([](SlabRecord& r) { r.type = 0; }) == "damaged_metadata");
}

TEST_CASE("a sealed bitmap that contradicts its record is damage") {
  Fixture fixture;
  const SlabShape shape = slab_shape(fixture.layout().slab_size, 40);
  SlabDirectory directory = fixture.load(0);
  const auto code = [&](const Bitmap& bitmap, std::uint32_t live) {
    SlabRecord record = record_of(9, 40);
    directory.store(fixture.memory(), 0, 4, record, Bitmap(shape.bitmap_bytes / 8), fixture.counts);
    fixture.memory().store(fixture.layout().slab_offset(4), bitmap.data(), shape.bitmap_bytes);
    const std::uint32_t slab = 4;
    const auto uuid = [&] {
      Superblock superblock;
      std::memcpy(&superblock, fixture.view(), sizeof superblock);
      return superblock.uuid;
    }();
    const std::uint32_t seed = test::slab_seed(uuid, slab);
    record.live = live;
    record.bitmap_crc = base::crc32c(seed, bitmap.data(), shape.bitmap_bytes);
    fixture.seal(4, 0, record);
    const SlabDirectory loaded = fixture.load(0);
    return code_of([&] { return loaded.load_bitmap(fixture.memory(), 4, 0); });
  };
  Bitmap bitmap(shape.bitmap_bytes / 8);
  bitmap[0] = 7;
  CHECK(code(bitmap, 3) == "no error");
  CHECK(code(bitmap, 2) == "damaged_metadata");
  CHECK(code(bitmap, 4) == "damaged_metadata");
  bitmap[shape.slots / 64] |= std::uint64_t{1} << (shape.slots % 64);
  CHECK(code(bitmap, 4) == "damaged_metadata");
  for (std::size_t word = shape.slots / 64 + 1; word < bitmap.size(); ++word) {
    Bitmap other(bitmap.size());
    other[word] = 1;
    CAPTURE(word);
    CHECK(code(other, 1) == "damaged_metadata");
  }
}

}  // namespace
}  // namespace sp3::pool

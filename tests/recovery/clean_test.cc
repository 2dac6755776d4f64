// Opening a clean pool, one copy of whose metadata is damaged.
#include <catch2/catch.hpp>

#include "pool/check.h"
#include "recovery/finish.h"
#include "tests/recovery/support.h"

namespace sp3::test {
namespace {

// A pool with objects in slabs 1 and 4, closed.
struct Closed {
  Closed() {
    auto file = pool.open();
    auto directory = pool::SlabDirectory::load(file->memory(), pool.layout, file->identity(), 0);
    emu::FlushCounts counts;
    for (const std::uint32_t slab : {1U, 4U}) {
      for (const int copy : {0, 1}) {
        pool::SlabRecord record;
        record.type = 99 + slab;
        record.type_size = 44;
        record.slot_size = 48;
        pool::Bitmap bitmap(pool::slab_shape(pool.layout.slab_size, 48).bitmap_bytes / 8);
        bitmap[0] = 0b1011;
        directory.store(file->memory(), copy, slab, record, bitmap, counts);
      }
    }
    file.reset();
    pool.bytes = read_file(pool.path().path());
    pool.superblock.fixed.state = static_cast<std::uint32_t>(pool::State::clean);
    pool.save();
  }

  // One byte of the metadata of slab 4.
  [[nodiscard]] std::uint64_t in_record(int copy) const {
    return pool.layout.directory_offset[copy] + 4 * sizeof(pool::SlabRecord) + 9;
  }
  [[nodiscard]] std::uint64_t in_bitmap(int copy) const {
    return pool.layout.slab_offset(4) + pool::slab_shape(pool.layout.slab_size, 48).bitmap(copy) +
           1;
  }
  void damage(std::uint64_t offset) {
    pool.bytes[offset] ^= std::byte{4};
    pool.save();
  }
  // The last damage: those before it seal the superblocks anew.
  void damage_superblock(int copy) const {
    auto bytes = read_file(pool.path().path());
    bytes[pool.layout.superblock_offset(copy) + 100] ^= std::byte{1};
    write_file(pool.path().path(), bytes);
  }
  // Everything but superblocks and log.
  [[nodiscard]] std::vector<std::byte> metadata() const {
    auto bytes = read_file(pool.path().path());
    bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(pool.layout.log_offset),
                bytes.begin() +
                    static_cast<std::ptrdiff_t>(pool.layout.log_offset + pool.layout.log_bytes));
    bytes.erase(bytes.begin(),
                bytes.begin() + static_cast<std::ptrdiff_t>(2 * pool.layout.superblock_bytes));
    return bytes;
  }

  SyntheticPool pool;
};

}  // namespace

TEST_CASE("a damaged directory copy of a clean pool is made whole from the other") {
  for (const int copy : {0, 1}) {
    INFO("copy " << copy);
    Closed closed;
    const auto sound = closed.metadata();
    closed.damage(closed.in_record(copy));
    auto file = closed.pool.reopen();
    CHECK_FALSE(pool::check(*file).sound());
    CHECK(file->info().objects == 6);
    (void)recovery::start_generation(*file);
    file = nullptr;
    CHECK((closed.metadata() == sound));
    file = closed.pool.reopen();
    CHECK(file->copies_equal());
    CHECK(pool::check(*file).sound());
  }
}

TEST_CASE(
    "recovery takes a bitmap, or a record, from the copy that has it, and leaves both whole") {
  enum class Lost { bitmap, record, bitmap_and_other_superblock };
  for (const Lost lost : {Lost::bitmap, Lost::record, Lost::bitmap_and_other_superblock}) {
    for (const auto& [writes, copy] : {std::pair{false, 0}, {false, 1}, {true, 0}, {true, 1}}) {
      INFO("copy " << copy << (writes ? ", the log writes to the slab" : "") << ", loss "
                   << static_cast<int>(lost));
      Closed closed;
      SyntheticPool& pool = closed.pool;
      pool.superblock.fixed.state = static_cast<std::uint32_t>(pool::State::open);
      const auto shape = pool::slab_shape(pool.layout.slab_size, 48);
      const std::uint32_t slab = writes ? 4 : 1;
      const std::vector<std::byte> object(48, std::byte{9});
      RecordBuilder builder;
      builder.add_make(pool.layout.slab_offset(slab) + shape.data + 48 * 5, {99 + slab, 44, 48},
                       object.data(), 48);
      pool.append(0, builder, 10);
      closed.damage(lost == Lost::record ? closed.in_record(copy) : closed.in_bitmap(copy));
      if (lost == Lost::bitmap_and_other_superblock) {
        closed.damage_superblock(1 - copy);
      }
      auto file = pool.reopen();
      CHECK(recovery::recover(*file, {}).report.replayed == 1);
      for (const int each : {0, 1}) {
        const auto directory =
            pool::SlabDirectory::load(file->memory(), pool.layout, file->identity(), each);
        CHECK(directory.load_bitmap(file->memory(), 4, each)[0] == (writes ? 0b101011 : 0b1011));
      }
    }
  }
}

TEST_CASE("a bitmap of a copy that may be older stands in for none") {
  Closed closed;
  SyntheticPool& pool = closed.pool;
  pool.superblock.fixed.state = static_cast<std::uint32_t>(pool::State::open);
  closed.damage(closed.in_bitmap(1));
  SECTION("the superblock of the other is older") {
    pool.superblock.fixed.number -= 1;
    pool.superblock.fixed.checkpoint_number -= 1;
    const auto newer = read_file(pool.path().path());
    pool.seal();
    const std::uint64_t b = pool.layout.superblock_offset(1);
    std::memcpy(pool.bytes.data() + b, newer.data() + b, pool.layout.superblock_bytes);
    write_file(pool.path().path(), pool.bytes);
  }
  SECTION("the other seals another bitmap") {
    auto file = pool.reopen();
    auto directory = pool::SlabDirectory::load(file->memory(), pool.layout, file->identity(), 0);
    pool::Bitmap bitmap = directory.load_bitmap(file->memory(), 4, 0);
    bitmap[0] = 0b1101;
    emu::FlushCounts counts;
    directory.store(file->memory(), 0, 4, directory.record(4), bitmap, counts);
  }
  const auto before = read_file(pool.path().path());
  auto file = pool.reopen();
  CHECK(file->current_copy() == 1);
  CHECK(code_of([&] { return recovery::recover(*file, {}); }) == "damaged_metadata");
  CHECK((read_file(pool.path().path()) == before));
}

TEST_CASE("mending a clean pool's metadata may be cut off anywhere and begun again") {
  using emu::Step;
  for (const int copy : {0, 1}) {
    for (const Step step : {Step::recovery_metadata_a, Step::recovery_superblock_a,
                            Step::recovery_metadata_b, Step::recovery_superblock_b}) {
      INFO("copy " << copy << ", " << emu::step_name(step));
      Closed closed;
      const auto sound = closed.metadata();
      closed.damage(closed.in_record(copy));
      const int status = in_child([&] {
        auto file = closed.pool.reopen();
        emu::arm_kill(step, 1);
        (void)recovery::start_generation(*file);
        return 0;
      });
      CHECK((status == 0 || status == 128 + SIGKILL));
      auto file = closed.pool.reopen();
      if (recovery::recover(*file, {}).report.was_clean) (void)recovery::start_generation(*file);
      file = nullptr;
      CHECK((closed.metadata() == sound));
    }
  }
}

TEST_CASE("a clean pool with damage in both copies, or two minds, is refused and not touched") {
  Closed closed;
  SECTION("in the same place") {
    closed.damage(closed.in_record(0));
    closed.damage(closed.in_record(1));
  }
  SECTION("in different places") {
    closed.damage(closed.in_record(0));
    closed.damage(closed.in_bitmap(0));
    closed.damage(closed.in_bitmap(1));
  }
  SECTION("both copies seal another state") {
    auto file = closed.pool.reopen();
    auto directory =
        pool::SlabDirectory::load(file->memory(), closed.pool.layout, file->identity(), 0);
    emu::FlushCounts counts;
    directory.store(file->memory(), 1, 4, {}, {}, counts);
    file.reset();
  }
  SECTION("in both bitmaps, and a superblock") {
    closed.damage(closed.in_bitmap(0));
    closed.damage(closed.in_bitmap(1));
    closed.damage_superblock(0);
  }
  const auto before = read_file(closed.pool.path().path());
  auto file = closed.pool.reopen();
  CHECK(code_of([&] { return recovery::start_generation(*file); }) == "damaged_metadata");
  file = nullptr;
  CHECK((read_file(closed.pool.path().path()) == before));
}

}  // namespace sp3::test

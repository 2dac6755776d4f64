// Opening a clean pool, one copy of whose metadata is damaged.
#include <catch2/catch.hpp>

#include "pool/check.h"
#include "recovery/finish.h"
#include "tests/recovery/support.h"
#include "tests/support/pools.h"

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
  // By a checkpoint. The last change: others seal the superblocks anew.
  void make_superblock_a_older() {
    const auto newer = read_file(pool.path().path());
    pool.superblock.fixed.number -= 1;
    pool.superblock.fixed.checkpoint_number -= 1;
    pool.seal();
    const std::uint64_t b = pool.layout.superblock_offset(1);
    std::memcpy(pool.bytes.data() + b, newer.data() + b, pool.layout.superblock_bytes);
    write_file(pool.path().path(), pool.bytes);
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
  SECTION("the superblock of the other is older") { closed.make_superblock_a_older(); }
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

TEST_CASE("what refuses a clean pool's bitmaps leaves them as they are when loss is accepted") {
  Closed closed;
  closed.damage(closed.in_bitmap(0));
  closed.damage(closed.in_bitmap(1));
  SECTION("and the directory is mended") {
    closed.damage(closed.in_record(0) - sizeof(pool::SlabRecord));
  }
  SECTION("and a superblock is written anew") { closed.damage_superblock(0); }
  const auto before = closed.metadata();
  auto file = closed.pool.reopen();
  CHECK(code_of([&] { return recovery::start_generation(*file); }) == "damaged_metadata");
  RecoveryOptions accepting;
  accepting.accept_loss = true;
  std::size_t told = 0;
  accepting.assessed = [&](const RecoveryReport& report) { told = report.damage.size(); };
  (void)recovery::start_generation(*file, accepting);
  CHECK(told == 1);
  file = nullptr;
  file = closed.pool.reopen();
  CHECK(file->copies_equal());
  const auto directory =
      pool::SlabDirectory::load(file->memory(), closed.pool.layout, file->identity(), 0);
  CHECK(code_of([&] { return directory.load_bitmap(file->memory(), 4, 0); }) == "damaged_metadata");
  file = nullptr;
  auto after = closed.metadata();
  for (const int copy : {0, 1}) {
    const std::uint64_t cut =
        closed.pool.layout.log_bytes + 2 * closed.pool.layout.superblock_bytes;
    CHECK(after[closed.in_bitmap(copy) - cut] == before[closed.in_bitmap(copy) - cut]);
  }
}

// Opening had not read it, and what was acknowledged since had to do with it as little.
TEST_CASE("a damaged bitmap that the log has nothing to do with is no end when loss is accepted") {
  Closed closed;
  SyntheticPool& pool = closed.pool;
  pool.superblock.fixed.state = static_cast<std::uint32_t>(pool::State::open);
  const auto shape = pool::slab_shape(pool.layout.slab_size, 48);
  const std::vector<std::byte> object(48, std::byte{9});
  const bool writes = GENERATE(false, true);
  RecordBuilder builder;
  builder.add_make(pool.layout.slab_offset(1) + shape.data + 48 * 5, {100, 44, 48}, object.data(),
                   48);
  if (writes) builder.add_destroy(pool.layout.slab_offset(4) + shape.data + 48);
  pool.append(0, builder, 10);
  closed.damage(closed.in_bitmap(0));
  closed.damage(closed.in_bitmap(1));
  RecoveryOptions options;
  for (int time = 0; time < 2; ++time) {
    auto file = pool.reopen();
    options.accept_loss = false;
    const auto before = read_file(pool.path().path());
    CHECK(code_of([&] { return recovery::recover(*file, options); }) == "damaged_metadata");
    options.accept_loss = true;
    if (writes) {
      CHECK(code_of([&] { return recovery::recover(*file, options); }) == "damaged_metadata");
      CHECK((read_file(pool.path().path()) == before));
      return;
    }
    const auto report = recovery::recover(*file, options).report;
    CHECK(report.replayed == (time == 0 ? 1 : 0));
    REQUIRE(report.damage.size() == 1);
    CHECK(report.damage[0].offset == closed.in_bitmap(1) - 1);
    for (const int copy : {0, 1}) {
      const auto directory =
          pool::SlabDirectory::load(file->memory(), pool.layout, file->identity(), copy);
      CHECK(directory.load_bitmap(file->memory(), 1, copy)[0] == 0b101011);
      CHECK(code_of([&] { return directory.load_bitmap(file->memory(), 4, copy); }) ==
            "damaged_metadata");
      CHECK(directory.record(4).live == 3);
    }
  }
}

// With a record damaged as well, or with the other copy's good bitmap: what is there of either
// stays.
TEST_CASE("accepting the loss of a bitmap loses nothing else") {
  Closed closed;
  SyntheticPool& pool = closed.pool;
  closed.damage(closed.in_bitmap(1));
  const bool older = GENERATE(false, true);
  if (older) {
    // The current copy's is damaged, and the other superblock is older: its bitmap is believed by
    // nobody, but may be the truth.
    closed.make_superblock_a_older();
  } else {
    closed.damage(closed.in_bitmap(0));
    closed.damage(closed.in_record(0));
  }
  RecoveryOptions options;
  options.accept_loss = true;
  {
    auto file = pool.reopen();
    CHECK(code_of([&] { return recovery::start_generation(*file); }) == "damaged_metadata");
    (void)recovery::start_generation(*file, options);
  }
  auto file = pool.reopen();
  for (const int copy : {0, 1}) {
    const auto directory =
        pool::SlabDirectory::load(file->memory(), pool.layout, file->identity(), copy);
    CHECK(directory.record(4).live == 3);
  }
  const auto directory =
      pool::SlabDirectory::load(file->memory(), pool.layout, file->identity(), 0);
  if (older) CHECK(directory.load_bitmap(file->memory(), 4, 0)[0] == 0b1011);
}

TEST_CASE("a closed pool without the slab of its roots is refused and not touched") {
  TempPath path;
  Pool::create(path.path(), kTinyPool, quiet_options()).close();
  pool::Layout layout;
  std::uint32_t slot_size = 0;
  {
    const auto file =
        pool::PoolFile::open(path.path(), quiet_options(), pool::PoolFile::Access::read_only);
    layout = file->layout();
    slot_size = file->directory().record(0).slot_size;
  }
  const auto shape = pool::slab_shape(layout.slab_size, slot_size);
  auto bytes = read_bytes(path.path());
  for (const int copy : {0, 1}) bytes[layout.slab_offset(0) + shape.bitmap(copy)] ^= 4;
  write_bytes(path.path(), bytes);
  for (const bool accept_loss : {false, true}) {
    Options options = quiet_options();
    options.recovery.accept_loss = accept_loss;
    CHECK(code_of([&] { return Pool::open(path.path(), options); }) == "damaged_metadata");
    CHECK((read_bytes(path.path()) == bytes));
  }
}

TEST_CASE(
    "a pool whose list of roots has lost its beginning is refused, however often it is opened") {
  TempPath path;
  const Options options = quiet_options();
  {
    Pool pool = Pool::create(path.path(), kTinyPool, options);
    Session session = pool.session();
    // More than fit into the slab where it begins.
    session.run([](Transaction& tx) {
      const auto cell = tx.make<std::uint64_t>(1U);
      for (int i = 0; i < 100; ++i) tx.set_root("root " + std::to_string(i), cell);
    });
    session.close();
    pool.close();
  }
  std::uint64_t begin = 0;
  {
    const auto file =
        pool::PoolFile::open(path.path(), options, pool::PoolFile::Access::read_write);
    auto directory = file->directory();
    const pool::Layout& layout = file->layout();
    begin = layout.slab_offset(0) +
            pool::slab_shape(layout.slab_size, directory.record(0).slot_size).data;
    emu::FlushCounts counts;
    for (const int copy : {0, 1}) directory.store(file->memory(), copy, 0, {}, {}, counts);
  }
  const auto bytes = read_bytes(path.path());
  for (int time = 0; time < 2; ++time) {
    const auto error = error_of([&] { return Pool::open(path.path(), options); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::damaged_metadata);
    CHECK((read_bytes(path.path()) == bytes));
    CHECK_THAT(error->what(), Catch::Contains("the root directory is missing"));
    CHECK(error->facts().path == path.string());
    CHECK(error->facts().offset == begin);
  }
}

}  // namespace sp3::test

// Random damage to the metadata of a small pool: whatever happens, the answer is a typed error or
// exactly the content that was sealed.
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "pool/check.h"
#include "tests/pool/support.h"

namespace sp3::pool {
namespace {

using test::open_small;
using test::TempPath;

struct Content {
  std::vector<SlabRecord> records;
  std::vector<Bitmap> bitmaps;
  SuperblockImage superblock;
};

bool operator==(const Content& a, const Content& b) {
  if (a.records.size() != b.records.size() || a.bitmaps != b.bitmaps) return false;
  return std::memcmp(a.records.data(), b.records.data(), a.records.size() * sizeof(SlabRecord)) ==
             0 &&
         std::memcmp(&a.superblock.fixed, &b.superblock.fixed, sizeof(Superblock)) == 0 &&
         a.superblock.heads == b.superblock.heads;
}

Content load(const PoolFile& pool) {
  Content content;
  content.superblock = pool.superblock();
  // The copies may be current or not; their contents are equal but for the checksum.
  content.superblock.fixed.crc = 0;
  const auto directory =
      SlabDirectory::load(pool.memory(), pool.layout(), pool.identity(), pool.current_copy());
  for (std::uint32_t slab = 0; slab < directory.size(); ++slab) {
    content.records.push_back(directory.record(slab));
    if (directory.record(slab).type == 0) continue;
    content.bitmaps.push_back(directory.load_bitmap(pool.memory(), slab, pool.current_copy()));
  }
  return content;
}

// A pool with every third slab carved, equal in both copies.
Content make_carved(const TempPath& at) {
  const auto pool = test::make_small(at);
  auto directory = SlabDirectory::load(pool->memory(), pool->layout(), pool->identity(), 0);
  emu::FlushCounts counts;
  std::mt19937_64 random(5);
  for (const int copy : {0, 1}) {
    random.seed(5);
    for (std::uint32_t slab = 0; slab < directory.size(); slab += 3) {
      SlabRecord record;
      record.type = random() | 1;
      record.type_size = static_cast<std::uint32_t>(1 + random() % 300);
      record.slot_size = static_cast<std::uint32_t>(slot_size_of(record.type_size));
      const SlabShape shape = slab_shape(pool->layout().slab_size, record.slot_size);
      Bitmap bitmap(shape.bitmap_bytes / 8);
      for (std::uint32_t slot = 0; slot < shape.slots; ++slot) {
        bitmap[slot / 64] |= (random() & 1) << (slot % 64);
      }
      directory.store(pool->memory(), copy, slab, record, bitmap, counts);
    }
  }
  REQUIRE(pool->memory().fence(counts).ok());
  return load(*pool);
}

using Range = std::pair<std::uint64_t, std::uint64_t>;

// Superblocks, directories and the bitmaps of carved slabs.
std::vector<Range> metadata_of(const TempPath& at) {
  const auto pool = open_small(at, PoolFile::Access::read_only);
  const Layout& layout = pool->layout();
  std::vector<Range> ranges{{0, layout.log_offset}, {0, layout.superblock_bytes}};
  const auto directory = SlabDirectory::load(pool->memory(), layout, pool->identity(), 0);
  for (std::uint32_t slab = 0; slab < directory.size(); slab += 3) {
    const SlabShape shape = slab_shape(layout.slab_size, directory.record(slab).slot_size);
    ranges.emplace_back(layout.slab_offset(slab), 2 * shape.bitmap_bytes);
    ranges.emplace_back(layout.directory_offset[slab % 2] + slab * sizeof(SlabRecord),
                        sizeof(SlabRecord));
  }
  ranges.emplace_back(layout.superblock_bytes, sizeof(Superblock));
  ranges.emplace_back(0, sizeof(Superblock));
  return ranges;
}

bool is_expected(ErrorCode code) {
  return code == ErrorCode::not_a_pool || code == ErrorCode::wrong_version ||
         code == ErrorCode::wrong_size || code == ErrorCode::damaged_superblock ||
         code == ErrorCode::damaged_metadata;
}

class Mutator {
 public:
  Mutator(const TempPath& at, std::uint64_t seed)
      : at_(at), original_(test::read_file(at.path())), ranges_(metadata_of(at)), random_(seed) {}

  // Damages one to four places, each by one of several kinds of accident.
  void damage() {
    for (std::uint64_t places = 1 + random_() % 4; places > 0; --places) {
      const auto& [offset, length] = ranges_[random_() % ranges_.size()];
      const std::uint64_t at = offset + random_() % length;
      std::uint64_t bytes = 1;
      const std::uint64_t kind = random_() % 6;
      if (kind >= 3) bytes = std::min<std::uint64_t>(offset + length - at, 1 + random_() % 64);
      std::vector<std::byte> patch(original_.begin() + static_cast<std::ptrdiff_t>(at),
                                   original_.begin() + static_cast<std::ptrdiff_t>(at + bytes));
      for (std::byte& byte : patch) {
        if (kind <= 1) byte ^= std::byte{1} << (random_() % 8);
        if (kind == 2 || kind == 3) byte = static_cast<std::byte>(random_());
        if (kind == 4) byte = std::byte{0};
        if (kind == 5) byte = std::byte{0xFF};
      }
      test::write_file(at_.path(), patch, at);
      dirty_.emplace_back(at, bytes);
    }
  }
  void repair() {
    for (const auto& [at, bytes] : dirty_) {
      test::write_file(at_.path(), std::span(original_).subspan(at, bytes), at);
    }
    dirty_.clear();
  }

 private:
  const TempPath& at_;
  std::vector<std::byte> original_;
  std::vector<Range> ranges_;
  std::vector<Range> dirty_;
  std::mt19937_64 random_;
};

TEST_CASE("damaged metadata gives a typed error or the sealed content, never anything else") {
  const TempPath temp("damage");
  const Content content = make_carved(temp);
  Mutator mutator(temp, 31);
  int refused = 0;
  int reported = 0;
  constexpr int kRounds = 8000;
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    mutator.damage();
    bool opened = false;
    try {
      const auto pool = open_small(temp, PoolFile::Access::read_only);
      opened = true;
      const bool equal = load(*pool) == content;
      REQUIRE(equal);
    } catch (const Error& error) {
      REQUIRE(is_expected(error.code()));
      REQUIRE(error.facts().path == temp.string());
      ++refused;
    }
    if (opened) {
      const CheckReport report = test::check_file(temp.path());
      REQUIRE(report.clean);
      if (!report.sound()) ++reported;
    }
    mutator.repair();
  }
  CHECK(load(*open_small(temp)) == content);
  CHECK(refused > kRounds / 10);
  CHECK(refused < kRounds);
  CHECK(reported > kRounds / 10);
}

TEST_CASE("check finds every flipped bit of the metadata in a clean pool that opens") {
  const TempPath temp("bits");
  make_carved(temp);
  const auto original = test::read_file(temp.path());
  std::vector<Range> ranges = metadata_of(temp);
  std::mt19937_64 random(17);
  for (int round = 0; round < 3000; ++round) {
    const auto& [offset, length] = ranges[2 + random() % (ranges.size() - 4)];
    const std::uint64_t at = offset + random() % length;
    const std::byte flipped = original[at] ^ (std::byte{1} << (random() % 8));
    test::write_file(temp.path(), {&flipped, 1}, at);
    CAPTURE(at);
    REQUIRE_FALSE(test::check_file(temp.path()).sound());
    test::write_file(temp.path(), {&original[at], 1}, at);
  }
  REQUIRE(test::check_file(temp.path()).sound());
}

}  // namespace
}  // namespace sp3::pool

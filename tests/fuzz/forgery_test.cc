// Pools that were made up: all checksums hold, and what they seal is not what sp3 writes. They are
// refused by a typed error, or open, and then work, close and open again.
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "pool/pool_file.h"
#include "tests/fuzz/forged_pool.h"
#include "tests/fuzz/forgeries.h"

namespace sp3::test {
namespace {

void forge_all(std::uint64_t forgeries, std::uint64_t seed) {
  const ForgedPools pools;
  std::uint64_t opened = 0;
  std::uint64_t by_checksum = 0;
  forge_at_random(forgeries, seed, {24, 120}, [&](const auto& bytes) {
    ForgedPools::Result result = pools.try_out(bytes);
    opened += result.opened ? 1 : 0;
    by_checksum += result.refusal.find("checksum") != std::string::npos ? 1 : 0;
    return result;
  });
  INFO(forgeries << " forgeries: " << opened << " opened, " << by_checksum
                 << " refused by a checksum");
  CHECK(opened > forgeries / 10);
  CHECK(opened < forgeries * 9 / 10);
  // A copy's forged length may put the other out of place, and little else.
  CHECK(by_checksum < forgeries / 10);
}

}  // namespace

TEST_CASE("a forger that changes nothing leaves a pool as it is") {
  for (const auto state :
       {FuzzedPool::State::clean, FuzzedPool::State::crashed, FuzzedPool::State::mixed}) {
    const FuzzedPool pool(state, 5);
    Choices none({});
    CHECK(Forger(pool.image()).forge(none) == pool.image());
  }
}

TEST_CASE("a pool whose first slab is not the root directory's is damaged, and does not open") {
  const bool is_foreign = GENERATE(true, false);
  const char* const told =
      is_foreign ? "slab 0 is not the root directory's" : "the root directory is missing";
  TempPath path;
  Pool::create(path.path(), kTinyPool, FuzzedPool::options()).close();
  REQUIRE(Pool::check(path.path()).sound());
  {
    const auto file = pool::PoolFile::open(path.path(), FuzzedPool::options(),
                                           pool::PoolFile::Access::read_write);
    pool::SlabDirectory directory = file->directory();
    pool::SlabRecord record = directory.record(0);
    pool::Bitmap bitmap = directory.load_bitmap(file->memory(), 0, file->current_copy());
    if (is_foreign) {
      ++record.type;
    } else {
      bitmap[0] &= ~std::uint64_t{1};
    }
    emu::FlushCounts counts;
    for (const int copy : {0, 1}) {
      directory.store(file->memory(), copy, 0, record, bitmap, counts);
    }
  }
  const std::vector<char> forged = read_bytes(path.path());
  const CheckReport report = Pool::check(path.path());
  REQUIRE(report.damage.size() == 1);
  CHECK_THAT(report.damage.front().what, Catch::StartsWith(told));
  const auto error = error_of([&] { return Pool::open(path.path(), FuzzedPool::options()); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::damaged_metadata);
  CHECK_THAT(error->what(), Catch::StartsWith(told));
  CHECK(error->facts().offset.has_value());
  // It stays so: what is refused was not written to.
  CHECK((read_bytes(path.path()) == forged));
  CHECK(code_of([&] { return Pool::open(path.path(), FuzzedPool::options()); }) ==
        "damaged_metadata");
}

TEST_CASE("made-up pools that were once taken badly are not any more") {
  // A clean pool was sound whose superblocks differ and seal the same, where directories differ.
  const std::vector<std::uint8_t> choices{0x9c, 0xb8, 0x44, 0x70, 0x30, 0x13, 0x08, 0x7d, 0x7c,
                                          0x2d, 0x39, 0x9a, 0x47, 0x54, 0xc4, 0x3d, 0xa6, 0x1e,
                                          0x52, 0x63, 0xf5, 0x90, 0xb5, 0xaf, 0x19};
  const ForgedPools pools;
  CHECK(pools.try_out(choices).fault == "");
}

TEST_CASE("made-up pools whose checksums hold are refused, or work") { forge_all(4'000, 1); }

TEST_CASE("made-up pools whose checksums hold, at length", "[.full]") { forge_all(200'000, 2); }

}  // namespace sp3::test

// Slab: from an offset to a slot and back, for every shape.

#include <catch2/catch.hpp>

#include "index/slab.h"

namespace sp3::index {
namespace {

pool::SlabRecord record_of(std::uint32_t slot_size) {
  pool::SlabRecord record;
  record.type = 7;
  record.type_size = slot_size;
  record.slot_size = slot_size;
  return record;
}

// Compares slot_at with division at every offset of the slab.
void check_every_offset(std::uint32_t slab_size, std::uint32_t slot_size, std::uint64_t offset) {
  const pool::SlabShape shape = pool::slab_shape(slab_size, slot_size);
  REQUIRE(shape.slots > 0);
  REQUIRE(shape.data + std::uint64_t{shape.slots} * slot_size <= slab_size);
  REQUIRE(shape.data % 64 == 0);
  REQUIRE(shape.slots <= shape.bitmap_bytes * 8);
  const Slab slab(3, offset, slab_size, record_of(slot_size), pool::Bitmap(shape.bitmap_bytes / 8));
  REQUIRE(slab.slots == shape.slots);
  std::uint32_t found = 0;
  for (std::uint64_t at = 0; at < slab_size; ++at) {
    std::uint32_t wanted = slab.slots;
    if (at >= shape.data && (at - shape.data) % slot_size == 0) {
      const std::uint64_t slot = (at - shape.data) / slot_size;
      if (slot < slab.slots) wanted = static_cast<std::uint32_t>(slot);
    }
    if (slab.slot_at(offset + at) != wanted) {
      FAIL("slab of " << slab_size << ", slots of " << slot_size << ", offset " << at << ": found "
                      << slab.slot_at(offset + at) << ", wanted " << wanted);
    }
    if (wanted != slab.slots) {
      ++found;
      if (slab.offset_of(wanted) != offset + at) FAIL("offset_of " << wanted);
    }
  }
  REQUIRE(found == slab.slots);
}

}  // namespace

TEST_CASE("slot_at finds the slots, and nothing else, at every offset of slabs of every shape") {
  for (std::uint32_t slot_size = 8; slot_size <= 4096 - 128; slot_size += 8) {
    check_every_offset(4096, slot_size, std::uint64_t{1} << 20);
  }
  for (const std::uint32_t slot_size : {8U, 24U, 40U, 72U, 1000U, 4096U, 33'000U, 65'408U}) {
    check_every_offset(64 * 1024, slot_size, (std::uint64_t{1} << 45) + (1 << 16));
  }
}

TEST_CASE("slot_at is exact at both ends of a very large slab") {
  constexpr std::uint32_t kSlab = 1U << 28;
  for (const std::uint32_t slot_size : {8U, 24U, 104U, 1'000'000U}) {
    const pool::SlabShape shape = pool::slab_shape(kSlab, slot_size);
    const Slab slab(0, kSlab, kSlab, record_of(slot_size), pool::Bitmap(shape.bitmap_bytes / 8));
    for (std::uint32_t n = 0; n < 2000 && n < slab.slots; ++n) {
      for (const std::uint32_t slot : {n, slab.slots - 1 - n}) {
        const std::uint64_t at = slab.offset_of(slot);
        if (slab.slot_at(at) != slot) FAIL("slot " << slot << " of size " << slot_size);
        if (slab.slot_at(at + 1) != slab.slots) FAIL("behind slot " << slot);
        if (slab.slot_at(at + slot_size - 1) != slab.slots) FAIL("before the end of slot " << slot);
      }
    }
    CHECK(slab.slot_at(slab.offset_of(slab.slots)) == slab.slots);
    CHECK(slab.slot_at(slab.data - 1) == slab.slots);
  }
}

TEST_CASE("as many slots as fit are used") {
  for (std::uint32_t slot_size = 8; slot_size <= 4096 - 128; slot_size += 8) {
    const pool::SlabShape shape = pool::slab_shape(4096, slot_size);
    const std::uint64_t more = shape.slots + 1;
    const std::uint64_t bitmap = base::round_up((more + 7) / 8, base::kCacheLine);
    INFO("slots of " << slot_size << ": " << shape.slots);
    CHECK(2 * bitmap + more * slot_size > 4096);
  }
}

TEST_CASE("a slab starts with what its bitmap says, and remembers what it is told") {
  const pool::SlabShape shape = pool::slab_shape(4096, 24);
  pool::Bitmap bitmap(shape.bitmap_bytes / 8);
  bitmap[0] = 0b1011;
  bitmap[1] = 1;
  Slab slab(0, 8192, 4096, record_of(24), bitmap);
  CHECK(slab.claimed_count == 4);
  CHECK(slab.claimed == bitmap);
  CHECK(slab.home_holds_object(0));
  CHECK_FALSE(slab.home_holds_object(2));
  CHECK(slab.home_holds_object(64));
  slab.set_home(2, true);
  slab.set_home(64, false);
  CHECK(slab.home_holds_object(2));
  CHECK_FALSE(slab.home_holds_object(64));
  CHECK(slab.home_bitmap()[0] == 0b1111);
  CHECK(slab.claimed == bitmap);  // the allocator's business
  for (std::uint32_t slot = 0; slot < slab.slots; ++slot) {
    Seen seen;
    REQUIRE(slab.entry(slot).try_read(seen));
    REQUIRE(seen.stamp() == 0);
    REQUIRE(seen.at_home());
  }
}

TEST_CASE("an entry is read whole, locked once, and published with both words") {
  Entry entry;
  Seen seen;
  std::uint64_t found = 0;
  REQUIRE(entry.try_lock(0, &found));
  CHECK_FALSE(entry.try_lock(0, &found));
  CHECK(found == kLock);
  CHECK_FALSE(entry.try_read(seen));
  CHECK(entry.publish(pack_word0(9), pack_word1(5, 0x1234'5678'9ABCULL)) == 0);
  REQUIRE(entry.try_read(seen));
  CHECK(seen.stamp() == 9);
  CHECK(seen.session() == 5);
  CHECK(seen.pointer() == 0x1234'5678'9ABCULL);
  CHECK_FALSE(seen.at_home());
  CHECK_FALSE(seen.destroyed());
  CHECK_FALSE(entry.try_lock(pack_word0(8), &found));
  CHECK(found == pack_word0(9));
  REQUIRE(entry.try_lock(pack_word0(9), &found));
  entry.unlock(pack_word0(9));
  CHECK(entry.word0() == pack_word0(9));
  REQUIRE(entry.try_lock(pack_word0(9), &found));
  CHECK((entry.publish(pack_word0(base::kMaxStamp), pack_word1(0xFFFF, kTombstone)) &
         kPointerMask) == 0x1234'5678'9ABCULL);
  REQUIRE(entry.try_read(seen));
  CHECK(seen.stamp() == base::kMaxStamp);
  CHECK(seen.session() == 0xFFFF);
  CHECK(seen.destroyed());
}

}  // namespace sp3::index

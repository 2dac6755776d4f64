#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "base/align.h"
#include "pool/layout.h"
#include "tests/pool/support.h"

namespace sp3::pool {
namespace {

using test::error_of;

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kGiB = 1024 * kMiB;
constexpr std::uint64_t kTiB = 1024 * kGiB;

void check_invariants(const Layout& layout, std::uint64_t size) {
  CHECK(layout.size == size);
  CHECK(layout.superblock_bytes == superblock_bytes(layout.max_sessions));
  CHECK(layout.directory_bytes >= layout.slabs * sizeof(SlabRecord));
  CHECK(layout.log_bytes == std::uint64_t{layout.segments} * layout.segment_size);
  CHECK(layout.segments >= kMinSegments);
  CHECK(layout.slabs >= 1);
  CHECK(layout.max_sessions >= 1);
  CHECK(layout.max_sessions <= layout.segments);
  CHECK(base::is_power_of_two(layout.segment_size));
  CHECK(base::is_power_of_two(layout.slab_size));
  CHECK(layout.segment_size >= kMinSegmentSize);
  CHECK(layout.slab_size >= kMinSlabSize);
  // In order, aligned, disjoint, inside.
  std::uint64_t end = 2 * layout.superblock_bytes;
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> regions{
      {layout.directory_offset[0], layout.directory_bytes},
      {layout.directory_offset[1], layout.directory_bytes},
      {layout.log_offset, layout.log_bytes},
      {layout.slabs_offset, std::uint64_t{layout.slabs} * layout.slab_size}};
  for (const auto& [offset, length] : regions) {
    CHECK(offset % kBlock == 0);
    CHECK(offset >= end);
    end = offset + length;
  }
  CHECK(end <= size);
  // Nothing is wasted that another slab could use.
  CHECK(size - end < layout.slab_size + 2 * kBlock);
  CHECK(layout.in_slabs(layout.slabs_offset));
  CHECK_FALSE(layout.in_slabs(layout.slabs_offset - 1));
  CHECK(layout.in_slabs(end - 1));
  CHECK_FALSE(layout.in_slabs(end));
  CHECK(layout.slab_of(end - 1) == layout.slabs - 1);
  CHECK(slab_shape(layout.slab_size, static_cast<std::uint32_t>(layout.max_object())).slots == 1);
}

void check_round_trip(const Layout& layout) {
  Superblock superblock;
  describe(layout, superblock);
  const Layout again = layout_of(superblock, "pool");
  CHECK(again.size == layout.size);
  CHECK(again.superblock_bytes == layout.superblock_bytes);
  CHECK(again.directory_offset[0] == layout.directory_offset[0]);
  CHECK(again.directory_offset[1] == layout.directory_offset[1]);
  CHECK(again.directory_bytes == layout.directory_bytes);
  CHECK(again.log_offset == layout.log_offset);
  CHECK(again.log_bytes == layout.log_bytes);
  CHECK(again.slabs_offset == layout.slabs_offset);
  CHECK(again.segment_size == layout.segment_size);
  CHECK(again.slab_size == layout.slab_size);
  CHECK(again.max_sessions == layout.max_sessions);
  CHECK(again.segments == layout.segments);
  CHECK(again.slabs == layout.slabs);
}

TEST_CASE("a layout keeps its invariants for every size and geometry") {
  const std::vector<Geometry> geometries{
      {},
      {0, 4096, 0, 0},
      {0, 0, 4096, 0},
      {0, 4096, 4096, 2},
      {16 * kKiB, 0, 0, 0},
      {24 * kKiB + 1, 4096, 4096, 1},
      {0, 8192, 8192, 1},
  };
  for (const std::uint64_t size : {kMinPoolSize, 100 * kKiB + 1, 256 * kKiB, kMiB, 10 * kMiB + 4095,
                                   64 * kMiB, kGiB, 5 * kGiB + 512, 100 * kGiB, kTiB}) {
    for (const Geometry& geometry : geometries) {
      CAPTURE(size, geometry.log_size, geometry.segment_size, geometry.slab_size);
      const Layout layout = plan_layout(size, geometry);
      check_invariants(layout, size);
      check_round_trip(layout);
      if (geometry.segment_size != 0) CHECK(layout.segment_size == geometry.segment_size);
      if (geometry.slab_size != 0) CHECK(layout.slab_size == geometry.slab_size);
      if (geometry.max_sessions != 0)
        CHECK(layout.max_sessions == geometry.max_sessions + kOwnSessions);
      if (geometry.log_size != 0) {
        CHECK(layout.log_bytes <= geometry.log_size);
        CHECK(layout.log_bytes + layout.segment_size > geometry.log_size);
      }
    }
  }
}

TEST_CASE("a pool of 256 KiB holds a log of 64 KiB, 7 sessions and more than 30 slabs") {
  const Layout layout = plan_layout(256 * kKiB, {64 * kKiB, 4096, 4096, 7});
  CHECK(layout.log_bytes == 64 * kKiB);
  CHECK(layout.segments == 16);
  CHECK(layout.max_sessions == 8);
  CHECK(layout.slabs >= 30);
  // It is also what the defaults choose.
  const Layout by_default = plan_layout(256 * kKiB, {});
  CHECK(by_default.log_bytes == layout.log_bytes);
  CHECK(by_default.segment_size == layout.segment_size);
  CHECK(by_default.slab_size == layout.slab_size);
  CHECK(by_default.max_sessions == layout.max_sessions);
}

TEST_CASE("a large pool has a log of 1 GiB, segments of 1 MiB, slabs of 2 MiB and 256 sessions") {
  for (const std::uint64_t size : {4 * kGiB, 100 * kGiB, 10 * kTiB, kMaxPoolSize}) {
    const Layout layout = plan_layout(size, {});
    CHECK(layout.log_bytes == kGiB);
    CHECK(layout.segment_size == kMiB);
    CHECK(layout.slab_size == 2 * kMiB);
    CHECK(layout.max_sessions == 256);
  }
}

TEST_CASE("an impossible geometry is refused with the option and the value given") {
  struct Case {
    std::uint64_t size;
    Geometry geometry;
    const char* option;
    std::uint64_t found;
  };
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint32_t kMost32 = std::numeric_limits<std::uint32_t>::max();
  const std::vector<Case> cases{
      {0, {}, "size", 0},
      {1, {}, "size", 1},
      {kMinPoolSize - 1, {}, "size", kMinPoolSize - 1},
      {kMaxPoolSize + 1, {}, "size", kMaxPoolSize + 1},
      {kHuge, {}, "size", kHuge},
      {kMost, {}, "size", kMost},
      {kMiB, {0, 2048, 0, 0}, "segment_size", 2048},
      {kMiB, {0, 5000, 0, 0}, "segment_size", 5000},
      {kMiB, {0, kMost32, 0, 0}, "segment_size", kMost32},
      {kMiB, {0, 1u << 31, 0, 0}, "segment_size", 1u << 31},
      {kMiB, {0, 524288, 0, 0}, "segment_size", 524288},
      {kMiB, {0, 0, 1, 0}, "slab_size", 1},
      {kMiB, {0, 0, 12288, 0}, "slab_size", 12288},
      {kMiB, {0, 0, 1u << 20, 0}, "slab_size", 1u << 20},
      {kMiB, {0, 0, 1u << 31, 0}, "slab_size", 1u << 31},
      {kMiB, {16384, 4096, 1u << 20, 0}, "slab_size", 1u << 20},
      {kMaxPoolSize, {0, 0, 4096, 0}, "slab_size", 4096},
      {kMiB, {1, 0, 0, 0}, "log_size", 1},
      {kMiB, {8191, 0, 0, 0}, "log_size", 8191},
      {kMiB, {65536, 65536, 0, 0}, "log_size", 65536},
      {kMiB, {kMiB, 0, 0, 0}, "log_size", kMiB},
      {kMiB, {kMiB + 1, 0, 0, 0}, "log_size", kMiB + 1},
      {kMiB, {kHuge, 0, 0, 0}, "log_size", kHuge},
      {kMiB, {kMost, 0, 0, 0}, "log_size", kMost},
      {kMaxPoolSize, {kMaxPoolSize / 2, 4096, 0, 0}, "segment_size", 4096},
      // Nothing else would do, whatever the log.
      {71196, {65536, 32768, 0, 1}, "segment_size", 32768},
      {kMiB, {0, 0, 0, kMaxSessions}, "max_sessions", kMaxSessions},
      {kMiB, {0, 0, 0, kMost32}, "max_sessions", kMost32},
      {kMiB, {65536, 4096, 0, 16}, "max_sessions", 16},
      {kMiB, {0, 0, 0, 1000}, "max_sessions", 1000},
  };
  for (const Case& one : cases) {
    CAPTURE(one.option, one.found, one.size);
    const auto error = error_of([&] { return plan_layout(one.size, one.geometry); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::invalid_argument);
    CHECK_THAT(error->what(), Catch::Contains(one.option));
    CHECK(error->facts().found == std::to_string(one.found));
    CHECK_FALSE(error->facts().wanted.empty());
  }
}

TEST_CASE("of a log's segments one is for the library's session, all others may be for users'") {
  const auto with = [](std::uint32_t sessions) {
    return plan_layout(kMiB, {64 * kKiB, 4096, 0, sessions}).max_sessions;
  };
  CHECK(with(15) == 16);
  const auto error = error_of([&] { return with(16); });
  REQUIRE(error);
  CHECK(error->facts().found == "16");
  CHECK_THAT(error->facts().wanted,
             Catch::StartsWith("at most 15 (each needs one of 16 log segments"));
  // The most of any pool.
  const Geometry most{0, 4096, 0, kMaxUserSessions};
  CHECK(plan_layout(kGiB, most).max_sessions == kMaxSessions);
}

TEST_CASE("random geometries are laid out soundly or refused") {
  std::mt19937_64 random(20240607);
  const auto power = [&random](unsigned low, unsigned high) {
    return std::uint64_t{1} << (low + random() % (high - low + 1));
  };
  std::size_t planned = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t size = random() % power(16, 47);
    Geometry geometry;
    if (random() % 2 != 0) geometry.log_size = random() % power(12, 63);
    if (random() % 2 != 0) geometry.segment_size = static_cast<std::uint32_t>(power(11, 31));
    if (random() % 2 != 0) geometry.slab_size = static_cast<std::uint32_t>(power(11, 31));
    if (random() % 2 != 0)
      geometry.max_sessions = static_cast<std::uint32_t>(random() % power(1, 16));
    const auto error = error_of([&] {
      check_invariants(plan_layout(size, geometry), size);
      ++planned;
      return 0;
    });
    if (error) REQUIRE(error->code() == ErrorCode::invalid_argument);
  }
  CHECK(planned > 1000);
}

TEST_CASE("a slab's bitmaps and slots fit into it and leave no room for another line of slots") {
  for (std::uint64_t slab = kMinSlabSize; slab <= (std::uint64_t{1} << 31); slab *= 2) {
    for (std::uint64_t slot = 8; slot <= slab - 128; slot = slot * 2 + 8) {
      const SlabShape shape =
          slab_shape(static_cast<std::uint32_t>(slab), static_cast<std::uint32_t>(slot));
      CAPTURE(slab, slot);
      CHECK(shape.slots > 0);
      CHECK(shape.bitmap_bytes % 64 == 0);
      CHECK(std::uint64_t{shape.bitmap_bytes} * 8 >= shape.slots);
      CHECK(shape.data == 2 * shape.bitmap_bytes);
      const std::uint64_t used = shape.data + std::uint64_t{shape.slots} * slot;
      CHECK(used <= slab);
      // At most 2% of a slab, or one slot, stay unused.
      CHECK(slab - used <= std::max(slot + 128, slab / 50));
    }
  }
}

TEST_CASE("a number that cannot be true is told with its place") {
  Superblock superblock;
  describe(plan_layout(kMiB, {}), superblock);
  superblock.slab_size += 1;
  const auto error = error_of([&] { return layout_of(superblock, "pool"); });
  REQUIRE(error);
  CHECK(error->facts().offset == offsetof(Superblock, slab_size));
}

TEST_CASE("a superblock whose numbers contradict each other has no layout") {
  Superblock sound;
  describe(plan_layout(kMiB, {}), sound);
  REQUIRE_FALSE(find_layout_problem(sound));
  const auto refuses = [&sound](auto edit) {
    Superblock superblock = sound;
    edit(superblock);
    const auto error = error_of([&] { return layout_of(superblock, "pool"); });
    return error && error->code() == ErrorCode::damaged_superblock &&
           !error->facts().wanted.empty();
  };
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  CHECK(refuses([](Superblock& s) { s.pool_size = 0; }));
  CHECK(refuses([](Superblock& s) { s.pool_size = kMost; }));
  CHECK(refuses([](Superblock& s) { s.pool_size -= std::uint64_t{4} * kMinSlabSize; }));
  CHECK(refuses([](Superblock& s) { s.max_sessions = 0; }));
  CHECK(refuses([](Superblock& s) { s.max_sessions = kMaxSessions + 1; }));
  CHECK(refuses([](Superblock& s) { s.max_sessions = 1000; }));
  CHECK(refuses([](Superblock& s) { s.copy_bytes *= 2; }));
  CHECK(refuses([](Superblock& s) { s.segment_size = 0; }));
  CHECK(refuses([](Superblock& s) { s.segment_size += 1; }));
  CHECK(refuses([](Superblock& s) { s.segment_size = 1u << 31; }));
  CHECK(refuses([](Superblock& s) { s.slab_size = 0; }));
  CHECK(refuses([](Superblock& s) { s.slab_size = 1u << 31; }));
  CHECK(refuses([](Superblock& s) { s.extents[4].kind = 4; }));
  CHECK(refuses([](Superblock& s) { s.extents[5].length = 1; }));
  CHECK(refuses([](Superblock& s) { s.extents[5].offset = kBlock; }));
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(refuses([i](Superblock& s) { s.extents[i].kind = 0; }));
    CHECK(refuses([i](Superblock& s) { s.extents[i].kind = 7; }));
    CHECK(refuses([i](Superblock& s) { s.extents[i].reserved = 1; }));
    CHECK(refuses([i](Superblock& s) { s.extents[i].offset += 1; }));
    CHECK(refuses([i](Superblock& s) { s.extents[i].offset += kBlock; }));
    CHECK(refuses([i](Superblock& s) { s.extents[i].offset = kMost - kBlock + 1; }));
    CHECK(refuses([i](Superblock& s) { s.extents[i].length = 0; }));
    CHECK(refuses([i](Superblock& s) { s.extents[i].length += kBlock; }));
    CHECK(refuses([i](Superblock& s) { s.extents[i].length = kMost; }));
    CHECK(refuses([i](Superblock& s) { s.extents[i].length = kMost - s.extents[i].offset + 1; }));
  }
  CHECK(refuses([](Superblock& s) { std::swap(s.extents[1], s.extents[2]); }));
  CHECK(refuses([](Superblock& s) { s.extents[2].offset = s.extents[1].offset; }));
  // In the place of the last slab, where they fit.
  CHECK(refuses([](Superblock& s) {
    while (s.extents[3].offset + s.extents[3].length + s.extents[0].length > s.pool_size) {
      s.extents[3].length -= s.slab_size;
    }
    s.extents[0].offset = s.extents[3].offset + s.extents[3].length;
    s.extents[1].length = 2 * directory_bytes(s.extents[3].length / s.slab_size);
  }));
}

// Of units larger than a block: what is cut off of the last one is whole blocks all the same.
TEST_CASE("a superblock's regions are whole units, and its directory no longer than it has to be") {
  Superblock sound;
  describe(plan_layout(kMiB, {0, 16 * kKiB, 16 * kKiB, 0}), sound);
  REQUIRE_FALSE(find_layout_problem(sound));
  const auto problem = [&sound](auto edit) {
    Superblock superblock = sound;
    edit(superblock);
    return find_layout_problem(superblock).value_or(LayoutProblem{}).field;
  };
  CHECK(problem([](Superblock& s) { s.extents[2].length -= kBlock; }) == "extents[2].length");
  CHECK(problem([](Superblock& s) { s.extents[3].length -= kBlock; }) == "extents[3].length");
  CHECK(problem([](Superblock& s) {
          s.extents[2].offset += s.segment_size;
          s.extents[2].length -= s.segment_size;
          s.extents[1].length += kBlock;
        }) == "extents[1].length");
}

TEST_CASE("segments and slabs are no more than 32 bits can number") {
  const auto accepts = [](std::uint64_t segments, std::uint64_t slabs) {
    Superblock s;
    describe(plan_layout(kMiB, {}), s);
    s.pool_size = kMaxPoolSize;
    s.segment_size = kMinSegmentSize;
    s.slab_size = kMinSlabSize;
    s.extents[1].length = 2 * directory_bytes(slabs);
    s.extents[2].offset = s.extents[1].offset + s.extents[1].length;
    s.extents[2].length = segments * s.segment_size;
    s.extents[3].offset = s.extents[2].offset + s.extents[2].length;
    s.extents[3].length = slabs * s.slab_size;
    return !find_layout_problem(s);
  };
  CHECK(accepts(kMinSegments, 1));
  CHECK_FALSE(accepts(kMinSegments - 1, 1));
  CHECK(accepts(kMaxCount, 1));
  CHECK_FALSE(accepts(kMaxCount + 1, 1));
  CHECK(accepts(kMinSegments, kMaxCount));
  CHECK_FALSE(accepts(kMinSegments, kMaxCount + 1));
}

TEST_CASE("a log has two segments for each session that is asked for, if it can") {
  const Layout layout = plan_layout(64 * kMiB, {0, 0, 0, 200});
  CHECK(layout.segments >= 2 * (200 + kOwnSessions));
}

}  // namespace
}  // namespace sp3::pool

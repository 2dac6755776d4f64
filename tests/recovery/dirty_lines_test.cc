#include "recovery/dirty_lines.h"

#include <random>
#include <set>

#include <catch2/catch.hpp>

using namespace sp3;
using recovery::DirtyLines;

namespace {

// Six slabs of two words of lines each.
pool::Layout small_layout() {
  pool::Layout layout;
  layout.slabs_offset = 3 * std::uint64_t{4096};
  layout.slab_size = 8192;
  layout.slabs = 6;
  return layout;
}

std::multiset<std::uint64_t> lines_of(const DirtyLines& dirty) {
  std::multiset<std::uint64_t> lines;
  for (std::size_t part = 0; part < dirty.parts(); ++part) {
    dirty.for_each_stretch(part, [&](std::uint64_t offset, std::uint64_t bytes) {
      REQUIRE(offset % base::kCacheLine == 0);
      REQUIRE(bytes % base::kCacheLine == 0);
      for (std::uint64_t at = 0; at < bytes; at += base::kCacheLine) lines.insert(offset + at);
    });
  }
  return lines;
}

}  // namespace

TEST_CASE("Each line that was stored to is dirty once, and no other") {
  const pool::Layout layout = small_layout();
  const std::vector<std::uint32_t> written{1, 2, 5};
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    DirtyLines dirty(layout, written);
    std::multiset<std::uint64_t> model;
    for (std::uint64_t stores = random() % 40; stores > 0; --stores) {
      const std::uint64_t begin = random() % layout.slab_size;
      const std::uint64_t most = random() % 2 == 0 ? 100 : layout.slab_size;
      const std::uint64_t bytes = 1 + random() % std::min(most, layout.slab_size - begin);
      const std::uint64_t offset = layout.slab_offset(written[random() % 3]) + begin;
      dirty.add(offset, bytes);
      for (std::uint64_t at = base::round_down(offset, base::kCacheLine); at < offset + bytes;
           at += base::kCacheLine) {
        if (model.count(at) == 0) model.insert(at);
      }
    }
    CHECK(lines_of(dirty) == model);
  }
}

TEST_CASE("A whole slab can be dirty, and a slab's last byte") {
  const pool::Layout layout = small_layout();
  DirtyLines dirty(layout, {0, 5});
  CHECK(lines_of(dirty).empty());
  dirty.add(layout.slab_offset(5) + layout.slab_size - 1, 1);
  CHECK(lines_of(dirty) == std::multiset<std::uint64_t>{layout.slab_offset(6) - 64});
  dirty.add(layout.slab_offset(0), layout.slab_size);
  CHECK(lines_of(dirty).size() == 128 + 1);
}

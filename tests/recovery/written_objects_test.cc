#include "recovery/written_objects.h"

#include <map>
#include <random>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/recovery/support.h"

using namespace sp3;
using namespace sp3::recovery;

TEST_CASE(
    "A slot keeps its number, which no other slot has, in a table that is as full as can be") {
  const std::vector<std::uint64_t> most{0, 1, 2, 3, 1000, 0, 4096, 7};
  SlotTable table(most);
  std::mt19937_64 random(1);
  std::set<std::size_t> taken;
  std::vector<std::map<std::uint64_t, std::size_t>> numbers(most.size());
  std::set<std::uint64_t> slots;
  for (std::uint32_t shard = 0; shard < most.size(); ++shard) {
    while (numbers[shard].size() < most[shard]) {
      // Some lie one behind the other, as slots do.
      const std::uint64_t slot = random() % 4 == 0 ? 64 * (1 + random() % 100'000) : random() | 1;
      if (!slots.insert(slot).second) continue;
      const std::size_t number = table.number(shard, slot);
      REQUIRE(number < table.size());
      REQUIRE(taken.insert(number).second);
      numbers[shard][slot] = number;
    }
  }
  for (std::uint32_t shard = 0; shard < most.size(); ++shard) {
    for (const auto& [slot, number] : numbers[shard]) {
      REQUIRE(table.number(shard, slot) == number);
    }
  }
  CHECK(SlotTable({}).size() == 0);
}

TEST_CASE("Written objects are numbered by slabs, or by a table where slots are many") {
  constexpr std::uint32_t kSlab = 64 * 1024;
  test::SyntheticPool pool(216 * 1024 + std::uint64_t{10} * kSlab, 64 * 1024, kSlab);
  const std::vector<std::uint32_t> written{1, 3, 4};
  for (const std::uint32_t slab : written) test::describe_slab(pool, slab, 0);
  const auto file = pool.reopen();
  const auto directory =
      pool::SlabDirectory::load(file->memory(), pool.layout, file->identity(), 0);
  const pool::SlabShape shape = pool::slab_shape(kSlab, 8);
  const std::uint64_t slots = shape.slots * written.size();
  const auto slot_of = [&](std::uint32_t slab, std::uint32_t i) {
    return pool.layout.slab_offset(slab) + shape.data + std::uint64_t{8} * i;
  };
  const std::uint64_t few = slots / WrittenObjects::kSlotsToAWrite;
  for (const bool many : {true, false}) {
    SlabPlan plan(pool.layout, directory);
    Preparation preparation;
    preparation.writes = many ? few : few - 1;
    Preparation::Stretch stretch;
    stretch.shards.resize(1);
    stretch.shards[0].resize(preparation.writes);
    preparation.stretches.push_back(stretch);
    for (const std::uint32_t slab : written) plan.count(slot_of(slab, 0));
    WrittenObjects objects(plan, preparation);
    CHECK((objects.size() == slots) == many);
    std::set<std::size_t> taken;
    for (std::uint64_t i = 0; i < preparation.writes; ++i) {
      const auto slab = written[i % written.size()];
      const std::uint64_t slot = slot_of(slab, static_cast<std::uint32_t>(i * 31 % shape.slots));
      const std::size_t number = objects.number(0, slot);
      REQUIRE(number < objects.size());
      REQUIRE(objects.number(0, slot) == number);
      REQUIRE(taken.insert(number).second);
    }
  }
}

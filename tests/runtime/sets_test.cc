// What an attempt keeps in DRAM, alone: the write set's index, and the runs of patches.
#include <bitset>
#include <cstdint>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "runtime/patch_runs.h"
#include "runtime/write_set.h"

using sp3::runtime::PatchRuns;
using sp3::runtime::WriteSet;

TEST_CASE("a write set finds what it holds, whatever the sizes of those before it") {
  WriteSet writes;
  std::mt19937_64 random(7);
  const auto add = [&](std::uint64_t offset) {
    static_cast<void>(writes.add({.place = {}, .offset = offset, .seen = {}}));
  };
  // After a large one the index stays as large, and small ones take back only their own cells.
  for (const std::size_t size : {3UL, 100UL, 20'000UL, 9UL, 10UL, 40UL, 9UL, 3'000UL, 12UL, 9UL}) {
    std::vector<std::uint64_t> offsets;
    for (std::size_t i = 0; i < size; ++i) {
      offsets.push_back(128 * (random() % 1'000'000));
      if (writes.find(offsets.back()) == nullptr) add(offsets.back());
    }
    for (const std::uint64_t offset : offsets) {
      REQUIRE(writes.find(offset) != nullptr);
      REQUIRE(writes.find(offset)->offset == offset);
      REQUIRE(writes.find(offset + 64) == nullptr);
    }
    writes.clear();
    for (const std::uint64_t offset : offsets) REQUIRE(writes.find(offset) == nullptr);
  }
}

TEST_CASE("runs of a patch are the bytes that were added, apart and in order") {
  constexpr std::uint32_t kBytes = 200;
  std::mt19937_64 random(11);
  PatchRuns runs;
  for (int round = 0; round < 500; ++round) {
    std::uint32_t patches[2] = {0, 0};
    std::bitset<kBytes> bytes[2];
    for (int i = 0; i < 30; ++i) {
      const auto which = random() % 2;
      const auto begin = static_cast<std::uint32_t>(random() % (kBytes - 1));
      const auto end =
          begin + 1 + static_cast<std::uint32_t>(random() % std::min(kBytes - begin - 1, 12U));
      patches[which] = runs.add(patches[which], begin, end);
      for (std::uint32_t at = begin; at < end; ++at) bytes[which].set(at);
      REQUIRE(runs.covers(patches[which], begin, end));
    }
    for (const int which : {0, 1}) {
      if (patches[which] == 0) continue;
      std::bitset<kBytes> listed;
      std::uint32_t last = 0;
      for (const auto& run : runs.list(patches[which])) {
        REQUIRE((run.begin > last || listed.none()));
        REQUIRE(run.begin < run.end);
        last = run.end;
        for (std::uint32_t at = run.begin; at < run.end; ++at) listed.set(at);
      }
      REQUIRE(listed == bytes[which]);
    }
    runs.clear();
  }
}

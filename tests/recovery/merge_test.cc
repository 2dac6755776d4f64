#include "recovery/merge.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

using namespace sp3;
using namespace sp3::recovery;

namespace {

constexpr std::uint32_t kShards = 3;

struct Write {
  base::Stamp stamp;
  std::size_t prefix;
  std::uint64_t offset;  // as if all logs lay one behind the other
  std::uint32_t shard;
};

// Records of one to four writes, of prefixes of several stretches each, some of which have nothing
// for a shard.
std::vector<Write> random_writes(std::mt19937_64& random, std::size_t prefixes,
                                 Preparation& preparation) {
  std::vector<Write> writes;
  std::uint64_t offset = 0;
  for (std::size_t prefix = 0; prefix < prefixes; ++prefix) {
    base::Stamp stamp = random() % 50;
    for (std::uint64_t stretches = random() % 5; stretches > 0; --stretches) {
      Preparation::Stretch stretch;
      stretch.prefix = prefix;
      stretch.shards.resize(kShards);
      for (std::uint64_t records = random() % 20; records > 0; --records) {
        stamp += 1 + random() % 3;
        for (std::uint64_t i = 1 + random() % 4; i > 0; --i) {
          const auto shard = static_cast<std::uint32_t>(random() % (kShards * kShards) % kShards);
          if (random() % 20 == 0) break;
          offset += 16;
          stretch.shards[shard].push_back({stamp, offset});
          writes.push_back({stamp, prefix, offset, shard});
        }
      }
      preparation.stretches.push_back(std::move(stretch));
    }
  }
  return writes;
}

}  // namespace

TEST_CASE("Merge gives the writes of a shard from the last to the first") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    Preparation preparation;
    preparation.shards = kShards;
    std::vector<Write> writes = random_writes(random, random() % 9, preparation);
    std::sort(writes.begin(), writes.end(), [](const Write& a, const Write& b) {
      return std::pair(a.stamp, a.offset) > std::pair(b.stamp, b.offset);
    });
    std::vector<std::uint64_t> sizes(kShards);
    for (std::uint32_t shard = 0; shard < kShards; ++shard) {
      Merge merge(preparation, shard);
      for (const Write& write : writes) {
        if (write.shard != shard) continue;
        ++sizes[shard];
        REQUIRE_FALSE(merge.empty());
        REQUIRE(merge.last().stamp == write.stamp);
        REQUIRE(merge.last().offset == write.offset);  // of equal stamps the later prefix is later
        REQUIRE(merge.prefix() == write.prefix);
        merge.pop();
      }
      CHECK(merge.empty());
    }
    CHECK(preparation.by_shard() == sizes);
  }
}

// Forged and flipped pools, recovered in every way there is: all come to the same, and what
// accept_loss opens is a pool like any other from then on.
//
// No forgery is left out. A log cannot leave the order of its records open: what depends on a later
// stamp is damage, and records of equal stamps are in the order of their sessions either way.
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "tests/fuzz/forgeries.h"
#include "tests/fuzz/recovered_pool.h"

namespace sp3::test {
namespace {

struct Tally {
  std::uint64_t opened = 0;
  std::uint64_t salvaged = 0;
  std::uint64_t replayed = 0;

  void add(const RecoveredPools::Result& result) {
    opened += result.opened ? 1 : 0;
    salvaged += result.salvaged ? 1 : 0;
    replayed += result.replayed ? 1 : 0;
  }
};

void forge_all(std::uint64_t forgeries, std::uint64_t seed) {
  const RecoveredPools pools;
  Tally tally;
  forge_at_random(forgeries, seed, {24, 120}, [&](const auto& bytes) {
    RecoveredPools::Result result = pools.try_out(bytes);
    tally.add(result);
    return result;
  });
  INFO(forgeries << " forgeries: " << tally.opened << " opened, " << tally.salvaged << " salvaged, "
                 << tally.replayed << " replayed");
  CHECK(tally.opened > forgeries / 10);
  CHECK(tally.salvaged > forgeries / 50);
  CHECK(tally.replayed > forgeries / 10);
}

void flip_all(std::uint64_t flips, std::uint64_t seed) {
  const RecoveredPools pools;
  Random random(seed);
  Tally tally;
  for (std::uint64_t i = 0; i < flips; ++i) {
    std::vector<char> bytes = pools.image(i % pools.sources());
    std::string told;
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
      std::uint64_t at = 0;
      do {
        at = random.below(bytes.size());
      } while (bytes[at] == 0);  // where there is nothing, flips hardly tell
      bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1U << random.below(8)));
      told += fmt::format(" {}", at);
    }
    const RecoveredPools::Result result = pools.recover(bytes);
    tally.add(result);
    if (!result.fault.empty()) {
      FAIL_CHECK(fmt::format("source {}, flips at{}: {}", i % pools.sources(), told, result.fault));
    }
  }
  INFO(flips << " flips: " << tally.opened << " opened, " << tally.salvaged << " salvaged, "
             << tally.replayed << " replayed");
  CHECK(tally.salvaged > flips / 50);
}

}  // namespace

TEST_CASE("forged pools are recovered alike in every way, and whole with a loss") {
  forge_all(120, 1);
}

TEST_CASE("flipped pools are recovered alike in every way, and whole with a loss") {
  flip_all(80, 1);
}

TEST_CASE("forged pools are recovered alike in every way, at length", "[.full]") {
  forge_all(10'000, 2);
}

TEST_CASE("flipped pools are recovered alike in every way, at length", "[.full]") {
  flip_all(10'000, 2);
}

}  // namespace sp3::test

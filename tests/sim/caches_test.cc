// What an access to a cache line costs, by who had it last.
#include <cstdint>

#include <catch2/catch.hpp>

#include "emu/sim/caches.h"

namespace sp3::test {
namespace {

using emu::sim::Caches;
using emu::sim::Costs;
using Access = Caches::Access;

// Each cost has a digit of its own, so that a sum says what it is made of.
Costs digits() {
  Costs costs;
  costs.hit = 1;
  costs.near = 10;
  costs.fetch = 100;
  costs.fetch_next = 1000;
  costs.transfer = 10'000;
  costs.exchange = 100'000;
  costs.transfer_next = 1'000'000;
  return costs;
}

struct Cores : Caches {
  Cores() : Caches(digits()) {}
  std::uint64_t load(Core core, std::uint64_t line) { return at(core, line, Access::load); }
  std::uint64_t store(Core core, std::uint64_t line) { return at(core, line, Access::store); }
  std::uint64_t at(Core core, std::uint64_t line, Access how) {
    now += 10'000'000;  // so that no transfer waits for another
    return access(core, line, how, now, false);
  }
  std::uint64_t make(Core core, std::uint64_t line) {
    now += 10'000'000;
    return Caches::make(core, line, now, false);
  }
  std::uint64_t now = 0;
};

}  // namespace

TEST_CASE("a line is fetched once, and hit from then on") {
  Cores cores;
  CHECK(cores.load(0, 7) == 100);
  CHECK(cores.load(0, 7) == 1);
  CHECK(cores.store(0, 7) == 1);
  CHECK(cores.at(0, 7, Access::exchange) == 100'001);
  CHECK(cores.access(0, 8, Access::load, 0, true) == 1000);  // it follows one just accessed
  CHECK(cores.load(1, 9) == 100);                            // each core has its own caches
}

TEST_CASE("what another core wrote last is transferred, and then both have it") {
  Cores cores;
  cores.store(0, 7);
  CHECK(cores.load(1, 7) == 10'000);
  CHECK(cores.load(1, 7) == 1);
  CHECK(cores.load(0, 7) == 1);
  CHECK(cores.load(2, 7) == 100);
}

TEST_CASE("transfers of lines that follow one another overlap") {
  Cores cores;
  for (std::uint64_t line = 7; line < 9; ++line) cores.store(0, line);
  CHECK(cores.load(1, 7) == 10'000);
  CHECK(cores.access(1, 8, Access::load, cores.now, true) == 1'000'000);
  CHECK(cores.store(0, 7) == 10'000);
  CHECK(cores.access(0, 8, Access::store, cores.now, true) == 1'000'000);
}

TEST_CASE("a store takes the line from all who share it") {
  Cores cores;
  cores.load(0, 7);
  cores.load(1, 7);
  CHECK(cores.store(1, 7) == 10'000);
  CHECK(cores.store(1, 7) == 1);
  CHECK(cores.load(0, 7) == 10'000);
  CHECK(cores.at(2, 7, Access::exchange) == 110'000);
  CHECK(cores.store(0, 7) == 10'000);
}

TEST_CASE("a line that everybody wants goes from core to core, one after the other") {
  Cores cores;
  cores.store(0, 7);
  CHECK(cores.access(1, 7, Access::store, 500, false) == 10'000);
  CHECK(cores.access(2, 7, Access::store, 500, false) == 20'000);
  CHECK(cores.access(3, 7, Access::store, 20'500, false) == 10'000);
}

TEST_CASE("a first level holds 48 KiB, a second 2 MiB, and the least recently used goes") {
  constexpr std::uint64_t kFirst = 768;
  constexpr std::uint64_t kSecond = std::uint64_t{4096} * 8;
  Cores cores;
  for (std::uint64_t line = 1; line <= kFirst; ++line) cores.load(0, line);
  CHECK(cores.load(0, 1) == 1);
  cores.load(0, kFirst + 1);  // in the place of the first
  CHECK(cores.load(0, 1) == 10);
  for (std::uint64_t line = kFirst + 2; line <= kSecond; ++line) cores.load(0, line);
  CHECK(cores.load(0, 1) == 10);      // all are still there, and the first is the last used
  cores.load(0, kSecond + 1);         // comes into its set
  CHECK(cores.load(0, 4097) == 100);  // which had to give up the one after the first
  cores.load(0, kFirst + 1);
  CHECK(cores.load(0, 1) == 10);
}

TEST_CASE("what was written and has left its core's caches comes from memory") {
  Cores cores;
  cores.store(0, 1);
  for (std::uint64_t line = 2; line <= std::uint64_t{4096} * 8 + 1; ++line) cores.load(0, line);
  CHECK(cores.load(1, 1) == 100);
}

TEST_CASE("what is made anew is fetched by nobody, but taken from those who have it") {
  Cores cores;
  CHECK(cores.make(0, 7) == 1);
  CHECK(cores.make(0, 7) == 1);
  CHECK(cores.load(1, 7) == 10'000);
  CHECK(cores.make(0, 7) == 10'000);
  CHECK(cores.make(0, 7) == 1);
  CHECK(cores.load(1, 7) == 10'000);  // it was lost
  SECTION("by its last writer") {
    CHECK(cores.make(1, 7) == 10'000);
    CHECK(cores.make(1, 7) == 1);
    CHECK(cores.make(0, 7) == 10'000);
  }
  SECTION("which overlaps with what was just taken") {
    CHECK(static_cast<Caches&>(cores).make(0, 7, cores.now + 100'000, true) == 1'000'000);
  }
  SECTION("unless it has left the caches") {
    cores.make(1, 7);
    for (std::uint64_t line = 8; line <= std::uint64_t{4096} * 8 + 8; ++line) cores.load(1, line);
    CHECK(cores.make(0, 7) == 1);
  }
}

}  // namespace sp3::test

// When a cache line is there, by who had it last.
#include <cstdint>

#include <catch2/catch.hpp>

#include "emu/sim/caches.h"

namespace sp3::test {
namespace {

using emu::sim::Caches;
using emu::sim::Costs;

// Each cost has a digit of its own, so that a sum says what it is made of.
Costs digits() {
  Costs costs;
  costs.hit = 1;
  costs.near = 10;
  costs.fetch = 100;
  costs.fetch_next = 1000;
  costs.transfer = 10'000;
  costs.shared = 100'000;
  costs.shared_next = 1'000'000;
  costs.transfer_next = 10'000'000;
  costs.shared_mib = 4000;
  return costs;
}

constexpr std::uint64_t kFirst = 768;
constexpr std::uint64_t kSecond = std::uint64_t{4096} * 8;
constexpr std::uint64_t kShared = std::uint64_t{4} << 14;

struct Cores : Caches {
  Cores() : Caches(digits()) {}
  std::uint64_t load(Core core, std::uint64_t line, bool further = false) {
    return Caches::load(core, line, later(), further);
  }
  std::uint64_t store(Core core, std::uint64_t line, bool further = false) {
    return Caches::store(core, line, later(), further);
  }
  std::uint64_t make(Core core, std::uint64_t line, bool further = false) {
    return Caches::make(core, line, later(), further);
  }
  // When nothing is under way any more.
  std::uint64_t later() { return now += 100'000'000; }
  std::uint64_t now = 0;
};

}  // namespace

TEST_CASE("a line is fetched once, and hit from then on") {
  Cores cores;
  CHECK(cores.load(0, 7) == 100);
  CHECK(cores.load(0, 7) == 1);
  CHECK(cores.store(0, 7) == 1);
  CHECK(cores.load(0, 8, true) == 1000);  // it follows one just asked for
}

TEST_CASE("what another core wrote last is transferred, and then both have it") {
  Cores cores;
  cores.store(0, 7);
  CHECK(cores.load(1, 7) == 10'000);
  CHECK(cores.load(1, 7) == 1);
  CHECK(cores.load(0, 7) == 1);
  CHECK(cores.load(2, 7) == 100'000);
}

TEST_CASE("transfers of lines that follow one another overlap") {
  Cores cores;
  for (std::uint64_t line = 7; line < 9; ++line) cores.store(0, line);
  CHECK(cores.load(1, 7) == 10'000);
  CHECK(cores.load(1, 8, true) == 10'000'000);
  CHECK(cores.store(0, 7) == 10'000);
  CHECK(cores.store(0, 8, true) == 10'000'000);
}

TEST_CASE("a store takes the line from all who share it") {
  Cores cores;
  cores.load(0, 7);
  cores.load(1, 7);
  CHECK(cores.store(1, 7) == 10'000);
  CHECK(cores.store(1, 7) == 1);
  CHECK(cores.load(0, 7) == 10'000);
  CHECK(cores.store(2, 7) == 10'000);
  CHECK(cores.store(0, 7) == 10'000);
}

TEST_CASE("a line that everybody wants goes from core to core, one after the other") {
  Cores cores;
  cores.store(0, 7);
  const std::uint64_t now = cores.later();
  Caches& caches = cores;
  CHECK(caches.store(1, 7, now, false) == 10'000);
  CHECK(caches.store(2, 7, now, false) == 20'000);
  CHECK(caches.store(3, 7, now + 20'000, false) == 10'000);
}

TEST_CASE("a line that is under way is there when it comes, whoever asks") {
  Cores cores;
  const std::uint64_t now = cores.later();
  Caches& caches = cores;
  CHECK(caches.load(0, 7, now, false) == 100);
  CHECK(caches.load(0, 8, now, false) == 100);  // both at a time
  CHECK(caches.load(0, 7, now + 40, false) == 60);
  CHECK(caches.store(0, 8, now + 99, false) == 1);
  CHECK(caches.load(0, 7, now + 100, false) == 1);
  CHECK(caches.load(1, 8, now + 40, false) == 60 + 10'000);  // another gets it after that
}

TEST_CASE("a core has sixteen lines under way") {
  Cores cores;
  const std::uint64_t now = cores.later();
  Caches& caches = cores;
  for (std::uint64_t line = 0; line < 16; ++line) CHECK(caches.load(0, line, now, false) == 100);
  CHECK(caches.load(0, 16, now, false) == 200);
  CHECK(caches.load(1, 17, now, false) == 100);
}

TEST_CASE("a first level holds 48 KiB, a second 2 MiB, and the least recently used goes") {
  Cores cores;
  for (std::uint64_t line = 1; line <= kFirst; ++line) cores.load(0, line);
  CHECK(cores.load(0, 1) == 1);
  cores.load(0, kFirst + 1);  // in the place of the first
  CHECK(cores.load(0, 1) == 10);
  for (std::uint64_t line = kFirst + 2; line <= kSecond; ++line) cores.load(0, line);
  CHECK(cores.load(0, 1) == 10);          // all are still there, and the first is the last used
  cores.load(0, kSecond + 1);             // comes into its set
  CHECK(cores.load(0, 4097) == 100'000);  // which had to give up the one after the first
  cores.load(0, kFirst + 1);
  CHECK(cores.load(0, 1) == 10);
}

TEST_CASE("a third level holds what it is said to, of all cores") {
  Cores cores;
  for (std::uint64_t line = 1; line <= kShared; ++line)
    CHECK(cores.load(static_cast<Caches::Core>(line % 2), line) == 100);
  CHECK(cores.load(0, 3) == 100'000);
  CHECK(cores.load(0, 4, true) == 1'000'000);
  for (std::uint64_t line = 1; line <= kShared; ++line) cores.load(0, kShared + line);
  CHECK(cores.load(1, 5) == 100);
}

TEST_CASE("what was written and has left its core's caches comes from the shared one") {
  Cores cores;
  cores.store(0, 1);
  for (std::uint64_t line = 2; line <= kSecond + 1; ++line) cores.load(0, line);
  CHECK(cores.load(1, 1) == 100'000);
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
    CHECK(cores.make(0, 7, true) == 10'000'000);
  }
  SECTION("unless it has left the caches") {
    cores.make(1, 7);
    for (std::uint64_t line = 8; line <= kSecond + 8; ++line) cores.load(1, line);
    CHECK(cores.make(0, 7) == 1);
  }
}

}  // namespace sp3::test

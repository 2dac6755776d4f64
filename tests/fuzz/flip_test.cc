// Flipped bytes anywhere in a pool file: a typed error, or the data as it was. Homes carry no
// checksums, so inside them a flip may change data, and nothing else may happen.
//
// "As it was" for a pool that was not closed: the last records of a log may have been cut off by
// the crash itself, so a state as of an earlier transaction is accepted there, a mixture never.
#include <cstring>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/fuzz/fuzzed_pool.h"

namespace sp3::test {
namespace {

using State = FuzzedPool::State;
using Verdict = FuzzedPool::Verdict;

struct Tally {
  std::uint64_t mutations = 0;
  std::uint64_t intact = 0;
  std::uint64_t refused = 0;
  std::uint64_t older = 0;
};

enum class Where : std::uint8_t {
  metadata,  // superblocks, directory, log, bitmaps: never wrong
  anywhere,  // homes too: anything but a signal or a hang
  tables,    // headers and chunk tables of ranged objects, at home: the same
};

std::uint64_t pick(const FuzzedPool& pool, Random& random, Where where) {
  while (true) {
    // Half of all flips go to what comes before the slabs: most of the file is slabs.
    const std::uint64_t offset =
        random.below(2) == 0 ? random.below(pool.slabs_offset()) : random.below(pool.size());
    if (where == Where::anywhere || !pool.is_home_byte(offset)) return offset;
  }
}

// A byte that says something: not in a page of zeros, most of the time.
std::uint64_t pick_telling(const FuzzedPool& pool, Random& random, Where where) {
  if (where == Where::tables) return pool.table_bytes()[random.below(pool.table_bytes().size())];
  std::uint64_t offset = 0;
  for (int tries = 0; tries < 20; ++tries) {
    offset = pick(pool, random, where);
    if (pool.image()[offset] != 0) break;
  }
  return offset;
}

// Leads a word of a table to another object, one of the table itself as often as not.
std::string lead_astray(const FuzzedPool& pool, Random& random, std::vector<char>& bytes) {
  const std::uint64_t at = pool.table_bytes()[random.below(pool.table_bytes().size())] & ~7ULL;
  std::uint64_t target = pool.objects()[random.below(pool.objects().size())];
  if (random.below(2) == 0) {
    const std::uint64_t from = pool.table_bytes()[random.below(pool.table_bytes().size())] & ~7ULL;
    std::memcpy(&target, bytes.data() + from, sizeof target);
  }
  std::memcpy(bytes.data() + at, &target, sizeof target);
  return " " + std::to_string(at) + "=" + std::to_string(target);
}

void fuzz(State state, Where where, std::uint64_t mutations, std::uint64_t seed, Tally& tally) {
  const FuzzedPool pool(state, seed);
  REQUIRE(pool.size() != 0);
  std::string why;
  REQUIRE(pool.examine(pool.image(), FuzzedPool::options(), &why) == Verdict::intact);
  Random random(seed);
  for (std::uint64_t i = 0; i < mutations; ++i) {
    std::vector<char> bytes = pool.image();
    std::string flips;
    if (where == Where::tables && random.below(2) == 0) {
      for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
        flips += lead_astray(pool, random, bytes);
      }
    }
    for (std::uint64_t n = random.below(8) == 0 ? 1 + random.below(20) : flips.empty(); n > 0;
         --n) {
      const std::uint64_t at = pick_telling(pool, random, where);
      const auto bits =
          static_cast<char>(random.below(3) == 0 ? 1U << random.below(8) : 1 + random.below(255));
      bytes[at] = static_cast<char>(bytes[at] ^ bits);
      flips += " " + std::to_string(at) + "^" + std::to_string(static_cast<unsigned char>(bits));
    }
    const bool accept_loss = random.below(4) == 0;
    const auto strategy = random.below(2) == 0 ? RecoveryStrategy::stamp : RecoveryStrategy::dag;
    const std::size_t first_change = where == Where::tables ? random.below(8) : 0;
    const Verdict verdict =
        pool.examine(bytes, FuzzedPool::options(strategy, accept_loss), &why, first_change);
    ++tally.mutations;
    tally.intact += verdict == Verdict::intact ? 1 : 0;
    tally.refused += verdict == Verdict::refused ? 1 : 0;
    tally.older += verdict == Verdict::older ? 1 : 0;
    if (where != Where::metadata) continue;
    const bool may_be_older = state != State::clean;
    if (verdict != Verdict::wrong && (verdict != Verdict::older || may_be_older)) continue;
    FAIL_CHECK(
        "seed " << seed << ", state " << static_cast<int>(state) << ", flips at" << flips
                << (accept_loss ? ", accept_loss" : "") << ": "
                << (verdict == Verdict::older ? "transactions of a clean pool are gone" : why));
  }
}

void fuzz_all(std::uint64_t mutations, std::uint64_t seeds, Where where) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (const State state : {State::clean, State::crashed, State::mixed}) {
      // What was never checkpointed has no tables at home.
      if (where == Where::tables && state == State::crashed) continue;
      fuzz(state, where, mutations / (3 * seeds), seed, tally);
    }
  }
  INFO(tally.mutations << " mutations: " << tally.intact << " intact, " << tally.refused
                       << " refused, " << tally.older << " older");
  CHECK(tally.mutations + 3 * seeds >= mutations * (where == Where::tables ? 2 : 3) / 3);
  // Of the tables, only bytes that say something are flipped.
  CHECK((where == Where::tables || tally.intact > 0));
  CHECK(tally.refused > 0);
}

}  // namespace

TEST_CASE("flipped bytes of header, metadata and log are never taken for data") {
  fuzz_all(14'000, 4, Where::metadata);
}

TEST_CASE("flipped bytes anywhere never cause a signal or a hang") {
  fuzz_all(8'000, 4, Where::anywhere);
}

TEST_CASE("flipped bytes in the tables of ranged objects never cause a signal or a hang") {
  fuzz_all(3'000, 2, Where::tables);
}

TEST_CASE("flipped bytes of header, metadata and log, at length", "[.full]") {
  fuzz_all(140'000, 20, Where::metadata);
}

TEST_CASE("flipped bytes anywhere, at length", "[.full]") { fuzz_all(80'000, 20, Where::anywhere); }

TEST_CASE("flipped bytes in the tables of ranged objects, at length", "[.full]") {
  fuzz_all(60'000, 20, Where::tables);
}

}  // namespace sp3::test

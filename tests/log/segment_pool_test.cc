#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>

#include <unistd.h>

#include <catch2/catch.hpp>

#include "log/segment_pool.h"
#include "tests/support/errors.h"

namespace sp3::log {
namespace {

// Takes all of a new pool's segments one by one.
void take_all(SegmentPool& pool) {
  for (std::uint32_t i = 0; i < pool.total(); ++i) REQUIRE(pool.take(1) == i);
}

}  // namespace

TEST_CASE("segments are handed out in turn, and what is given back waits for the next lap") {
  SegmentPool pool(4);
  CHECK(pool.take(1) == 0);
  pool.give_back(0, 1);
  CHECK(pool.take(1) == 1);
  CHECK(pool.take(2) == 2);
  CHECK(pool.used() == 3);
  CHECK(pool.take(1) == 0);
  CHECK(pool.used() == 4);
  CHECK_FALSE(pool.take(1));
  pool.give_back(1, 3);
  CHECK(pool.used() == 1);
}

TEST_CASE("a run of segments may cross where the search begins, but not the end of the log") {
  SegmentPool pool(4);
  take_all(pool);  // the search begins at 0
  pool.give_back(0, 2);
  REQUIRE(pool.take(1) == 0);  // and now at 1
  pool.give_back(0, 1);
  CHECK(pool.take(2) == 0);
  SECTION("the first and the last are no neighbours") {
    pool.give_back(0, 1);
    pool.give_back(3, 1);
    CHECK_FALSE(pool.take(2));
    CHECK(pool.used() == 2);
  }
}

TEST_CASE("smaller requests wait for a larger one until it is served, given up or forgotten") {
  SegmentPool pool(4);
  take_all(pool);
  pool.give_back(0, 1);
  pool.give_back(2, 1);
  REQUIRE_FALSE(pool.take(2));
  CHECK(pool.yields(1));
  CHECK_FALSE(pool.yields(2));
  CHECK_FALSE(pool.take(1));
  SECTION("served") {
    pool.give_back(1, 1);
    REQUIRE(pool.take(2));
    CHECK_FALSE(pool.yields(1));
    CHECK(pool.take(1));
  }
  SECTION("given up") {
    pool.give_up(3);  // somebody else's
    CHECK(pool.yields(1));
    pool.give_up(2);
    CHECK_FALSE(pool.yields(1));
    CHECK(pool.take(1));
  }
  SECTION("asked for again, it has its precedence anew, and at last none") {
    int refusals = 0;
    const auto count = [&] {
      for (refusals = 0; !pool.take(1); ++refusals) REQUIRE(refusals < 10'000);
    };
    for (int i = 0; i < 500; ++i) REQUIRE_FALSE(pool.take(1));
    REQUIRE_FALSE(pool.take(2));
    count();
    CHECK(refusals > 900);
  }
}

TEST_CASE("a stream of large requests keeps out no smaller one") {
  SegmentPool pool(10);
  REQUIRE(pool.take(8) == 0);
  REQUIRE_FALSE(pool.take(4));
  // The large one comes back, and back.
  std::uint32_t passes = 0;
  pool.give_back(0, 8);
  for (; const auto first = pool.take(8); ++passes) {
    REQUIRE(passes < SegmentPool::kMostPasses);
    REQUIRE_FALSE(pool.take(4));
    pool.give_back(*first, 8);
  }
  CHECK(pool.yields(8));
  CHECK_FALSE(pool.yields(4));
  const auto small = pool.take(4);
  REQUIRE(small);
  CHECK_FALSE(pool.take(8));
  CHECK_FALSE(pool.yields(8));
  pool.give_back(*small, 4);
  CHECK(pool.take(8));
}

// Each of the others may be in line before it, and each that is first is passed a few times.
TEST_CASE("whoever asks again and again is passed a bounded number of times") {
  static constexpr std::array<std::uint32_t, 5> kSizes{1, 3, 6, 10, 15};
  constexpr int kMost = kSizes.size() * (SegmentPool::kMostPasses + 1);
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    SegmentPool pool(16);
    struct User {
      std::optional<std::uint32_t> first;
      bool was_refused = false;
      std::array<int, kSizes.size()> passed_by{};
    };
    std::array<User, kSizes.size()> users{};
    std::array<int, kSizes.size()> served{};
    for (int step = 0; step < 5000; ++step) {
      const std::size_t me = random() % users.size();
      User& user = users[me];
      // Who holds some gives them back, and asks again at once.
      if (user.first) pool.give_back(*user.first, kSizes[me]);
      user.first = pool.take(kSizes[me]);
      user.was_refused = !user.first;
      if (!user.first) continue;
      ++served[me];
      user.passed_by = {};
      for (User& other : users) {
        if (other.was_refused) REQUIRE(++other.passed_by[me] <= kMost);
      }
    }
    for (const int times : served) REQUIRE(times > 50);
  }
}

// Two logs would be written to one segment otherwise.
TEST_CASE("segments that nobody has are not given back, nor more taken than there are") {
  constexpr int kAborted = 128 + SIGABRT;
  const auto code_of = [](auto&& act) {
    return test::in_child([&] {
      ::close(STDERR_FILENO);
      SegmentPool pool(4);
      REQUIRE(pool.take(2) == 0);
      act(pool);
      return 0;
    });
  };
  CHECK(code_of([](SegmentPool& pool) { pool.give_back(0, 2); }) == 0);
  CHECK(code_of([](SegmentPool& pool) { pool.give_back(1, 2); }) == kAborted);
  CHECK(code_of([](SegmentPool& pool) { (void)pool.take(0); }) == kAborted);
  CHECK(code_of([](SegmentPool& pool) { (void)pool.take(5); }) == kAborted);
}

}  // namespace sp3::log

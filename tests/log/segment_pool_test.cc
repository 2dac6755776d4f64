#include <catch2/catch.hpp>

#include "log/segment_pool.h"

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

}  // namespace sp3::log

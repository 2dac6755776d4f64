#include "recovery/ahead.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <catch2/catch.hpp>

using namespace sp3::recovery;

TEST_CASE("each item is brought, asked for and acted on once, in order, and in blocks") {
  for (const std::size_t all : {std::size_t{0}, std::size_t{1}, kBlock - 1, kBlock, kBlock + 1,
                                3 * kBlock, 3 * kBlock + 7}) {
    struct Item {
      std::size_t number;
      bool asked;
    };
    std::size_t brought = 0;
    std::size_t asked = 0;
    std::vector<std::size_t> acted;
    bool ended = false;
    run_ahead<Item>(
        [&](Item& item) {
          CHECK_FALSE(ended);
          ended = brought == all;
          if (ended) return false;
          item = {brought++, false};
          return true;
        },
        [&](Item& item) {
          CHECK(item.number == asked++);
          // A block's items are all there before the first of them is looked at.
          CHECK(brought == std::min(all, (item.number / kBlock + 1) * kBlock));
          item.asked = true;
        },
        [&](const Item& item) {
          CHECK(item.asked);
          CHECK(asked == brought);
          acted.push_back(item.number);
        });
    CHECK(ended);
    CHECK(asked == all);
    REQUIRE(acted.size() == all);
    for (std::size_t i = 0; i < all; ++i) CHECK(acted[i] == i);
  }
}

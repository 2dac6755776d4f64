#include "recovery/bit_set.h"

#include <thread>

#include <catch2/catch.hpp>

using namespace sp3::recovery;

TEST_CASE("A set of bits has what was added, by whatever thread") {
  constexpr std::size_t kEnd = 100'000;
  BitSet set(kEnd);
  const auto add_every_third = [&](std::size_t from) {
    for (std::size_t number = from; number < kEnd; number += 3) set.add(number);
  };
  std::thread other(add_every_third, 1);  // other bits of the same words
  add_every_third(0);
  other.join();
  for (std::size_t number = 0; number < kEnd; ++number) {
    if (set.has(number) != (number % 3 != 2)) FAIL(number);
  }
  CHECK_FALSE(BitSet(0).has(0));
}

#include "recovery/node_set.h"

#include <thread>

#include <catch2/catch.hpp>

using namespace sp3::recovery;

TEST_CASE("A set of nodes has what was added, by whatever thread") {
  constexpr Node kEnd = 100'000;
  NodeSet set(kEnd);
  const auto add_every_third = [&](Node from) {
    for (Node node = from; node < kEnd; node += 3) set.add(node);
  };
  std::thread other(add_every_third, 1);  // other bits of the same words
  add_every_third(0);
  other.join();
  for (Node node = 0; node < kEnd; ++node) {
    if (set.has(node) != (node % 3 != 2)) FAIL(node);
  }
  CHECK_FALSE(NodeSet(0).has(0));
}

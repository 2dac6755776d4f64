// What tests that forge at random share: the bytes by which a forgery is chosen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "tests/support/pools.h"

namespace sp3::test {

// How many bytes a forgery is chosen by, besides five: what is left of them when the pool is
// made is for what is done with it.
struct Lengths {
  std::uint64_t usual;
  std::uint64_t longest;  // one in four is up to this
};

// Calls try_out(bytes) so often, with bytes by the seed. What it returns has a `fault`, which fails
// the test if there is one.
template <class F>
void forge_at_random(std::uint64_t forgeries, std::uint64_t seed, Lengths lengths, F&& try_out) {
  Random random(seed);
  for (std::uint64_t i = 0; i < forgeries; ++i) {
    std::vector<std::uint8_t> bytes(
        5 + random.below(random.below(4) == 0 ? lengths.longest : lengths.usual));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const std::string fault = try_out(bytes).fault;
    if (!fault.empty()) FAIL_CHECK(fmt::format("{:02x}: {}", fmt::join(bytes, ""), fault));
  }
}

}  // namespace sp3::test

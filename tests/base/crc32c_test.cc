#include "base/crc32c.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <random>
#include <vector>

#include "base/align.h"

namespace {

using sp3::base::crc32c;

// The definition, bit by bit.
std::uint32_t reference(std::uint32_t seed, const unsigned char* data, std::size_t bytes) {
  std::uint32_t state = ~seed;
  for (std::size_t i = 0; i < bytes; ++i) {
    state ^= data[i];
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1U) != 0 ? 0x82F63B78U : 0U);
  }
  return ~state;
}

std::vector<unsigned char> random_bytes(std::size_t count) {
  std::mt19937 random(20240607);
  std::vector<unsigned char> bytes(count);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
  return bytes;
}

}  // namespace

TEST_CASE("CRC-32C of the standard check string is E3069283") {
  CHECK(crc32c(0, "123456789", 9) == 0xE3069283U);
}

TEST_CASE("CRC-32C agrees with the vectors of RFC 3720") {
  unsigned char bytes[32];
  std::memset(bytes, 0, sizeof bytes);
  CHECK(crc32c(0, bytes, sizeof bytes) == 0x8A9136AAU);
  std::memset(bytes, 0xFF, sizeof bytes);
  CHECK(crc32c(0, bytes, sizeof bytes) == 0x62A8AB43U);
  for (unsigned i = 0; i < 32; ++i) bytes[i] = static_cast<unsigned char>(i);
  CHECK(crc32c(0, bytes, sizeof bytes) == 0x46DD794EU);
  for (unsigned i = 0; i < 32; ++i) bytes[i] = static_cast<unsigned char>(31 - i);
  CHECK(crc32c(0, bytes, sizeof bytes) == 0x113FDB5CU);
}

TEST_CASE("CRC-32C of nothing is the seed") {
  CHECK(crc32c(0, nullptr, 0) == 0);
  CHECK(crc32c(0x12345678, nullptr, 0) == 0x12345678);
}

TEST_CASE("CRC-32C agrees with its definition for every small size, alignment and seed") {
  const auto bytes = random_bytes(1100);
  const auto compare = [&](std::size_t size, std::size_t shift) {
    const auto seed = static_cast<std::uint32_t>(size * 2654435761U);
    INFO("size " << size << ", shift " << shift);
    REQUIRE(crc32c(seed, bytes.data() + shift, size) ==
            reference(seed, bytes.data() + shift, size));
  };
  for (std::size_t size = 0; size <= 1024; ++size) compare(size, size % 9);
  // How many bytes there are must not depend on where a word begins: fewer than the half of one,
  // too, that is taken first in the middle of a word.
  for (std::size_t size = 0; size <= 128; ++size) {
    for (std::size_t shift = 0; shift < 8; ++shift) compare(size, shift);
  }
}

TEST_CASE("CRC-32C of two parts chained equals that of the whole") {
  const auto bytes = random_bytes(5000);
  const std::uint32_t whole = crc32c(7, bytes.data(), bytes.size());
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 37) {
    INFO("cut at " << cut);
    const std::uint32_t head = crc32c(7, bytes.data(), cut);
    REQUIRE(crc32c(head, bytes.data() + cut, bytes.size() - cut) == whole);
  }
}

TEST_CASE("rounding goes to multiples of the unit and leaves multiples alone") {
  using namespace sp3::base;
  CHECK(round_up(0, 64) == 0);
  CHECK(round_up(1, 64) == 64);
  CHECK(round_up(64, 64) == 64);
  CHECK(round_down(127, 64) == 64);
  CHECK(is_power_of_two(4096));
  CHECK_FALSE(is_power_of_two(0));
  CHECK_FALSE(is_power_of_two(96));
}

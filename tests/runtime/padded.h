// Padded: an object with padding, which must not bring to a file what was in memory before.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include <catch2/catch.hpp>

namespace sp3::test {

struct Padded {
  char tag = 0;
  std::uint64_t number = 0;
  char end = 0;

  // With 0xEE for padding.
  static Padded dirty() {
    Padded padded;
    std::memset(static_cast<void*>(&padded), 0xEE, sizeof padded);
    padded.tag = 'a';
    padded.number = 5;
    padded.end = 'z';
    return padded;
  }
};

// Of a dirty one that was stored at `home`.
inline void check_that_padding_is_zero(const char* home) {
  CHECK(home[0] == 'a');
  CHECK(home[16] == 'z');
  CHECK(std::string(home + 1, 7) == std::string(7, '\0'));
  CHECK(std::string(home + 17, 7) == std::string(7, '\0'));
}

}  // namespace sp3::test

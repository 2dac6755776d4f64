// What the refusal of a geometry says that is wanted.
#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include <catch2/catch.hpp>

#include "pool/layout.h"
#include "tests/pool/support.h"

namespace sp3::pool {
namespace {

using test::error_of;

struct Refused {
  std::string option;
  std::string wanted;
  std::uint64_t found = 0;
};

std::optional<Refused> refused(std::uint64_t size, const Geometry& geometry) {
  const auto error = error_of([&] { return plan_layout(size, geometry); });
  if (!error) return std::nullopt;
  const std::string what = error->what();
  const std::size_t begin = std::string("impossible ").size();
  return Refused{what.substr(begin, what.find(':') - begin), error->facts().wanted,
                 std::stoull(error->facts().found)};
}

// The number behind that word, if it is in the text.
std::optional<std::uint64_t> number_behind(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return std::nullopt;
  std::uint64_t number = 0;
  const char* const begin = text.data() + at + word.size();
  const auto result = std::from_chars(begin, text.data() + text.size(), number);
  return result.ec == std::errc() ? std::optional(number) : std::nullopt;
}

void set(Geometry& geometry, const std::string& option, std::uint64_t value) {
  if (option == "log_size") geometry.log_size = value;
  if (option == "segment_size") geometry.segment_size = static_cast<std::uint32_t>(value);
  if (option == "slab_size") geometry.slab_size = static_cast<std::uint32_t>(value);
  if (option == "max_sessions") geometry.max_sessions = static_cast<std::uint32_t>(value);
}

// Options that contradict each other may take several refusals, none of which takes back another.
TEST_CASE("who does what refusals want has a pool in the end") {
  std::mt19937_64 random(20261129);
  const auto power = [&random](unsigned low, unsigned high) {
    return std::uint64_t{1} << (low + random() % (high - low + 1));
  };
  int followed = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t size = kMinPoolSize + random() % power(1, 44);
    Geometry geometry;
    if (random() % 2 != 0) geometry.log_size = random() % power(12, 47);
    if (random() % 2 != 0) geometry.segment_size = static_cast<std::uint32_t>(power(11, 31));
    if (random() % 2 != 0) geometry.slab_size = static_cast<std::uint32_t>(power(11, 31));
    if (random() % 2 != 0) geometry.max_sessions = static_cast<std::uint32_t>(random() % 16384);
    int refusals = 0;
    while (const auto told = refused(size, geometry)) {
      CAPTURE(size, geometry.log_size, geometry.segment_size, geometry.slab_size,
              geometry.max_sessions, told->option, told->wanted, told->found);
      REQUIRE(++refusals <= 6);
      std::uint64_t value = 0;
      if (told->wanted.starts_with("less than the pool")) {
        value = size - 1;
      } else if (const auto most = number_behind(told->wanted, "at most ")) {
        REQUIRE(told->found > *most);
        value = *most;
      } else {
        // "at least 2 segments, 8192 bytes"
        auto least = number_behind(told->wanted, "segments, ");
        if (!least) least = number_behind(told->wanted, "at least ");
        REQUIRE(least);
        REQUIRE((told->found < *least || !std::has_single_bit(told->found)));
        value = *least;
      }
      set(geometry, told->option, value);
      ++followed;
    }
  }
  CHECK(followed > 1000);
}

}  // namespace
}  // namespace sp3::pool

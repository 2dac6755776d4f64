#include "emu/sim/streamed_lines.h"

#include <catch2/catch.hpp>

using sp3::emu::sim::StreamedLines;

TEST_CASE("What a core has streamed and not fenced is not seen by others") {
  StreamedLines streamed;
  CHECK(streamed.are_seen_by(1, 0, 4096));
  streamed.add(0, 128, 128);

  SECTION("by the bytes of its lines, and no others") {
    CHECK(streamed.are_seen_by(1, 0, 128));
    CHECK_FALSE(streamed.are_seen_by(1, 0, 129));
    CHECK_FALSE(streamed.are_seen_by(1, 255, 1));
    CHECK(streamed.are_seen_by(1, 256, 64));
    CHECK(streamed.are_seen_by(1, 128, 0));
  }
  SECTION("but by itself") { CHECK(streamed.are_seen_by(0, 128, 128)); }
  SECTION("until its own fence") {
    streamed.add(1, 512, 64);
    streamed.fence(1);
    CHECK_FALSE(streamed.are_seen_by(1, 128, 64));
    CHECK(streamed.are_seen_by(0, 512, 64));
    streamed.fence(0);
    CHECK(streamed.are_seen_by(1, 128, 64));
  }
}

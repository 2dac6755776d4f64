#include "tools/crash/watch.h"

#include <unistd.h>
#include <catch2/catch.hpp>

using namespace sp3::tools::crash;
using namespace std::chrono_literals;
using Verdict = Watch::Verdict;

namespace {

constexpr auto kDeadline = 10s;
const Watch::Clock::time_point kStart{1000s};

}  // namespace

TEST_CASE("a victim that says nothing before it runs hangs at the deadline") {
  Watch watch(kDeadline, kStart);
  CHECK(watch.until() == kStart + kDeadline);
  watch.heard(kStart + 4s);
  CHECK(watch.until() == kStart + 4s + kDeadline);
  CHECK(watch.judge(kStart + 14s) == Verdict::hangs);
}

TEST_CASE("a victim whose threads go on is killed when its time is over") {
  Watch watch(kDeadline, kStart);
  watch.runs(2, 200ms, kStart);
  CHECK(watch.until() == kStart + 200ms);
  watch.heard_of(0, kStart + 160ms);
  watch.heard_of(1, kStart + 199ms);
  CHECK(watch.judge(kStart + 200ms) == Verdict::kill);
}

TEST_CASE("a victim that had no time to fall silent is killed without having said anything") {
  Watch watch(kDeadline, kStart);
  watch.runs(2, 5ms, kStart);
  CHECK(watch.judge(kStart + 5ms) == Verdict::kill);
}

TEST_CASE("a silent thread is waited for, and its victim killed when it has spoken") {
  Watch watch(kDeadline, kStart);
  watch.runs(3, 200ms, kStart);
  watch.heard_of(1, kStart + 190ms);
  CHECK(watch.judge(kStart + 200ms) == Verdict::wait);
  CHECK(watch.silent_threads() == std::vector<unsigned>{0, 2});
  CHECK(watch.until() == kStart + 200ms + kDeadline);
  watch.heard_of(2, kStart + 3s);
  watch.heard_of(1, kStart + 3s);
  watch.heard(kStart + 3s);  // of others, which does not speak for the silent one
  CHECK(watch.until() == kStart + 200ms + kDeadline);
  SECTION("it speaks") {
    watch.heard_of(0, kStart + 4s);
    CHECK(watch.until() == kStart + 4s);
    CHECK(watch.judge(kStart + 4s) == Verdict::kill);
  }
  SECTION("it does not") {
    CHECK(watch.silent_threads() == std::vector<unsigned>{0});
    CHECK(watch.judge(kStart + 11s) == Verdict::hangs);
  }
}

TEST_CASE("who does not go away when it is killed is killed again") {
  Watch watch(kDeadline, kStart);
  watch.is_done(kStart + 1s);
  CHECK(watch.until() == kStart + 1s);
  CHECK(watch.judge(kStart + 1s) == Verdict::kill);
  watch.killed(kStart + 1s);
  CHECK(watch.until() == kStart + 1s + kDeadline);
  CHECK(watch.judge(kStart + 12s) == Verdict::kill);
}

TEST_CASE("the state of a process names its threads and what they do") {
  CHECK_THAT(process_state(::getpid()), Catch::Matches("1 threads: 1 R.*"));
}

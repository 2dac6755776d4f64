// The background flusher: groups get their time, and synchronous transactions are left alone.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/runtime/one_cell.h"

namespace sp3::test {
namespace {

using Clock = std::chrono::steady_clock;

// How often other threads of this process than this one have gone to sleep.
std::uint64_t sleeps_of_others() {
  constexpr const char* kKey = "voluntary_ctxt_switches:";
  std::uint64_t sleeps = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::gettid())) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind(kKey, 0) == 0) sleeps += std::stoull(line.substr(std::string(kKey).size()));
    }
  }
  return sleeps;
}

}  // namespace

TEST_CASE("the background flusher makes a lone asynchronous transaction durable") {
  Options options = quiet_options();  // no checkpoint does it
  options.async.group_microseconds = 200;
  options.watermark_ms = 20'000;  // nor does a watermark
  options.long_transaction_ms = 20'000;
  OneCell p(options);
  Ticket ticket = p.set_async(9);
  for (int i = 0; i < 20'000 && !ticket.ready(); ++i) ::usleep(100);
  CHECK(ticket.ready());
  ticket.wait();
}

TEST_CASE("an asynchronous group has its time, however often the flusher looks for other things") {
  Options options = quiet_options();
  options.async.group_microseconds = 400'000;
  options.watermark_ms = 5;
  OneCell p(options);
  ::usleep(30'000);  // in the midst of looks
  const auto sealed = Clock::now();
  Ticket ticket = p.set_async(9);
  while (Clock::now() - sealed < std::chrono::milliseconds(350)) {
    const bool ready = ticket.ready();
    if (Clock::now() - sealed < std::chrono::milliseconds(400)) REQUIRE_FALSE(ready);
    ::usleep(1000);
  }
  for (int i = 0; i < 20'000 && !ticket.ready(); ++i) ::usleep(1000);
  CHECK(ticket.ready());
  ticket.wait();
}

// Whoever wakes up takes a core from a transaction. A slow machine makes it wake up less often.
TEST_CASE("the flusher sleeps while all transactions are synchronous, whatever was before") {
  constexpr std::uint64_t kTickMs = 20;
  Options options = quiet_options();
  options.async.group_microseconds = 200;
  options.watermark_ms = kTickMs;
  options.latency = {.nanoseconds = 50'000};  // so that something is in flight at nearly all times
  OneCell p(options);
  p.set_async(1).wait();
  const auto run_for = [&](std::chrono::milliseconds time) {
    const auto end = Clock::now() + time;
    while (Clock::now() < end) p.set(2);
  };
  run_for(std::chrono::milliseconds(100));  // until it looks for groups no more
  const auto begun = Clock::now();
  const std::uint64_t before = sleeps_of_others();
  run_for(std::chrono::milliseconds(500));
  const std::uint64_t sleeps = sleeps_of_others() - before;
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun);
  // With a look for groups every 200 microseconds it would be a hundred for each tick.
  CHECK(sleeps <= 10 * (static_cast<std::uint64_t>(took.count()) / kTickMs + 1));
}

}  // namespace sp3::test

#include "emu/executor.h"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/errors.h"

using sp3::emu::Executor;

namespace {
constexpr std::uint32_t kThreadCounts[] = {1, 2, 4};
}

TEST_CASE("an executor of zero threads has at least one") {
  CHECK(Executor(0).threads() >= 1);
  CHECK(Executor(3).threads() == 3);
}

TEST_CASE("parallel_for calls the body once for every index") {
  for (const auto threads : kThreadCounts) {
    Executor executor(threads);
    for (const std::size_t count : {0U, 1U, 2U, 1000U}) {
      std::vector<std::atomic<int>> calls(count);
      executor.parallel_for(count, [&](std::size_t i) { ++calls[i]; });
      for (const auto& n : calls) REQUIRE(n == 1);
    }
  }
}

TEST_CASE("parallel_for rethrows what a body throws") {
  for (const auto threads : kThreadCounts) {
    Executor executor(threads);
    const auto body = [](std::size_t i) {
      if (i == 57) throw std::runtime_error("57");
    };
    CHECK_THROWS_WITH(executor.parallel_for(100, body), "57");
    std::atomic<int> after{0};
    executor.parallel_for(10, [&](std::size_t) { ++after; });
    CHECK(after == 10);
  }
}

// Its locks may have been held when the process forked, and its workers are not there.
TEST_CASE("in a child of a process that has used one an executor runs by itself") {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    Executor executor(2);
    while (!stop) executor.parallel_for(64, [](std::size_t) {});
  });
  Executor(2).parallel_for(2, [](std::size_t) {});
  int failed = 0;
  for (int child = 0; child < 100; ++child) {
    const int code = sp3::test::in_child(
        [] {
          Executor executor(4);
          std::size_t calls = 0;
          executor.parallel_for(1000, [&](std::size_t) { ++calls; });
          return executor.threads() == 1 && calls == 1000 ? 0 : 1;
        },
        10);
    if (code != 0) ++failed;
  }
  stop = true;
  busy.join();
  CHECK(failed == 0);
}

TEST_CASE("parallel_feed visits every item of a graph after its predecessors") {
  // Node n precedes 2n and 2n + 1; a grid edge from n - 1 makes most nodes wait for two.
  constexpr std::uint32_t kNodes = 2000;
  for (const auto threads : kThreadCounts) {
    Executor executor(threads);
    std::vector<std::atomic<int>> missing(kNodes);
    std::vector<std::atomic<int>> visits(kNodes);
    for (std::uint32_t n = 2; n < kNodes; ++n) missing[n] = n > 2 && n % 2 == 1 ? 2 : 1;
    const std::uint32_t root = 1;
    std::atomic<int> early{0};
    executor.parallel_feed(&root, 1,
                           [&](std::uint32_t n, const std::function<void(std::uint32_t)>& ready) {
                             if (missing[n] != 0) ++early;
                             ++visits[n];
                             const auto satisfied = [&](std::uint32_t next) {
                               if (next < kNodes && --missing[next] == 0) ready(next);
                             };
                             satisfied(2 * n);
                             satisfied(2 * n + 1);
                             if (n % 2 == 0 && n >= 2) satisfied(n + 1);
                           });
    CHECK(early == 0);
    for (std::uint32_t n = 1; n < kNodes; ++n) REQUIRE(visits[n] == 1);
  }
}

TEST_CASE("parallel_feed rethrows what a body throws, and accepts no items") {
  for (const auto threads : kThreadCounts) {
    Executor executor(threads);
    const std::uint32_t items[] = {1, 2, 3};
    CHECK_THROWS_WITH(executor.parallel_feed(
                          items, 3,
                          [](std::uint32_t item, const std::function<void(std::uint32_t)>& ready) {
                            if (item == 9) throw std::runtime_error("nine");
                            if (item == 3) ready(9);
                          }),
                      "nine");
    executor.parallel_feed(items, 0, [](std::uint32_t, const std::function<void(std::uint32_t)>&) {
      throw std::runtime_error("called");
    });
  }
}

#include "emu/executor.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/errors.h"

using sp3::emu::Executor;

namespace {
constexpr std::uint32_t kThreadCounts[] = {1, 2, 4};
}

TEST_CASE("an executor of zero threads has one for each core") {
  CHECK(Executor(0).threads() == std::max(1U, std::thread::hardware_concurrency()));
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

TEST_CASE("the threads of an executor take no signals of the process, and the caller does again") {
  const auto takes_signals = [] {
    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    return ::sigismember(&blocked, SIGTERM) == 0 || ::sigismember(&blocked, SIGALRM) == 0;
  };
  const auto caller = std::this_thread::get_id();
  std::atomic<int> taking{0};
  const auto look = [&] {
    if (std::this_thread::get_id() != caller && takes_signals()) ++taking;
  };
  Executor executor(4);
  executor.parallel_for(1000, [&](std::size_t) { look(); });
  const std::vector<std::uint32_t> items(1000, 7);
  executor.parallel_feed(items.data(), items.size(), [&](std::uint32_t, const auto&) { look(); });
  CHECK(taking == 0);
  CHECK(takes_signals());
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

// Locks of oneTBB may have been held when the process forked.
TEST_CASE("in a child of a process that has used one an executor runs by itself") {
  std::atomic<bool> stop{false};
  const std::vector<std::uint32_t> items(64, 7);
  const auto feed = [&](Executor& executor) {
    std::atomic<std::size_t> calls{0};
    executor.parallel_feed(items.data(), items.size(),
                           [&](std::uint32_t, const auto&) { ++calls; });
    return calls.load();
  };
  std::thread busy([&] {
    Executor executor(2);
    while (!stop) feed(executor);
  });
  Executor first(2);
  feed(first);
  int failed = 0;
  for (int child = 0; child < 100; ++child) {
    const int code = sp3::test::in_child(
        [&] {
          Executor executor(4);
          std::atomic<std::size_t> calls{0};
          executor.parallel_for(1000, [&](std::size_t) { ++calls; });
          const bool all = calls == 1000 && feed(executor) == items.size();
          return executor.threads() == 1 && all ? 0 : 1;
        },
        10);
    if (code != 0) ++failed;
  }
  stop = true;
  busy.join();
  CHECK(failed == 0);
}

#ifndef __SANITIZE_THREAD__  // which starts none in a child
// As where a container may have few processes.
TEST_CASE("where no thread can be started parallel_for is done by the caller") {
  CHECK(sp3::test::in_child([] {
          // Not for root, to whom the limit does not apply.
          if (::geteuid() == 0 && ::setuid(65534) != 0) return 0;
          const rlimit none{0, 0};
          if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 1;
          Executor executor(4);
          std::atomic<std::size_t> calls{0};
          executor.parallel_for(1000, [&](std::size_t) { ++calls; });
          return calls == 1000 ? 0 : 2;
        }) == 0);
}

TEST_CASE("where too few threads can be started parallel_feed is done by those there are") {
  for (const rlim_t threads : {0U, 2U}) {
    CHECK(sp3::test::in_child([&] {
            if (::geteuid() == 0 && ::setuid(65534) != 0) return 0;
            const rlimit few{threads, threads};
            if (::setrlimit(RLIMIT_NPROC, &few) != 0) return 1;
            Executor executor(4);
            const std::vector<std::uint32_t> items(64, 7);
            std::atomic<std::size_t> calls{0};
            executor.parallel_feed(items.data(), items.size(),
                                   [&](std::uint32_t, const auto&) { ++calls; });
            return calls == items.size() ? 0 : 2;
          }) == 0);
  }
}
#endif

// oneTBB's own would stay, and one that starts another where none can be had ends the process.
TEST_CASE("the threads of a graph walk are gone when it is done") {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  std::thread([] {}).join();  // ThreadSanitizer starts one of its own beside the first
  const auto before = threads();
  Executor executor(4);
  const std::vector<std::uint32_t> items(64, 7);
  std::atomic<std::size_t> calls{0};
  executor.parallel_feed(items.data(), items.size(), [&](std::uint32_t, const auto& ready) {
    if (calls++ < 1000) ready(7);
  });
  CHECK(calls == 1064);
  // A thread is listed for a moment after it was joined.
  for (int looks = 0; looks < 5000 && threads() > before; ++looks) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(threads() <= before);
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

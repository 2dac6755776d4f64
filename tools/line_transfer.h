// What it takes to hand cache lines from one core to another: two threads do so, to and fro.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include <immintrin.h>

#include "base/align.h"
#include "emu/clock.h"
#include "tools/micro.h"

namespace sp3::tools {

// Until the word is `wanted` or `other`; which. Offers the core now and then, since the other thread
// may have no other.
inline std::uint64_t wait_for_turn(const std::atomic<std::uint64_t>& turn, std::uint64_t wanted,
                                   std::uint64_t other) {
  constexpr unsigned kLooksBeforeOffer = 1024;
  for (unsigned looks = 1;; ++looks) {
    const std::uint64_t found = turn.load(std::memory_order_acquire);
    if (found == wanted || found == other) return found;
    if (looks % kLooksBeforeOffer == 0) {
      std::this_thread::yield();
    } else {
      _mm_pause();
    }
  }
}

// Hands a block of lines over, there and back, in bursts so short that in most of them neither
// thread loses its core. Who has its turn reads and writes all of the block, then gives the turn to
// the other by its first line. Returns the nanoseconds of one way in each burst, in ascending order:
// of `bursts`, or fewer, but one at least, once they have taken more than `most_ns` together.
// Errors: std::system_error without a second thread.
template <std::size_t kLines>
std::vector<double> line_transfers_ns(unsigned bursts,
                                      double most_ns = std::numeric_limits<double>::infinity()) {
  constexpr std::uint64_t kRounds = 50;
  constexpr std::uint64_t kOver = ~std::uint64_t{0};
  struct alignas(base::kCacheLine) SharedLine {
    std::atomic<std::uint64_t> word{0};
  };
  std::array<SharedLine, kLines> block;
  std::atomic<std::uint64_t>& turn = block[0].word;
  // relaxed: the turn orders them.
  const auto use_the_rest = [&block] {
    for (std::size_t line = 1; line < kLines; ++line) {
      std::atomic<std::uint64_t>& word = block[line].word;
      word.store(word.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  };
  std::vector<double> ways;
  ways.reserve(bursts);
  std::thread other([&] {
    for (std::uint64_t i = 0; wait_for_turn(turn, 2 * i + 1, kOver) != kOver; ++i) {
      use_the_rest();
      turn.store(2 * i + 2, std::memory_order_release);
    }
  });
  const std::uint64_t start = emu::ticks();
  std::uint64_t i = 0;
  do {
    ways.push_back(ns_each(kRounds,
                           [&] {
                             use_the_rest();
                             turn.store(2 * i + 1, std::memory_order_release);
                             wait_for_turn(turn, 2 * i + 2, kOver);
                             ++i;
                           }) /
                   2);
  } while (ways.size() < bursts && emu::nanoseconds_from_ticks(emu::ticks() - start) <= most_ns);
  turn.store(kOver, std::memory_order_release);
  other.join();
  std::ranges::sort(ways);
  return ways;
}

}  // namespace sp3::tools

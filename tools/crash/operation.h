// What the crash test's threads do, transaction by transaction.
//
// The operation of a thread's n-th transaction is a function of the run's seed, so the oracle knows
// what every transaction meant to do, reported or not. What a transaction met (the versions it
// wrote or read, the value it dequeued) is its Outcome: it is reported through the pipe when the
// transaction is acknowledged, and kept in the thread's journal in the pool, written by the
// transaction itself, for those that were not.
#pragma once

#include <algorithm>
#include <cstdint>

#include "workloads/rng.h"
#include "workloads/workload.h"

namespace sp3::tools::crash {

using workloads::WorkloadKind;

inline constexpr unsigned kMaxThreads = 8;
inline constexpr unsigned kJournalLength = 64;  // outcomes a thread's journal remembers
inline constexpr unsigned kMaxWindow = 48;      // unacknowledged transactions of one thread

// Names a transaction for good: thread and position in the thread's program. 0: the initial state.
using Tag = std::uint64_t;
constexpr Tag make_tag(unsigned thread, std::uint64_t sequence) {
  return static_cast<Tag>(thread + 1) << 48 | sequence;
}
constexpr unsigned thread_of(Tag tag) { return static_cast<unsigned>(tag >> 48) - 1; }
constexpr std::uint64_t sequence_of(Tag tag) { return tag & ((Tag{1} << 48) - 1); }

enum class Action : std::uint8_t { swap, enqueue, dequeue, insert, erase, search };

struct Step {
  Action action = Action::swap;
  std::uint64_t first = 0;   // an index or key
  std::uint64_t second = 0;  // swap: the other index, never the same
};

struct Plan {
  WorkloadKind workload = WorkloadKind::sps;
  std::uint64_t entries = 256;
  unsigned threads = 2;
  std::uint64_t seed = 1;

  // What transaction `sequence` (from 1) of `thread` does.
  [[nodiscard]] Step step(unsigned thread, std::uint64_t sequence) const {
    workloads::Rng rng(seed ^ (static_cast<std::uint64_t>(thread + 1) << 56), sequence);
    // The smaller of two draws: low indices are hot, so that threads meet.
    const auto skewed = [&] { return std::min(rng.below(entries), rng.below(entries)); };
    switch (workload) {
      case WorkloadKind::sps:
      case WorkloadKind::ranges: {
        const std::uint64_t first = skewed();
        const std::uint64_t distance = 1 + rng.below(entries - 1);
        return {Action::swap, first, (first + distance) % entries};
      }
      case WorkloadKind::queue:
        // Long stretches of growing and of shrinking: the queue is often empty, and often is not.
        return {
            rng.below(10) < (sequence / 512 % 2 == 0 ? 6U : 4U) ? Action::enqueue : Action::dequeue,
            0, 0};
      case WorkloadKind::hashtable:
      case WorkloadKind::rbtree:
      case WorkloadKind::bptree:
      case WorkloadKind::bank:  // refused by the command, as the next
      case WorkloadKind::tpcc:
        break;
    }
    const std::uint64_t kind = rng.below(10);
    const Action action = kind < 4 ? Action::insert : kind < 7 ? Action::erase : Action::search;
    return {action, skewed(), 0};
  }
};

// What one transaction met. Versions count the writes to an array slot or a key, from 0.
//   swap             the versions written to the first and the second slot
//   insert, erase    the version written to the key
//   search           the version read
//   dequeue          the tag of the value, kNothing if there was none
struct Outcome {
  std::uint64_t sequence = 0;
  std::uint64_t a = 0;
  std::uint64_t b = 0;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};
inline constexpr std::uint64_t kNothing = ~std::uint64_t{0};

}  // namespace sp3::tools::crash

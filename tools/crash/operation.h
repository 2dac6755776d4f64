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

enum class Action : std::uint8_t { swap, transfer, enqueue, dequeue, insert, erase, search };

struct Step {
  Action action = Action::swap;
  std::uint64_t first = 0;   // an index or key
  std::uint64_t second = 0;  // swap, transfer: the other index, never the same
  std::uint64_t amount = 0;  // transfer: what moves from the first to the second, if it is there
};

// What an account holds at first: little, so that many a transfer is refused.
inline constexpr std::uint64_t kFirstBalance = 50;

struct Plan {
  WorkloadKind workload = WorkloadKind::sps;
  std::uint64_t entries = 256;
  unsigned threads = 2;
  std::uint64_t seed = 1;

  // What a cell holds before any transaction: an element of the permutation, a balance, no key.
  [[nodiscard]] std::uint64_t first_content(std::uint64_t index) const {
    if (workload == WorkloadKind::bank) return kFirstBalance;
    return workload == WorkloadKind::sps || workload == WorkloadKind::ranges ? index : 0;
  }

  // What transaction `sequence` (from 1) of `thread` does.
  [[nodiscard]] Step step(unsigned thread, std::uint64_t sequence) const {
    workloads::Rng rng(seed ^ (static_cast<std::uint64_t>(thread + 1) << 56), sequence);
    // The smaller of two draws: low indices are hot, so that threads meet.
    const auto skewed = [&] { return std::min(rng.below(entries), rng.below(entries)); };
    switch (workload) {
      case WorkloadKind::sps:
      case WorkloadKind::ranges:
      case WorkloadKind::bank: {
        const std::uint64_t first = skewed();
        const std::uint64_t second = (first + 1 + rng.below(entries - 1)) % entries;
        if (workload != WorkloadKind::bank) return {Action::swap, first, second};
        const std::uint64_t amount = 1 + rng.below(2 * kFirstBalance);
        // Either way, else the hot ones would soon have nothing left.
        if (rng.below(2) == 0) return {Action::transfer, first, second, amount};
        return {Action::transfer, second, first, amount};
      }
      case WorkloadKind::queue:
        // Long stretches of growing and of shrinking: the queue is often empty, and often is not.
        return {
            rng.below(10) < (sequence / 512 % 2 == 0 ? 6U : 4U) ? Action::enqueue : Action::dequeue,
            0, 0, 0};
      case WorkloadKind::hashtable:
      case WorkloadKind::rbtree:
      case WorkloadKind::bptree:
      case WorkloadKind::tpcc:  // refused by the command
        break;
    }
    const std::uint64_t kind = rng.below(10);
    const Action action = kind < 4 ? Action::insert : kind < 7 ? Action::erase : Action::search;
    return {action, skewed(), 0, 0};
  }
};

// What one transaction met. Versions count the writes to an array slot or a key, from 0.
//   swap             the versions written to the first and the second slot
//   transfer         the same; refused for want of cover: the version read of the first, kNothing
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

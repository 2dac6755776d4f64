// Bank: the workload of the crash tests. Every thread moves money between shared accounts, counts
// its transactions, remembers how far it has seen the others, and keeps a queue of its last few
// transactions in objects of changing types. What is found after a crash tells exactly which
// transactions of each thread are there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/support/pools.h"

namespace sp3::test {

inline constexpr std::size_t kBankThreads = 3;
inline constexpr std::size_t kAccounts = 6;
inline constexpr std::uint64_t kQueue = 6;      // nodes that a thread keeps
inline constexpr std::uint64_t kSameType = 40;  // transactions before nodes change their type

struct BankAccount {
  std::int64_t balance = 0;
};

// Of one thread: what it has done.
struct BankWitness {
  std::uint64_t sequence = 0;                      // transactions so far
  std::array<std::uint64_t, kBankThreads> seen{};  // others' sequences as it last read them
  std::array<std::uint64_t, kQueue> nodes{};       // offsets, by sequence % kQueue
};

template <std::size_t kBytes>
struct BankNode {
  std::uint64_t thread = 0;
  std::uint64_t sequence = 0;
  std::array<std::uint64_t, kBytes / 8> filler{};  // all equal to sequence
};

struct BankDirectory {
  std::array<Ptr<BankAccount>, kAccounts> accounts{};
  std::array<Ptr<BankWitness>, kBankThreads> witnesses{};
};

// What a process that died had been told, and had begun.
struct BankProgress {
  std::array<std::uint64_t, kBankThreads> acknowledged{};
};

void make_bank(Pool& pool);

// Runs transactions on `threads` threads until each has done `transactions` more, and calls
// acknowledged(thread, sequence) when one is durable.
void run_bank(Pool& pool, int threads, std::uint64_t transactions, bool async, std::uint64_t seed,
              const std::function<void(std::size_t, std::uint64_t)>& acknowledged);

// The most transactions of a thread that can be there without having been acknowledged.
std::uint64_t most_in_flight(bool async);

// What is wrong with the bank in an open pool, given what was acknowledged before; empty if
// nothing. Raises `progress` to what is there.
std::string find_bank_fault(Pool& pool, BankProgress& progress, std::uint64_t in_flight);

// Objects reachable in the pool, the library's own included.
std::uint64_t count_bank_objects(Pool& pool);

}  // namespace sp3::test

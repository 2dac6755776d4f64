// The parameters of one transaction of tpcc: a function of its Operation alone, so that it is the
// same when it is run again.
//
// After TPC-C's clauses 2.4.1 and 2.5.1. Customers are chosen by number always; TPC-C chooses 60 %
// of those who pay by last name.
#pragma once

#include <array>
#include <cstdint>

#include "workloads/rng.h"
#include "workloads/tpcc/rows.h"
#include "workloads/workload.h"

namespace sp3::workloads::tpcc {

// NURand of TPC-C's clause 2.1.6 from 0 to count - 1: the bitwise or of two numbers prefers those
// with many bits set, and `shift` moves them about. REQUIRES: mask + 1 is a power of two.
constexpr std::uint64_t nurand(Rng& rng, std::uint64_t mask, std::uint64_t shift,
                               std::uint64_t count) {
  return ((rng.below(mask + 1) | rng.below(count)) + shift) % count;
}

// The masks keep the proportion to the number of customers (1023 to 3000) and items (8191 to
// 100 000), to the next power of two. The shifts are constants of the run, any numbers up to the
// masks.
inline constexpr std::uint64_t kCustomerMask = 127;
inline constexpr std::uint64_t kCustomerShift = 53;
inline constexpr std::uint64_t kItemMask = 1023;
inline constexpr std::uint64_t kItemShift = 617;

struct NewOrderInput {
  struct Line {
    std::uint64_t supplier;
    std::uint64_t item;
    std::uint64_t quantity;
  };

  RowKey district;
  std::uint64_t customer;
  std::uint64_t entered;  // in place of the time: nothing is as repeatable
  unsigned count;
  // By supplier and item, so that stores that lock rows seldom deadlock. In one of a hundred orders
  // the last item is one that there is not.
  std::array<Line, kMostLines> lines;
};

struct PaymentInput {
  RowKey district;
  RowKey customer;
  std::int64_t amount;
  std::uint64_t date;
};

NewOrderInput new_order_input(const Operation& operation, std::uint64_t warehouses);
PaymentInput payment_input(const Operation& operation, std::uint64_t warehouses);

}  // namespace sp3::workloads::tpcc

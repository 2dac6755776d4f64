// What the tables of tpcc hold at the start: every row is a function of its key alone, so a check
// knows what it held without keeping it.
//
// After TPC-C's clause 4.3.3. Where it wants letters or numbers at random, they are drawn by a
// generator that the key seeds.
#pragma once

#include <cstdint>

#include "workloads/tpcc/rows.h"

namespace sp3::workloads::tpcc {

// What each customer has paid at the start, once: districts and warehouses have the sums.
inline constexpr std::int64_t kFirstPayment = 1000;

void make_initial(const RowKey& key, Warehouse& row);
void make_initial(const RowKey& key, District& row);
void make_initial(const RowKey& key, Customer& row);
void make_initial(const RowKey& key, Stock& row);
void make_initial(const RowKey& key, Article& row);
void make_initial(const RowKey& key, History& row);
void make_initial(const RowKey& key, Order& row);
void make_initial(const RowKey& key, NewOrder& row);
void make_initial(const RowKey& key, OrderLine& row);

template <Row T>
T initial_row(const RowKey& key) {
  T row{};
  make_initial(key, row);
  return row;
}

// How many lines the order of the start has.
std::uint64_t initial_lines(const RowKey& order);

// Calls f(key) for every row of the table at the start, in the order of the keys.
template <Row T, class F>
void for_each_initial_key(std::uint64_t warehouses, F&& f) {
  if constexpr (T::dense) {
    for (std::uint64_t i = 0; i < T::count(warehouses); ++i) f(T::key(i));
  } else {
    const std::uint64_t first = T::table == NewOrder::table ? kKeptOrders - kOpenOrders + 1 : 1;
    for (std::uint64_t d = 0; d < District::count(warehouses); ++d) {
      RowKey key = District::key(d);
      for (key.number = first; key.number <= kKeptOrders; ++key.number) {
        key.line = 0;
        if constexpr (T::table != OrderLine::table) {
          f(key);
        } else {
          const std::uint64_t lines = initial_lines(key);
          for (key.line = 1; key.line <= lines; ++key.line) f(key);
        }
      }
    }
  }
}

// Bytes of all rows, with links, bitmaps and half-full nodes.
std::uint64_t data_size(std::uint64_t warehouses);

}  // namespace sp3::workloads::tpcc

// The tables of tpcc: what a row of each holds, how its key becomes an index, and how many there
// are.
//
// After TPC-C's clause 1, with rows of about its sizes and cardinalities scaled down by ten, so
// that a warehouse has about 7 MB of rows. Money is in cents, rates are in hundredths of a percent,
// ids count from 0 but those of orders, which count from 1. Members marked "ours" are not TPC-C's:
// they are written with others of the same row and let a check compare totals of all that ever
// happened with what is kept of it.
//
// What grows is bounded: a district keeps its last kKeptOrders orders with their lines, its last
// kOpenOrders are in NEW-ORDER (TPC-C's delivery, which would take them out, is left out), and its
// last kKeptPayments are in HISTORY.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "workloads/rows.h"

namespace sp3::workloads::tpcc {

inline constexpr std::uint64_t kDistricts = 10;      // of a warehouse
inline constexpr std::uint64_t kCustomers = 300;     // of a district; TPC-C: 3000
inline constexpr std::uint64_t kItems = 10'000;      // TPC-C: 100 000
inline constexpr std::uint64_t kKeptOrders = 300;    // of a district; TPC-C: 3000 at the start
inline constexpr std::uint64_t kOpenOrders = 90;     // TPC-C: 900 at the start
inline constexpr std::uint64_t kKeptPayments = 300;  // of a district: one a customer at the start
inline constexpr unsigned kLeastLines = 5;           // of an order
inline constexpr unsigned kMostLines = 15;
static_assert(kMostLines < 1U << RowKey::kLineBits && kDistricts <= 1U << RowKey::kDistrictBits);

template <std::size_t N>
using Text = std::array<char, N>;  // filled, not ended by a zero

struct Address {
  Text<20> street_1;
  Text<20> street_2;
  Text<20> city;
  Text<2> state;
  Text<10> zip;

  bool operator==(const Address&) const = default;
};

// A row of a dense table, as an array keeps it, has index() and key(), which are inverse, and
// count(), by the number of warehouses.

struct Warehouse {
  static constexpr std::uint8_t table = 1;
  static constexpr const char* name_of_table = "tpcc.warehouse";
  static constexpr bool dense = true;

  std::int64_t ytd;
  std::uint64_t tax;
  Text<16> name;
  Address address;

  bool operator==(const Warehouse&) const = default;
  static constexpr std::uint64_t count(std::uint64_t warehouses) { return warehouses; }
  static constexpr std::uint64_t index(const RowKey& key) { return key.warehouse; }
  static constexpr RowKey key(std::uint64_t index) { return {.warehouse = index}; }
};

struct District {
  static constexpr std::uint8_t table = 2;
  static constexpr const char* name_of_table = "tpcc.district";
  static constexpr bool dense = true;

  std::int64_t ytd;
  std::uint64_t tax;
  std::uint64_t next_order;
  std::uint64_t payments;  // ours: how many there were; the next one's place in HISTORY
  std::uint64_t lines;     // ours: of all orders since the start
  std::uint64_t quantity;  // ours: of all their lines
  Text<16> name;
  Address address;

  bool operator==(const District&) const = default;
  static constexpr std::uint64_t count(std::uint64_t warehouses) { return warehouses * kDistricts; }
  static constexpr std::uint64_t index(const RowKey& key) {
    return key.warehouse * kDistricts + key.district;
  }
  static constexpr RowKey key(std::uint64_t index) {
    return {.warehouse = index / kDistricts, .district = index % kDistricts};
  }
};

// Of tables that have as many rows, N, for each district.
template <std::uint64_t N>
struct OfDistrict {
  static constexpr std::uint64_t count(std::uint64_t warehouses) {
    return warehouses * kDistricts * N;
  }
  static constexpr std::uint64_t index(const RowKey& key) {
    return District::index(key) * N + key.number;
  }
  static constexpr RowKey key(std::uint64_t index) {
    RowKey key = District::key(index / N);
    key.number = index % N;
    return key;
  }
  bool operator==(const OfDistrict&) const = default;
};

struct Customer : OfDistrict<kCustomers> {
  static constexpr std::uint8_t table = 3;
  static constexpr const char* name_of_table = "tpcc.customer";
  static constexpr bool dense = true;

  std::int64_t balance;
  std::int64_t ytd_payment;
  std::uint32_t payment_count;
  std::uint32_t delivery_count;
  std::int64_t credit_limit;
  std::uint64_t since;
  std::uint32_t discount;
  Text<2> credit;  // "GC", or "BC" for one in ten, of whom payments are noted in `data`
  Text<2> middle;
  Text<16> first;
  Text<16> last;
  Text<16> phone;
  Address address;
  Text<504> data;

  bool operator==(const Customer&) const = default;
};

struct Stock {
  static constexpr std::uint8_t table = 4;
  static constexpr const char* name_of_table = "tpcc.stock";
  static constexpr bool dense = true;

  std::uint64_t ytd;
  std::int32_t quantity;
  std::uint32_t order_count;
  std::uint32_t remote_count;
  std::array<Text<24>, kDistricts> districts;
  Text<52> data;

  bool operator==(const Stock&) const = default;
  static constexpr std::uint64_t count(std::uint64_t warehouses) { return warehouses * kItems; }
  static constexpr std::uint64_t index(const RowKey& key) {
    return key.warehouse * kItems + key.number;
  }
  static constexpr RowKey key(std::uint64_t index) {
    return {.warehouse = index / kItems, .number = index % kItems};
  }
};

// A row of TPC-C's table ITEM.
struct Article {
  static constexpr std::uint8_t table = 5;
  static constexpr const char* name_of_table = "tpcc.item";
  static constexpr bool dense = true;

  std::int64_t price;
  std::uint32_t image;
  Text<24> name;
  Text<52> data;

  bool operator==(const Article&) const = default;
  static constexpr std::uint64_t count(std::uint64_t /*warehouses*/) { return kItems; }
  static constexpr std::uint64_t index(const RowKey& key) { return key.number; }
  static constexpr RowKey key(std::uint64_t index) { return {.number = index}; }
};

struct History : OfDistrict<kKeptPayments> {
  static constexpr std::uint8_t table = 6;
  static constexpr const char* name_of_table = "tpcc.history";
  static constexpr bool dense = true;

  std::int64_t amount;
  std::uint64_t date;
  std::uint64_t payment;  // ours: its number in the district, from 0
  std::uint32_t customer;
  std::uint16_t customer_warehouse;
  std::uint16_t customer_district;
  Text<24> data;

  bool operator==(const History&) const = default;
};

// Found by warehouse, district and the order's id as number. Of an order of so many lines, their
// numbers go from 1.

struct Order {
  static constexpr std::uint8_t table = 7;
  static constexpr const char* name_of_table = "tpcc.order";
  static constexpr bool dense = false;

  std::uint64_t entered;
  std::uint32_t customer;
  std::uint8_t lines;
  std::uint8_t all_local;
  std::uint16_t carrier;  // none, 0: nothing is delivered

  bool operator==(const Order&) const = default;
};

struct NewOrder {
  static constexpr std::uint8_t table = 8;
  static constexpr const char* name_of_table = "tpcc.new_order";
  static constexpr bool dense = false;

  std::uint64_t order;

  bool operator==(const NewOrder&) const = default;
};

struct OrderLine {
  static constexpr std::uint8_t table = 9;
  static constexpr const char* name_of_table = "tpcc.order_line";
  static constexpr bool dense = false;

  std::int64_t amount;
  std::uint64_t delivered;  // never, 0
  std::uint32_t item;
  std::uint16_t supplier;  // the warehouse that it comes from
  std::uint16_t quantity;
  Text<24> district;  // the stock's, of the order's district

  bool operator==(const OrderLine&) const = default;
};

// Calls f<Row>() for each table, in the order of their numbers, until it returns false.
template <class F>
bool for_each_table(F&& f) {
  return f.template operator()<Warehouse>() && f.template operator()<District>() &&
         f.template operator()<Customer>() && f.template operator()<Stock>() &&
         f.template operator()<Article>() && f.template operator()<History>() &&
         f.template operator()<Order>() && f.template operator()<NewOrder>() &&
         f.template operator()<OrderLine>();
}

}  // namespace sp3::workloads::tpcc

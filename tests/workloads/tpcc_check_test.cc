// The check of tpcc's rows: what no sequence of whole transactions leaves is found. And the
// parameters of transactions: within their bounds, in their shares, the same for the same seed.
#include "workloads/tpcc/check.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "workloads/tpcc/initial.h"
#include "workloads/tpcc/inputs.h"
#include "workloads/tpcc/transactions.h"

using namespace sp3::workloads;
using namespace sp3::workloads::tpcc;

namespace {

constexpr std::uint64_t kWarehouses = 2;

using Rows = std::map<std::uint64_t, std::vector<std::byte>>;

template <class T>
std::vector<std::byte> bytes_of(const T& row) {
  const auto bytes = std::as_bytes(std::span(&row, 1));
  return {bytes.begin(), bytes.end()};
}

template <class T>
T row_in(const Rows& rows, const RowKey& key) {
  T row{};
  const std::vector<std::byte>& bytes = rows.at(key.packed(T::table));
  REQUIRE(bytes.size() == sizeof row);
  std::memcpy(&row, bytes.data(), sizeof row);
  return row;
}

Rows initial_rows() {
  Rows rows;
  for_each_table([&]<class T>() {
    for_each_initial_key<T>(kWarehouses, [&](const RowKey& key) {
      rows[key.packed(T::table)] = bytes_of(initial_row<T>(key));
    });
    return true;
  });
  return rows;
}

std::string violation_of(const Rows& rows) {
  Check check(kWarehouses);
  for (const auto& [key, row] : rows) {
    if (!check.add(key, row)) break;
  }
  return check.violation();
}

struct RolledBack {};

// A store of rows (workloads/rows.h) in a map, without transactions: what has to be taken back is.
struct MapStore {
  Rows& rows;

  template <class T>
  T read(const RowKey& key) {
    return row_in<T>(rows, key);
  }
  template <class T>
  std::optional<T> find(const RowKey& key) {
    if (!rows.contains(key.packed(T::table))) return std::nullopt;
    return row_in<T>(rows, key);
  }
  template <class T, class How>
  void change(const RowKey& key, How&& how) {
    T row = row_in<T>(rows, key);
    how(row);
    put(key, row);
  }
  template <class T>
  void put(const RowKey& key, const T& row) {
    rows[key.packed(T::table)] = bytes_of(row);
  }
  template <class T>
  void erase(const RowKey& key) {
    REQUIRE(rows.erase(key.packed(T::table)) == 1);
  }
  template <class T>
  void prefetch(const RowKey&) {}
  [[noreturn]] void roll_back() { throw RolledBack(); }
};

OperationStream stream_of(unsigned thread) {
  WorkloadSpec spec;
  spec.kind = WorkloadKind::tpcc;
  spec.warehouses = kWarehouses;
  return {spec, Zipf(spec.entries, spec.zipf), thread};
}

// The rows after so many transactions of each of two threads, taking turns.
Rows rows_after(int transactions) {
  Rows rows = initial_rows();
  Transactions run(kWarehouses);
  OperationStream streams[] = {stream_of(0), stream_of(1)};
  for (int i = 0; i < 2 * transactions; ++i) {
    const Operation operation = streams[i % 2].next();
    const bool unused = operation.kind == OperationKind::new_order && [&] {
      const NewOrderInput input = new_order_input(operation, kWarehouses);
      return input.lines[input.count - 1].item == kItems;
    }();
    if (unused) {
      Rows copy = rows;
      MapStore store{copy};
      CHECK_THROWS_AS(run(store, operation), RolledBack);
      continue;
    }
    MapStore store{rows};
    CHECK(run(store, operation));
  }
  return rows;
}

// That a change of one row is found, and that the violation has these words.
template <class T>
void must_find(const Rows& rows, const RowKey& key, const std::string& words,
               const std::function<void(T&)>& spoil) {
  Rows spoilt = rows;
  T row = row_in<T>(rows, key);
  spoil(row);
  spoilt[key.packed(T::table)] = bytes_of(row);
  CAPTURE(T::name_of_table, words);
  CHECK(violation_of(spoilt).find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("TPC-C's rows are as they should be at the start and after transactions") {
  CHECK(violation_of(initial_rows()) == "");
  CHECK(violation_of(rows_after(300)) == "");
}

TEST_CASE("As many rows of orders and payments are kept, however long TPC-C runs") {
  const Rows rows = rows_after(1500);
  CHECK(violation_of(rows) == "");
  std::map<std::uint8_t, std::uint64_t> counts;
  for (const auto& [key, row] : rows) ++counts[table_of(key)];
  CHECK(counts[Order::table] == kWarehouses * kDistricts * kKeptOrders);
  CHECK(counts[NewOrder::table] == kWarehouses * kDistricts * kOpenOrders);
  CHECK(counts[History::table] == kWarehouses * kDistricts * kKeptPayments);
  CHECK(counts[OrderLine::table] <= counts[Order::table] * kMostLines);
}

TEST_CASE("An update of TPC-C's rows that was lost is found") {
  const Rows rows = rows_after(200);
  must_find<Warehouse>(rows, {}, "Warehouse 0 has got", [](Warehouse& row) { row.ytd -= 5; });
  must_find<District>(rows, {.district = 3}, "Warehouse 0 has got",
                      [](District& row) { row.ytd += 5; });
  must_find<District>(rows, {.district = 3}, "has something of order",
                      [](District& row) { --row.next_order; });
  must_find<District>(rows, {.district = 3}, "has had", [](District& row) { row.payments -= 2; });
  must_find<District>(rows, {.district = 3}, "lines were ordered",
                      [](District& row) { row.lines -= 5; });
  must_find<District>(rows, {.district = 3}, "A quantity of",
                      [](District& row) { row.quantity -= 5; });
  must_find<Customer>(rows, {.number = 8}, "has a balance of",
                      [](Customer& row) { row.balance += 5; });
  must_find<Customer>(rows, {.number = 8}, "Customers have paid", [](Customer& row) {
    row.balance += 5;
    row.ytd_payment -= 5;
  });
  must_find<Customer>(rows, {.number = 8}, "times, districts",
                      [](Customer& row) { ++row.payment_count; });
  must_find<Stock>(rows, {.number = 9}, "left of", [](Stock& row) { --row.quantity; });
  must_find<Stock>(rows, {.number = 9}, "lines were ordered", [](Stock& row) {
    row.ytd += 91;
    row.order_count += 10;
  });
}

TEST_CASE("A row of TPC-C that is torn, missing, misplaced or foreign is found") {
  const Rows rows = rows_after(200);
  must_find<Warehouse>(rows, {.warehouse = 1}, "torn", [](Warehouse& row) { ++row.name[3]; });
  must_find<District>(rows, {}, "torn", [](District& row) { ++row.address.city[3]; });
  must_find<Customer>(rows, {.number = 77}, "torn", [](Customer& row) { ++row.first[3]; });
  must_find<Stock>(rows, {.number = 77}, "torn", [](Stock& row) { ++row.districts[4][0]; });
  must_find<Article>(rows, {.number = 77}, "torn", [](Article& row) { ++row.price; });
  must_find<History>(rows, {.number = 77}, "holds payment", [](History& row) { ++row.payment; });
  const std::uint64_t next = row_in<District>(rows, {}).next_order;
  const RowKey order{.number = next - 1};
  const RowKey line{.number = next - 1, .line = 2};
  must_find<Order>(rows, order, "those found", [](Order& row) {
    row.lines = static_cast<std::uint8_t>(row.lines == kMostLines ? row.lines - 1 : row.lines + 1);
  });
  must_find<NewOrder>(rows, order, "is of order", [](NewOrder& row) { ++row.order; });
  must_find<OrderLine>(rows, line, "costs", [](OrderLine& row) { ++row.amount; });
  must_find<OrderLine>(rows, line, "torn", [](OrderLine& row) { ++row.district[5]; });

  const auto must_miss = [&](std::uint64_t key, const std::string& words) {
    Rows fewer = rows;
    REQUIRE(fewer.erase(key) == 1);
    CAPTURE(key);
    CHECK(violation_of(fewer).find(words) != std::string::npos);
  };
  must_miss(RowKey{.number = 5}.packed(Stock::table), "is missing");
  must_miss(order.packed(Order::table), "has no order");
  must_miss(order.packed(NewOrder::table), "closed");
  must_miss(line.packed(OrderLine::table), "those found");

  Rows strange = rows;
  strange[RowKey{.number = 1}.packed(0)] = {};
  CHECK(violation_of(strange).find("no table 0") != std::string::npos);
  strange = rows;
  strange[RowKey{.number = kItems}.packed(Article::table)] =
      bytes_of(initial_row<Article>({.number = kItems}));
  CHECK(violation_of(strange).find("none that was ever made") != std::string::npos);
  strange = rows;
  strange[RowKey{}.packed(Warehouse::table)].pop_back();
  CHECK(violation_of(strange).find("bytes") != std::string::npos);
}

TEST_CASE("NURand stays within its bounds and prefers some") {
  Rng rng(7);
  std::vector<int> drawn(kCustomers);
  for (int i = 0; i < 60'000; ++i) {
    const std::uint64_t customer = nurand(rng, kCustomerMask, kCustomerShift, kCustomers);
    REQUIRE(customer < kCustomers);
    ++drawn[customer];
  }
  const auto [least, most] = std::ranges::minmax(drawn);
  CHECK(least > 0);
  CHECK(most > 3 * least);
  for (int i = 0; i < 60'000; ++i) {
    REQUIRE(nurand(rng, kItemMask, kItemShift, kItems) < kItems);
  }
}

TEST_CASE("The parameters of TPC-C's transactions keep to their bounds and shares") {
  OperationStream stream = stream_of(1);
  std::set<std::uint64_t> districts;
  int orders = 0;
  int lines = 0;
  int remote_lines = 0;
  int unused = 0;
  int remote_customers = 0;
  constexpr int kOperations = 40'000;
  for (int i = 0; i < kOperations; ++i) {
    const Operation operation = stream.next();
    REQUIRE(operation.key == 1);
    if (operation.kind == OperationKind::payment) {
      const PaymentInput input = payment_input(operation, kWarehouses);
      REQUIRE((input.amount >= 100 && input.amount <= 500'000));
      REQUIRE((input.customer.number < kCustomers && input.customer.district < kDistricts));
      REQUIRE(input.district.warehouse == 1);
      remote_customers += input.customer.warehouse != 1 ? 1 : 0;
      continue;
    }
    REQUIRE(operation.kind == OperationKind::new_order);
    ++orders;
    const NewOrderInput input = new_order_input(operation, kWarehouses);
    const NewOrderInput again = new_order_input(operation, kWarehouses);
    REQUIRE((input.count >= kLeastLines && input.count <= kMostLines));
    REQUIRE((input.customer < kCustomers && input.district.district < kDistricts));
    REQUIRE((again.count == input.count && again.customer == input.customer));
    districts.insert(input.district.district);
    for (unsigned n = 0; n < input.count; ++n) {
      const NewOrderInput::Line& line = input.lines[n];
      const bool last = n == input.count - 1;
      REQUIRE((line.item < kItems || (last && line.item == kItems)));
      REQUIRE((line.supplier < kWarehouses && line.quantity >= 1 && line.quantity <= 10));
      REQUIRE((again.lines[n].item == line.item && again.lines[n].quantity == line.quantity));
      ++lines;
      remote_lines += line.supplier != 1 ? 1 : 0;
      unused += line.item == kItems ? 1 : 0;
    }
  }
  CHECK(districts.size() == kDistricts);
  CHECK(stream.new_orders() == static_cast<std::uint64_t>(orders));
  CHECK(orders == Approx(kOperations / 2).margin(600));
  CHECK(lines == Approx(10 * orders).margin(1500));
  CHECK(remote_lines == Approx(lines / 100).margin(300));
  CHECK(unused == Approx(orders / 100).margin(80));
  CHECK(remote_customers == Approx((kOperations - orders) * 15 / 100).margin(300));
}

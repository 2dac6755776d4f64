// The transactions of tpcc, on a store of rows (workloads/rows.h).
//
// After TPC-C's clauses 2.4.2 and 2.5.2. They take rows in one order: stock by supplier and item,
// customer, district, warehouse. So stores that lock rows seldom deadlock, and the rows that all
// want, which come last, are held, or must stay as they were read, for the shortest time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "workloads/tpcc/inputs.h"
#include "workloads/tpcc/rows.h"

namespace sp3::workloads::tpcc {

class Transactions {
 public:
  explicit Transactions(std::uint64_t warehouses) : warehouses_(warehouses) {}

  static bool only_reads(const Operation& /*operation*/) { return false; }

  // True. An order of an item that there is not leaves by the store's roll_back().
  template <class Store>
  bool operator()(Store& store, const Operation& operation) {
    if (operation.kind == OperationKind::payment) {
      pay(store, payment_input(operation, warehouses_));
    } else {
      order(store, new_order_input(operation, warehouses_));
    }
    return true;
  }

 private:
  using Line = NewOrderInput::Line;

  template <class Store>
  void order(Store& store, const NewOrderInput& input) {
    const std::uint64_t home = input.district.warehouse;
    const std::span lines = std::span(input.lines).first(input.count);
    for (const Line& line : lines) {
      if (line.item == kItems) continue;
      store.template prefetch<Article>({.number = line.item});
      store.template prefetch<Stock>({.warehouse = line.supplier, .number = line.item});
    }
    std::array<OrderLine, kMostLines> rows{};
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      rows[i] = take(store, input.district, lines[i]);
      sum += rows[i].amount;
    }
    RowKey customer = input.district;
    customer.number = input.customer;
    const std::uint64_t discount = store.template read<Customer>(customer).discount;
    RowKey id = input.district;
    std::uint64_t tax = 0;
    store.template change<District>(input.district, [&](District& district) {
      tax = district.tax;
      id.number = district.next_order++;
      district.lines += lines.size();
      for (const Line& line : lines) district.quantity += line.quantity;
    });

    const bool all_local =
        std::ranges::all_of(lines, [&](const Line& line) { return line.supplier == home; });
    store.put(id, Order{.entered = input.entered,
                        .customer = static_cast<std::uint32_t>(input.customer),
                        .lines = static_cast<std::uint8_t>(lines.size()),
                        .all_local = static_cast<std::uint8_t>(all_local ? 1 : 0),
                        .carrier = 0});
    store.put(id, NewOrder{.order = id.number});
    RowKey place = id;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      ++place.line;
      store.put(place, rows[i]);
    }
    forget_old(store, id);
    tax += store.template read<Warehouse>({.warehouse = home}).tax;
    // Both rates are in hundredths of a percent.
    total_ = sum * static_cast<std::int64_t>(10'000 - discount) / 10'000 *
             static_cast<std::int64_t>(10'000 + tax) / 10'000;
  }

  // Takes from the stock what the line wants.
  template <class Store>
  static OrderLine take(Store& store, const RowKey& district, const Line& line) {
    const auto& article = store.template find<Article>({.number = line.item});
    if (!article) store.roll_back();
    OrderLine row{.amount = article->price * static_cast<std::int64_t>(line.quantity),
                  .delivered = 0,
                  .item = static_cast<std::uint32_t>(line.item),
                  .supplier = static_cast<std::uint16_t>(line.supplier),
                  .quantity = static_cast<std::uint16_t>(line.quantity),
                  .district = {}};
    store.template change<Stock>(
        {.warehouse = line.supplier, .number = line.item}, [&](Stock& stock) {
          const auto quantity = static_cast<std::int32_t>(line.quantity);
          stock.quantity += stock.quantity >= quantity + 10 ? -quantity : 91 - quantity;
          stock.ytd += line.quantity;
          ++stock.order_count;
          if (line.supplier != district.warehouse) ++stock.remote_count;
          row.district = stock.districts[district.district];
        });
    return row;
  }

  // What is in the way of the order that came: the oldest that is kept, and the oldest open one,
  // which delivery would have closed long ago.
  template <class Store>
  static void forget_old(Store& store, const RowKey& id) {
    RowKey old = id;
    old.number = id.number - kOpenOrders;
    store.template erase<NewOrder>(old);
    old.number = id.number - kKeptOrders;
    const std::uint64_t lines = store.template read<Order>(old).lines;
    RowKey line = old;
    for (line.line = 1; line.line <= lines; ++line.line) store.template erase<OrderLine>(line);
    store.template erase<Order>(old);
  }

  template <class Store>
  static void pay(Store& store, const PaymentInput& input) {
    store.template prefetch<Customer>(input.customer);
    store.template prefetch<District>(input.district);
    store.template change<Customer>(input.customer, [&](Customer& row) {
      row.balance -= input.amount;
      row.ytd_payment += input.amount;
      ++row.payment_count;
      if (row.credit[0] == 'B') note_payment(row, input);
    });
    History history{};
    constexpr std::size_t kHalf = sizeof history.data / 2;
    store.template change<District>(input.district, [&](District& row) {
      row.ytd += input.amount;
      history.payment = row.payments++;
      std::copy_n(row.name.begin(), kHalf, history.data.begin() + kHalf);
    });
    store.template change<Warehouse>({.warehouse = input.district.warehouse}, [&](Warehouse& row) {
      row.ytd += input.amount;
      std::copy_n(row.name.begin(), kHalf, history.data.begin());
    });
    history.amount = input.amount;
    history.date = input.date;
    history.customer = static_cast<std::uint32_t>(input.customer.number);
    history.customer_warehouse = static_cast<std::uint16_t>(input.customer.warehouse);
    history.customer_district = static_cast<std::uint16_t>(input.customer.district);
    RowKey place = input.district;
    place.number = history.payment % kKeptPayments;
    store.put(place, history);
  }

  // Before what was noted so far, whose end is lost.
  static void note_payment(Customer& row, const PaymentInput& input) {
    constexpr std::size_t kNote = 24;  // ids and amount, as TPC-C has them, in binary
    std::copy_backward(row.data.begin(), row.data.end() - kNote, row.data.end());
    const std::array<std::uint64_t, kNote / 8> note = {input.customer.packed(Customer::table),
                                                       input.district.packed(District::table),
                                                       static_cast<std::uint64_t>(input.amount)};
    std::ranges::copy(std::as_bytes(std::span(note)),
                      std::as_writable_bytes(std::span(row.data)).begin());
  }

  std::uint64_t warehouses_;
  // Of the last order: what the terminal would show. Nobody asks; kept, or who optimises would spare
  // the sum and what it takes from rows.
  std::int64_t total_ = 0;
};

}  // namespace sp3::workloads::tpcc

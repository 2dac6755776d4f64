#include "workloads/tpcc/initial.h"

#include <algorithm>
#include <span>

#include "workloads/rng.h"

namespace sp3::workloads::tpcc {

static_assert(Row<Warehouse> && Row<District> && Row<Customer> && Row<Stock> && Row<Article> &&
              Row<History> && Row<Order> && Row<NewOrder> && Row<OrderLine>);

namespace {

template <class T>
Rng rng_of(const RowKey& key) {
  return Rng(key.packed(T::table), 1);
}

// Ten letters from each draw.
void fill_text(std::span<char> text, Rng& rng) {
  constexpr unsigned kLetters = 26;
  constexpr std::size_t kOfOneDraw = 10;
  for (std::size_t at = 0; at < text.size(); at += kOfOneDraw) {
    std::uint64_t draw = rng.next();
    for (char& letter : text.subspan(at, std::min(kOfOneDraw, text.size() - at))) {
      letter = static_cast<char>('a' + draw % kLetters);
      draw /= kLetters;
    }
  }
}

void fill_address(Address& address, Rng& rng) {
  fill_text(address.street_1, rng);
  fill_text(address.street_2, rng);
  fill_text(address.city, rng);
  fill_text(address.state, rng);
  fill_text(address.zip, rng);
}

constexpr std::uint64_t kMostTax = 2000;  // 20 %

}  // namespace

void make_initial(const RowKey& key, Warehouse& row) {
  Rng rng = rng_of<Warehouse>(key);
  row.ytd = static_cast<std::int64_t>(kDistricts * kCustomers) * kFirstPayment;
  row.tax = rng.below(kMostTax + 1);
  fill_text(row.name, rng);
  fill_address(row.address, rng);
}

void make_initial(const RowKey& key, District& row) {
  Rng rng = rng_of<District>(key);
  row.ytd = static_cast<std::int64_t>(kCustomers) * kFirstPayment;
  row.tax = rng.below(kMostTax + 1);
  row.next_order = kKeptOrders + 1;
  row.payments = kCustomers;
  fill_text(row.name, rng);
  fill_address(row.address, rng);
}

void make_initial(const RowKey& key, Customer& row) {
  Rng rng = rng_of<Customer>(key);
  row.balance = -kFirstPayment;
  row.ytd_payment = kFirstPayment;
  row.payment_count = 1;
  row.credit_limit = 5'000'000;
  row.since = 1;
  row.discount = static_cast<std::uint32_t>(rng.below(5001));
  row.credit = {rng.below(10) == 0 ? 'B' : 'G', 'C'};
  row.middle = {'O', 'E'};
  fill_text(row.first, rng);
  fill_text(row.last, rng);
  fill_text(row.phone, rng);
  fill_address(row.address, rng);
  fill_text(row.data, rng);
}

void make_initial(const RowKey& key, Stock& row) {
  Rng rng = rng_of<Stock>(key);
  row.quantity = static_cast<std::int32_t>(10 + rng.below(91));
  for (Text<24>& district : row.districts) fill_text(district, rng);
  fill_text(row.data, rng);
}

void make_initial(const RowKey& key, Article& row) {
  Rng rng = rng_of<Article>(key);
  row.price = static_cast<std::int64_t>(100 + rng.below(9901));
  row.image = static_cast<std::uint32_t>(1 + rng.below(10'000));
  fill_text(row.name, rng);
  fill_text(row.data, rng);
}

// The payment that each customer has made.
void make_initial(const RowKey& key, History& row) {
  static_assert(kKeptPayments == kCustomers);
  Rng rng = rng_of<History>(key);
  row.amount = kFirstPayment;
  row.date = 1;
  row.payment = key.number;
  row.customer = static_cast<std::uint32_t>(key.number);
  row.customer_warehouse = static_cast<std::uint16_t>(key.warehouse);
  row.customer_district = static_cast<std::uint16_t>(key.district);
  fill_text(row.data, rng);
}

void make_initial(const RowKey& key, Order& row) {
  // Of each customer one, in another order: 7 and the number of customers have no common factor.
  static_assert(kKeptOrders == kCustomers && kCustomers % 7 != 0);
  row.entered = 1;
  row.customer = static_cast<std::uint32_t>(key.number * 7 % kCustomers);
  row.lines = static_cast<std::uint8_t>(initial_lines(key));
  row.all_local = 1;
}

void make_initial(const RowKey& key, NewOrder& row) { row.order = key.number; }

void make_initial(const RowKey& key, OrderLine& row) {
  Rng rng = rng_of<OrderLine>(key);
  row.item = static_cast<std::uint32_t>(rng.below(kItems));
  row.supplier = static_cast<std::uint16_t>(key.warehouse);
  row.quantity = 5;
  row.amount = initial_row<Article>({.number = row.item}).price * row.quantity;
  row.district =
      initial_row<Stock>({.warehouse = key.warehouse, .number = row.item}).districts[key.district];
}

std::uint64_t initial_lines(const RowKey& order) {
  return kLeastLines + rng_of<Order>(order).below(kMostLines - kLeastLines + 1);
}

std::uint64_t data_size(std::uint64_t warehouses) {
  std::uint64_t bytes = 0;
  for_each_table([&]<class T>() {
    std::uint64_t rows = District::count(warehouses) * kKeptOrders;
    if constexpr (T::dense) rows = T::count(warehouses);
    if constexpr (T::table == OrderLine::table) rows *= kMostLines;
    // What comes on top is less than the row again plus 128 bytes.
    bytes += rows * (2 * sizeof(T) + 128);
    return true;
  });
  return bytes;
}

}  // namespace sp3::workloads::tpcc

#include "workloads/tpcc/check.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "workloads/tpcc/initial.h"

namespace sp3::workloads::tpcc {

namespace {

constexpr std::size_t kTables = OrderLine::table + 1;

std::string name_of(const RowKey& key) {
  std::string name = fmt::format("{}/{}/{}", key.warehouse, key.district, key.number);
  if (key.line != 0) name += fmt::format("/{}", key.line);
  return name;
}

}  // namespace

Check::Check(std::uint64_t warehouses)
    : warehouses_(warehouses),
      seen_(kTables),
      ytd_(warehouses),
      districts_(District::count(warehouses)) {
  for_each_table([&]<class T>() {
    if constexpr (T::dense) seen_[T::table].resize(T::count(warehouses));
    return true;
  });
  for (DistrictSeen& district : districts_) district.history.resize(kKeptPayments);
}

bool Check::add(std::uint64_t key, std::span<const std::byte> row) {
  if (!violation_.empty()) return false;
  bool known = false;
  for_each_table([&]<class T>() {
    known = table_of(key) == T::table;
    if (known) add_row<T>(RowKey::unpacked(key), row);
    return !known;
  });
  if (!known) violation_ = fmt::format("There is no table {}.", table_of(key));
  return violation_.empty();
}

template <Row T>
bool Check::add_row(const RowKey& key, std::span<const std::byte> bytes) {
  T row{};
  if (bytes.size() != sizeof row) {
    violation_ = fmt::format("{} {} has {} bytes, not {}.", T::name_of_table, name_of(key),
                             bytes.size(), sizeof row);
    return false;
  }
  std::memcpy(&row, bytes.data(), sizeof row);
  bool there = key.warehouse < warehouses_ && key.district < kDistricts;
  if constexpr (T::dense) {
    const std::uint64_t index = T::index(key);
    there = there && index < T::count(warehouses_) &&
            T::key(index).packed(T::table) == key.packed(T::table);
    if (there && seen_[T::table][index]) {
      violation_ = fmt::format("{} {} occurs twice.", T::name_of_table, name_of(key));
      return false;
    }
    if (there) seen_[T::table][index] = true;
  }
  std::string wrong = there ? look_at(key, row) : "is none that was ever made";
  if (wrong.empty()) return true;
  violation_ = fmt::format("{} {} {}.", T::name_of_table, name_of(key), wrong);
  return false;
}

// What changes is taken over, what is left must be as at the start.
std::string Check::look_at(const RowKey& key, const Warehouse& row) {
  auto expected = initial_row<Warehouse>(key);
  expected.ytd = row.ytd;
  if (row != expected) return "is torn";
  ytd_[key.warehouse] = row.ytd;
  return {};
}

std::string Check::look_at(const RowKey& key, const District& row) {
  auto expected = initial_row<District>(key);
  expected.ytd = row.ytd;
  expected.next_order = row.next_order;
  expected.payments = row.payments;
  expected.lines = row.lines;
  expected.quantity = row.quantity;
  if (row != expected) return "is torn";
  DistrictSeen& seen = districts_[District::index(key)];
  seen.ytd = row.ytd;
  seen.next_order = row.next_order;
  seen.payments = row.payments;
  totals_.received += row.ytd;
  totals_.payments_in_districts += row.payments;
  totals_.lines_ordered += row.lines;
  totals_.quantity_ordered += row.quantity;
  return {};
}

std::string Check::look_at(const RowKey& key, const Customer& row) {
  auto expected = initial_row<Customer>(key);
  expected.balance = row.balance;
  expected.ytd_payment = row.ytd_payment;
  expected.payment_count = row.payment_count;
  if (row.credit[0] == 'B' && row.payment_count > 1) expected.data = row.data;
  if (row != expected) return "is torn";
  if (row.balance != -row.ytd_payment) {
    return fmt::format("has paid {} and has a balance of {}", row.ytd_payment, row.balance);
  }
  totals_.paid += row.ytd_payment;
  totals_.payments_by_customers += row.payment_count;
  return {};
}

std::string Check::look_at(const RowKey& key, const Stock& row) {
  auto expected = initial_row<Stock>(key);
  const std::int64_t loads = row.quantity - expected.quantity + static_cast<std::int64_t>(row.ytd);
  if (row.quantity < 10 || loads < 0 || loads % 91 != 0) {
    return fmt::format("has {} left of {} after {} were taken", row.quantity, expected.quantity,
                       row.ytd);
  }
  if (row.ytd < row.order_count || row.ytd > std::uint64_t{row.order_count} * 10 ||
      row.remote_count > row.order_count) {
    return fmt::format("was taken {} of in {} lines, {} of them remote", row.ytd, row.order_count,
                       row.remote_count);
  }
  expected.quantity = row.quantity;
  expected.ytd = row.ytd;
  expected.order_count = row.order_count;
  expected.remote_count = row.remote_count;
  if (row != expected) return "is torn";
  totals_.lines_taken += row.order_count;
  totals_.quantity_taken += row.ytd;
  return {};
}

std::string Check::look_at(const RowKey& key, const Article& row) {
  return row == initial_row<Article>(key) ? "" : "is torn";
}

std::string Check::look_at(const RowKey& key, const History& row) {
  if (row.payment % kKeptPayments != key.number) {
    return fmt::format("holds payment {}", row.payment);
  }
  if (row.customer >= kCustomers || row.customer_warehouse >= warehouses_ ||
      row.customer_district >= kDistricts || row.amount <= 0) {
    return "is torn";
  }
  DistrictSeen& seen = districts_[District::index(key)];
  seen.history[key.number] = row.payment;
  seen.paid += row.amount;
  return {};
}

std::string Check::look_at(const RowKey& key, const Order& row) {
  if (row.customer >= kCustomers || row.lines < kLeastLines || row.lines > kMostLines ||
      row.carrier != 0) {
    return "is torn";
  }
  Seen& seen = districts_[District::index(key)].orders[key.number];
  seen.itself = true;
  seen.lines = row.lines;
  return {};
}

std::string Check::look_at(const RowKey& key, const NewOrder& row) {
  if (row.order != key.number) return fmt::format("is of order {}", row.order);
  districts_[District::index(key)].orders[key.number].open = true;
  return {};
}

std::string Check::look_at(const RowKey& key, const OrderLine& row) {
  if (row.item >= kItems || row.supplier >= warehouses_ || row.quantity < 1 || row.quantity > 10) {
    return "is torn";
  }
  const std::int64_t price = initial_row<Article>({.number = row.item}).price;
  if (row.amount != price * row.quantity) {
    return fmt::format("costs {}, which is not {} times {}", row.amount, row.quantity, price);
  }
  const auto stock = initial_row<Stock>({.warehouse = row.supplier, .number = row.item});
  if (row.district != stock.districts[key.district] || row.delivered != 0) return "is torn";
  districts_[District::index(key)].orders[key.number].found |= 1U << key.line;
  return {};
}

std::string Check::violation() const { return violation_.empty() ? what_is_missing() : violation_; }

std::string Check::what_is_missing() const {
  std::string missing;
  for_each_table([&]<class T>() {
    if constexpr (T::dense) {
      const std::vector<bool>& seen = seen_[T::table];
      const auto gap = std::ranges::find(seen, false);
      if (gap == seen.end()) return true;
      const auto index = static_cast<std::uint64_t>(gap - seen.begin());
      missing = fmt::format("{} {} is missing.", T::name_of_table, name_of(T::key(index)));
    }
    return missing.empty();
  });
  if (!missing.empty()) return missing;
  for (std::uint64_t d = 0; d < districts_.size(); ++d) {
    std::string wrong = wrong_in(d, districts_[d]);
    if (!wrong.empty()) return wrong;
  }
  for (std::uint64_t w = 0; w < warehouses_; ++w) {
    std::int64_t sum = 0;
    for (std::uint64_t d = 0; d < kDistricts; ++d) sum += districts_[w * kDistricts + d].ytd;
    if (ytd_[w] == sum) continue;
    return fmt::format("Warehouse {} has got {}, its districts {}.", w, ytd_[w], sum);
  }
  return wrong_in_total();
}

std::string Check::wrong_in(std::uint64_t district, const DistrictSeen& seen) const {
  const RowKey key = District::key(district);
  const std::string name = fmt::format("District {}/{}", key.warehouse, key.district);
  const std::uint64_t end = seen.next_order;
  if (end <= kKeptOrders) return fmt::format("{} says its next order is {}.", name, end);
  for (const auto& [id, order] : seen.orders) {
    if (id >= end || id < end - kKeptOrders) {
      return fmt::format("{}, whose next order is {}, has something of order {}.", name, end, id);
    }
  }
  for (std::uint64_t id = end - kKeptOrders; id < end; ++id) {
    const auto found = seen.orders.find(id);
    if (found == seen.orders.end() || !found->second.itself) {
      return fmt::format("{}, whose next order is {}, has no order {}.", name, end, id);
    }
    const Seen& order = found->second;
    if (order.open != (id >= end - kOpenOrders)) {
      return fmt::format("{}, whose next order is {}, has order {} {}.", name, end, id,
                         order.open ? "still open" : "closed");
    }
    const std::uint32_t wanted = (std::uint32_t{2} << order.lines) - 2;  // bits 1 to `lines`
    if (order.found != wanted) {
      return fmt::format("{} has order {} of {} lines, but those found are {:#x}.", name, id,
                         order.lines, order.found >> 1);
    }
  }
  return wrong_in_history(name, seen);
}

std::string Check::wrong_in_history(const std::string& name, const DistrictSeen& seen) const {
  for (const std::uint64_t payment : seen.history) {
    if (payment < seen.payments && payment + kKeptPayments >= seen.payments) continue;
    return fmt::format("{} has had {} payments, but its history holds number {}.", name,
                       seen.payments, payment);
  }
  if (seen.payments > kKeptPayments || seen.paid == seen.ytd) return {};
  return fmt::format("{} has got {}, its history adds up to {}.", name, seen.ytd, seen.paid);
}

std::string Check::wrong_in_total() const {
  const Totals& t = totals_;
  if (t.paid != t.received) {
    return fmt::format("Customers have paid {}, districts have got {}.", t.paid, t.received);
  }
  if (t.payments_by_customers != t.payments_in_districts) {
    return fmt::format("Customers have paid {} times, districts have been paid {} times.",
                       t.payments_by_customers, t.payments_in_districts);
  }
  if (t.lines_ordered != t.lines_taken) {
    return fmt::format("{} lines were ordered, {} taken from the stock.", t.lines_ordered,
                       t.lines_taken);
  }
  if (t.quantity_ordered != t.quantity_taken) {
    return fmt::format("A quantity of {} was ordered, of {} taken from the stock.",
                       t.quantity_ordered, t.quantity_taken);
  }
  return {};
}

}  // namespace sp3::workloads::tpcc

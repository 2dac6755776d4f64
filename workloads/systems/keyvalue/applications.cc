#include "workloads/systems/keyvalue/applications.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "emu/interposed/syncs.h"
#include "workloads/bank.h"
#include "workloads/systems/keyvalue/client.h"
#include "workloads/tpcc/initial.h"
#include "workloads/tpcc/transactions.h"

namespace sp3::workloads::keyvalue {

namespace {

// Leaves the body of a transaction that the workload rolls back.
struct RolledBack {};

template <Row T>
std::span<std::byte> writable_bytes_of(T& row) {
  return std::as_writable_bytes(std::span(&row, 1));
}
template <Row T>
Value value_of(const T& row) {
  return std::as_bytes(std::span(&row, 1));
}

// A store of rows (workloads/rows.h). Rows are copied out and in.
class RowsInStore {
 public:
  explicit RowsInStore(Transaction& transaction) : transaction_(transaction) {}

  template <Row T>
  T read(const RowKey& key) {
    return get<T>(key, Use::read);
  }
  template <Row T>
  std::optional<T> find(const RowKey& key) {
    std::optional<T> row(std::in_place);
    const bool found =
        transaction_.get(key.packed(T::table), writable_bytes_of(*row), Use::constant);
    if (!found) row.reset();
    return row;
  }
  template <Row T, class May, class How>
  bool change_if(const RowKey& key, May&& may, How&& how) {
    T row = get<T>(key, Use::change);
    if (!may(std::as_const(row))) return false;
    how(row);
    put(key, row);
    return true;
  }
  template <Row T, class How>
  void change(const RowKey& key, How&& how) {
    change_if<T>(
        key, [](const T&) { return true; }, how);
  }
  template <Row T>
  void put(const RowKey& key, const T& row) {
    transaction_.put(key.packed(T::table), value_of(row));
    written_ += sizeof row;
  }
  template <Row T>
  void erase(const RowKey& key) {
    transaction_.erase(key.packed(T::table));
  }
  template <Row T>
  void prefetch(const RowKey& /*key*/) {}
  [[noreturn]] void roll_back() { throw RolledBack(); }

  [[nodiscard]] std::uint64_t written() const { return written_; }  // bytes

 private:
  template <Row T>
  T get(const RowKey& key, Use use) {
    T row{};
    if (!transaction_.get(key.packed(T::table), writable_bytes_of(row), use)) {
      throw std::runtime_error(fmt::format("there is no row {:#x}", key.packed(T::table)));
    }
    return row;
  }

  Transaction& transaction_;
  std::uint64_t written_ = 0;
};

// `Transactions` are the workload's.
template <class Transactions>
class ApplicationClient final : public StoreClient {
 public:
  ApplicationClient(Store& store, GroupSync* group, Transactions transactions)
      : StoreClient(store, group), transactions_(std::move(transactions)) {}

  bool execute(const Operation& operation) override {
    bool found = false;
    std::uint64_t written = 0;
    const auto body = [&](Transaction& transaction) {
      RowsInStore rows(transaction);
      found = transactions_(rows, operation);
      written = rows.written();
    };
    const std::uint64_t before = emu::sync_calls();
    try {
      counted().aborts += Transactions::only_reads(operation) ? session().transact_reading(body)
                                                              : session().transact(body);
    } catch (const RolledBack&) {
      return false;
    }
    ++counted().commits;
    if (written != 0) count_written(written, before);
    return found;
  }

 private:
  Transactions transactions_;
};

template <class Transactions>
std::unique_ptr<Client> client_of(Store& store, GroupSync* group, Transactions transactions) {
  return std::make_unique<ApplicationClient<Transactions>>(store, group, std::move(transactions));
}

// Puts rows of one table, some thousand a transaction.
template <Row T, class MakeRow>
class Filler {
 public:
  Filler(Session& session, MakeRow make_row) : session_(session), make_row_(std::move(make_row)) {}

  void add(const RowKey& key) {
    constexpr std::size_t kBatch = 1000;
    keys_.push_back(key.packed(T::table));
    if (keys_.size() == kBatch) flush();
  }
  void flush() {
    T row{};
    session_.put_all(keys_, [&](std::uint64_t key) {
      row = make_row_(RowKey::unpacked(key));
      return value_of(row);
    });
    keys_.clear();
  }

 private:
  Session& session_;
  MakeRow make_row_;
  std::vector<std::uint64_t> keys_;
};

template <Row T, class MakeRow>
Filler<T, MakeRow> filler_of(Session& session, MakeRow make_row) {
  return {session, std::move(make_row)};
}

}  // namespace

void populate_application(Session& session, const WorkloadSpec& spec) {
  if (spec.kind == WorkloadKind::bank) {
    with_entry_size(spec.entry_size, [&]<std::size_t Size>() {
      auto filler = filler_of<Account<Size>>(
          session, [](const RowKey& key) { return Account<Size>::of(key.number, kStartBalance); });
      for (std::uint64_t i = 0; i < spec.entries; ++i) filler.add({.number = i});
      filler.flush();
    });
    return;
  }
  tpcc::for_each_table([&]<class T>() {
    auto filler = filler_of<T>(session, tpcc::initial_row<T>);
    tpcc::for_each_initial_key<T>(spec.warehouses, [&](const RowKey& key) { filler.add(key); });
    filler.flush();
    return true;
  });
}

std::unique_ptr<Client> connect_application(Store& store, GroupSync* group,
                                            const WorkloadSpec& spec) {
  if (spec.kind == WorkloadKind::tpcc) {
    return client_of(store, group, tpcc::Transactions(spec.warehouses));
  }
  return with_entry_size(spec.entry_size, [&]<std::size_t Size>() {
    return client_of(store, group, BankTransactions<Size>());
  });
}

Item application_item(const WorkloadSpec& spec, std::uint64_t key, Value value) {
  if (spec.kind == WorkloadKind::tpcc) return {key, 0, true, {value.begin(), value.end()}};
  return with_entry_size(spec.entry_size, [&]<std::size_t Size>() -> Item {
    auto account = Account<Size>::of(0, 0);
    std::memcpy(&account, value.data(), std::min(value.size(), sizeof account));
    const std::uint64_t number = RowKey::unpacked(key).number;
    const bool whole = table_of(key) == account.table && value.size() == sizeof account;
    return {number, static_cast<std::uint64_t>(account.balance()), whole && account.intact(number)};
  });
}

}  // namespace sp3::workloads::keyvalue

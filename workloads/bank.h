// bank: transfers between accounts, and audits of neighbouring ones. Invariant: the balances add up
// to what they did at the start, none is negative, and every account is whole.
//
// An account is an entry of the spec's size: two words that a transfer changes, the balance and a
// checksum, and a rest that stays, as an account's name and address do. The checksum depends on the
// account and the balance, so an audit knows a torn or misplaced account from a whole one.
//
// An audit sums a window of kAuditWindow accounts and throws if one of them is not whole or
// negative. It reads about as many rows as other short transactions that only read: enough of them
// that it meets transfers under way, and few enough that it is not the only thing that is measured,
// as a sum over all accounts, which nothing but a standstill would let pass, would be.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <sp3/containers/array.h>
#include <sp3/sp3.h>

#include "workloads/batches.h"
#include "workloads/contents.h"
#include "workloads/entry.h"
#include "workloads/rng.h"
#include "workloads/rows.h"
#include "workloads/workload.h"

namespace sp3::workloads {

template <std::size_t Size>
class Account {
 public:
  static_assert(Size >= 16 && Size % 8 == 0);
  static constexpr std::uint8_t table = 0;

  static Account of(std::uint64_t number, std::int64_t balance) {
    Account account;
    account.set(number, balance);
    for (std::size_t i = kRest; i < kWords; ++i) account.words_[i] = entry_word(number, i);
    return account;
  }

  [[nodiscard]] std::int64_t balance() const { return static_cast<std::int64_t>(words_[kBalance]); }

  void set(std::uint64_t number, std::int64_t balance) {
    words_[kBalance] = static_cast<std::uint64_t>(balance);
    words_[kChecksum] = checksum(number);
  }

  // Without the rest, which nobody changes.
  [[nodiscard]] bool is_sound(std::uint64_t number) const {
    return balance() >= 0 && words_[kChecksum] == checksum(number);
  }

  [[nodiscard]] bool intact(std::uint64_t number) const {
    for (std::size_t i = kRest; i < kWords; ++i) {
      if (words_[i] != entry_word(number, i)) return false;
    }
    return words_[kChecksum] == checksum(number);
  }

 private:
  static constexpr std::size_t kWords = Size / 8;
  static constexpr std::size_t kBalance = 0;
  static constexpr std::size_t kChecksum = 1;
  static constexpr std::size_t kRest = 2;

  [[nodiscard]] std::uint64_t checksum(std::uint64_t number) const {
    return mix64(mix64(number) ^ words_[kBalance]);
  }

  std::array<std::uint64_t, kWords> words_;
};

// The transactions, on a store of rows (workloads/rows.h).
template <std::size_t Size>
struct BankTransactions {
  using Row = Account<Size>;
  static_assert(workloads::Row<Row> && sizeof(Row) == Size);

  static bool only_reads(const Operation& operation) {
    return operation.kind == OperationKind::audit;
  }

  // Whether the account could bear the transfer; an audit always finds what it is for.
  template <class Store>
  bool operator()(Store& store, const Operation& operation) {
    if (only_reads(operation)) return audit(store, operation);
    const std::uint64_t from = operation.key;
    const std::uint64_t to = operation.value;
    const auto amount = static_cast<std::int64_t>(operation.count);
    store.template prefetch<Row>({.number = to});
    const bool borne = store.template change_if<Row>(
        {.number = from}, [&](const Row& account) { return account.balance() >= amount; },
        [&](Row& account) { account.set(from, account.balance() - amount); });
    if (!borne) return false;
    store.template change<Row>({.number = to},
                               [&](Row& account) { account.set(to, account.balance() + amount); });
    return true;
  }

  // What the last audit found, so that it is not for nothing.
  std::int64_t sum = 0;

 private:
  template <class Store>
  bool audit(Store& store, const Operation& operation) {
    const std::uint64_t end = operation.key + operation.count;
    for (std::uint64_t i = operation.key; i < end; ++i) store.template prefetch<Row>({.number = i});
    sum = 0;
    for (std::uint64_t i = operation.key; i < end; ++i) {
      const auto& account = store.template read<Row>({.number = i});
      if (!account.is_sound(i)) {
        throw std::runtime_error(fmt::format(
            "An audit finds account {} torn or negative: balance {}.", i, account.balance()));
      }
      sum += account.balance();
    }
    return true;
  }
};

// On this library: an array of accounts.
template <std::size_t Size>
class Bank {
 public:
  using Accounts = Array<Account<Size>>;

  explicit Bank(const WorkloadSpec& spec) : entries_(spec.entries) {}

  void create(Session& session) {
    session.run([&](Transaction& tx) {
      accounts_ = Accounts::reserve(tx, entries_);
      tx.set_root("bank", accounts_.header());
    });
  }

  void populate(Session& session) {
    for_each_batched(session, entries_, Size, [this](Transaction& tx, std::uint64_t i) {
      accounts_.fill(tx, 1, Account<Size>::of(i, kStartBalance));
    });
    attach(session);
  }

  void attach(Session& session) {
    session.run([&](Transaction& tx) {
      accounts_ = Accounts::open(tx, tx.root<typename Accounts::Header>("bank")).cached(tx);
    });
  }

  bool execute(Transaction& tx, const Operation& operation) {
    Store store{tx, accounts_};
    return transactions_(store, operation);
  }

  std::string check_structure(Transaction& tx) const { return accounts_.check_invariants(tx); }

  void visit(Transaction& tx, const ItemVisitor& visitor) const {
    std::uint64_t number = 0;
    accounts_.for_each(tx, [&](const Account<Size>& account) {
      const std::uint64_t i = number++;
      return visitor({i, static_cast<std::uint64_t>(account.balance()), account.intact(i)});
    });
  }

 private:
  struct Store {
    Transaction& tx;
    const Accounts& accounts;

    template <class Row>
    const Row& read(RowKey key) {
      return tx.read(accounts.at(tx, key.number));
    }
    template <class Row, class May, class How>
    bool change_if(RowKey key, May&& may, How&& how) {
      const Ptr<Row> account = accounts.at(tx, key.number);
      if (!may(tx.read(account))) return false;
      how(tx.write(account));
      return true;
    }
    template <class Row, class How>
    void change(RowKey key, How&& how) {
      how(tx.write(accounts.at(tx, key.number)));
    }
    template <class Row>
    void prefetch(RowKey key) {
      tx.prefetch(accounts.at(tx, key.number));
    }
  };

  std::uint64_t entries_;
  Accounts accounts_;
  BankTransactions<Size> transactions_;
};

}  // namespace sp3::workloads

// tpcc on this library: arrays for the tables whose keys are dense, B+ trees for those that come
// and go. Invariants: workloads/tpcc/check.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <sp3/containers/array.h>
#include <sp3/containers/bp_tree.h>
#include <sp3/sp3.h>

#include "workloads/contents.h"
#include "workloads/tpcc/initial.h"
#include "workloads/tpcc/rows.h"
#include "workloads/tpcc/transactions.h"
#include "workloads/workload.h"

namespace sp3::workloads::tpcc {

class Tpcc {
 public:
  explicit Tpcc(const WorkloadSpec& spec)
      : warehouses_(spec.warehouses), transactions_(spec.warehouses) {}

  void create(Session& session);
  void populate(Session& session);
  void attach(Session& session);

  bool execute(Transaction& tx, const Operation& operation) {
    Store store{tx, tables_};
    return transactions_(store, operation);
  }

  std::string check_structure(Transaction& tx) const;
  // Items are rows, with packed keys.
  void visit(Transaction& tx, const ItemVisitor& visitor) const;

 private:
  template <Row T>
  using TableOf = std::conditional_t<T::dense, Array<T>, BpTree<std::uint64_t, T>>;
  using Tables = std::tuple<TableOf<Warehouse>, TableOf<District>, TableOf<Customer>,
                            TableOf<Stock>, TableOf<Article>, TableOf<History>, TableOf<Order>,
                            TableOf<NewOrder>, TableOf<OrderLine>>;

  template <Row T>
  static TableOf<T>& table_in(Tables& tables) {
    return std::get<TableOf<T>>(tables);
  }
  template <Row T>
  static const TableOf<T>& table_in(const Tables& tables) {
    return std::get<TableOf<T>>(tables);
  }

  // One transaction's view (workloads/rows.h).
  struct Store {
    Transaction& tx;
    const Tables& tables;

    template <Row T>
    Ptr<T> at(const RowKey& key) {
      return table_in<T>(tables).at(tx, T::index(key));
    }
    template <Row T>
    const T& read(const RowKey& key) {
      if constexpr (T::dense) {
        return tx.read(at<T>(key));
      } else {
        return *table_in<T>(tables).lookup(tx, key.packed(T::table));
      }
    }
    // Of dense tables.
    template <Row T>
    const T* find(const RowKey& key) {
      if (T::index(key) >= table_in<T>(tables).size(tx)) return nullptr;
      return &tx.read(at<T>(key));
    }
    template <Row T, class How>
    void change(const RowKey& key, How&& how) {
      how(tx.write(at<T>(key)));
    }
    template <Row T>
    void put(const RowKey& key, const T& row) {
      if constexpr (T::dense) {
        tx.write(at<T>(key)) = row;
      } else {
        table_in<T>(tables).insert_or_assign(tx, key.packed(T::table), row);
      }
    }
    template <Row T>
    void erase(const RowKey& key) {
      table_in<T>(tables).erase(tx, key.packed(T::table));
    }
    template <Row T>
    void prefetch(const RowKey& key) {
      tx.prefetch(at<T>(key));
    }
    [[noreturn]] void roll_back() { tx.cancel(); }
  };

  std::uint64_t warehouses_;
  Tables tables_;
  Transactions transactions_;
};

}  // namespace sp3::workloads::tpcc

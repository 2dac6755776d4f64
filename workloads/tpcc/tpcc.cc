#include "workloads/tpcc/tpcc.h"

#include <algorithm>

namespace sp3::workloads::tpcc {

void Tpcc::create(Session& session) {
  session.run([&](Transaction& tx) {
    for_each_table([&]<class T>() {
      TableOf<T>& table = table_in<T>(tables_);
      if constexpr (T::dense) {
        table = TableOf<T>::reserve(tx, T::count(warehouses_));
      } else {
        table = TableOf<T>::create(tx);
      }
      tx.set_root(T::name_of_table, table.header());
      return true;
    });
  });
}

void Tpcc::populate(Session& session) {
  for_each_table([&]<class T>() {
    // Rows of one transaction; in a tree each costs more than itself.
    constexpr std::size_t kBatch = std::max<std::size_t>(16, 16384 / (sizeof(T) + 64));
    const TableOf<T>& table = table_in<T>(tables_);
    std::vector<RowKey> keys;
    const auto flush = [&] {
      session.run([&](Transaction& tx) {
        for (const RowKey& key : keys) {
          const auto row = initial_row<T>(key);
          if constexpr (T::dense) {
            table.fill(tx, 1, row);
          } else {
            table.insert_or_assign(tx, key.packed(T::table), row);
          }
        }
      });
      keys.clear();
    };
    for_each_initial_key<T>(warehouses_, [&](const RowKey& key) {
      keys.push_back(key);
      if (keys.size() == kBatch) flush();
    });
    flush();
    return true;
  });
  attach(session);
}

void Tpcc::attach(Session& session) {
  session.run([&](Transaction& tx) {
    for_each_table([&]<class T>() {
      using Table = TableOf<T>;
      const auto header = tx.root<typename Table::Header>(T::name_of_table);
      if constexpr (T::dense) {
        table_in<T>(tables_) = Table::open(tx, header).cached(tx);
      } else {
        table_in<T>(tables_) = Table::open(tx, header);
      }
      return true;
    });
  });
}

std::string Tpcc::check_structure(Transaction& tx) const {
  std::string violation;
  for_each_table([&]<class T>() {
    violation = table_in<T>(tables_).check_invariants(tx);
    if (!violation.empty()) violation = std::string(T::name_of_table) + ": " + violation;
    return violation.empty();
  });
  return violation;
}

void Tpcc::visit(Transaction& tx, const ItemVisitor& visitor) const {
  for_each_table([&]<class T>() {
    const auto show = [&](std::uint64_t key, const T& row) {
      const auto bytes = std::as_bytes(std::span(&row, 1));
      return visitor({key, 0, true, {bytes.begin(), bytes.end()}});
    };
    bool more = true;
    if constexpr (T::dense) {
      std::uint64_t index = 0;
      table_in<T>(tables_).for_each(tx, [&](const T& row) {
        more = show(T::key(index++).packed(T::table), row);
        return more;
      });
    } else {
      table_in<T>(tables_).for_each(tx, [&](std::uint64_t key, const T& row) {
        more = show(key, row);
        return more;
      });
    }
    return more;
  });
}

}  // namespace sp3::workloads::tpcc

// What must hold of the tables of tpcc after any sequence of whole transactions, whatever system
// keeps them.
//
// After TPC-C's consistency conditions (clause 3.3.2), as far as the rows that are kept allow:
//   1      a warehouse's YTD is the sum of its districts'
//   2, 3   a district's orders are the last kKeptOrders, up to the one before its next, and its
//          open ones are the last kOpenOrders of those
//   4, 6   an order has as many lines as it says, and there are no others
//   8, 9   TPC-C adds up HISTORY, which here loses its oldest rows. Instead: what all customers
//          have paid is what all districts have got, and each payment was counted on both sides;
//          HISTORY has the last kKeptPayments of each district, and of a district whose first row
//          is still there it adds up to the YTD
//   12     nothing is delivered, so a customer's balance is the negative of what they have paid
// and besides:
//   stock  all that was ordered, by lines and by quantity, was taken from the stock, and each
//          quantity is one to which what was taken and full loads of 91 lead
//   all    rows are complete, in their place, and hold what nobody changes as it was at the start;
//          lines cost quantity times price
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "workloads/tpcc/rows.h"

namespace sp3::workloads::tpcc {

class Check {
 public:
  explicit Check(std::uint64_t warehouses);

  // One row, in any order; `key` is packed with the table's number. Returns whether all is well so
  // far.
  bool add(std::uint64_t key, std::span<const std::byte> row);
  // A sentence that names the first violation, else empty. After the last row.
  [[nodiscard]] std::string violation() const;

 private:
  // What is known of one order.
  struct Seen {
    bool itself = false;
    bool open = false;
    unsigned lines = 0;       // that it says it has
    std::uint32_t found = 0;  // a bit for each line, by its number
  };
  struct DistrictSeen {
    std::int64_t ytd = 0;
    std::uint64_t next_order = 0;
    std::uint64_t payments = 0;
    std::map<std::uint64_t, Seen> orders;
    std::int64_t paid = 0;  // by HISTORY
    std::vector<std::uint64_t> history;
  };
  // Of all rows together.
  struct Totals {
    std::int64_t paid = 0;
    std::int64_t received = 0;
    std::uint64_t payments_by_customers = 0;
    std::uint64_t payments_in_districts = 0;
    std::uint64_t lines_ordered = 0;
    std::uint64_t lines_taken = 0;
    std::uint64_t quantity_ordered = 0;
    std::uint64_t quantity_taken = 0;
  };

  template <Row T>
  bool add_row(const RowKey& key, std::span<const std::byte> bytes);
  // Whether the row's own contents are right; a sentence, if not.
  std::string look_at(const RowKey& key, const Warehouse& row);
  std::string look_at(const RowKey& key, const District& row);
  std::string look_at(const RowKey& key, const Customer& row);
  std::string look_at(const RowKey& key, const Stock& row);
  std::string look_at(const RowKey& key, const Article& row);
  std::string look_at(const RowKey& key, const History& row);
  std::string look_at(const RowKey& key, const Order& row);
  std::string look_at(const RowKey& key, const NewOrder& row);
  std::string look_at(const RowKey& key, const OrderLine& row);
  [[nodiscard]] std::string what_is_missing() const;
  [[nodiscard]] std::string wrong_in(std::uint64_t district, const DistrictSeen& seen) const;
  [[nodiscard]] std::string wrong_in_history(const std::string& name,
                                             const DistrictSeen& seen) const;
  [[nodiscard]] std::string wrong_in_total() const;

  std::uint64_t warehouses_;
  std::vector<std::vector<bool>> seen_;  // of the dense tables, by table and index
  std::vector<std::int64_t> ytd_;        // of the warehouses
  std::vector<DistrictSeen> districts_;
  Totals totals_;
  std::string violation_;
};

}  // namespace sp3::workloads::tpcc

// Rows: what the workloads of several rows a transaction, bank and tpcc, are written on, so that
// their transactions are there once for all systems.
//
// A row is a struct without padding that has a constant `table`, the table's number, and is found
// by a RowKey. The transactions are templates over a store of rows, one transaction's view of it:
//
//   read<Row>(key)                  the row, by value or as a reference that sees no later change
//   find<Row>(key)                  a pointer or an optional: the row or nothing, of a table that
//                                   no transaction changes
//   change<Row>(key, how)           calls how(row) on the row that is to replace it
//   change_if<Row>(key, may, how)   the same if may(row); returns whether
//   put(key, row)                   makes it the row there, whether or not there is one
//   erase<Row>(key)                 REQUIRES: it is there
//   prefetch<Row>(key)              a hint that it will soon be read or changed
//   roll_back()                     ends the transaction without effect; does not return
//
// read, change and change_if REQUIRE that the row is there. A store is isolated as if transactions
// ran one after the other; a transaction may be run again, with the same parameters.
#pragma once

#include <cassert>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace sp3::workloads {

// Members that a table has no use for are 0. Packed with the table's number, keys have the order of
// their members:
//
//   63     56 55       44 43    40 39      4 3    0
//   | table  | warehouse | district | number | line |
struct RowKey {
  static constexpr unsigned kLineBits = 4;
  static constexpr unsigned kNumberBits = 36;
  static constexpr unsigned kDistrictBits = 4;
  static constexpr unsigned kWarehouseBits = 12;
  static constexpr unsigned kDistrictShift = kLineBits + kNumberBits;
  static constexpr unsigned kWarehouseShift = kDistrictShift + kDistrictBits;
  static constexpr unsigned kTableShift = kWarehouseShift + kWarehouseBits;
  static_assert(kTableShift == 56);

  std::uint64_t warehouse = 0;
  std::uint64_t district = 0;
  std::uint64_t number = 0;
  std::uint64_t line = 0;

  [[nodiscard]] constexpr std::uint64_t packed(std::uint8_t table) const {
    assert(warehouse >> kWarehouseBits == 0 && district >> kDistrictBits == 0);
    assert(number >> kNumberBits == 0 && line >> kLineBits == 0);
    return std::uint64_t{table} << kTableShift | warehouse << kWarehouseShift |
           district << kDistrictShift | number << kLineBits | line;
  }
  static constexpr RowKey unpacked(std::uint64_t key) {
    const auto low = [](std::uint64_t word, unsigned bits) {
      return word & ((std::uint64_t{1} << bits) - 1);
    };
    return {low(key >> kWarehouseShift, kWarehouseBits), low(key >> kDistrictShift, kDistrictBits),
            low(key >> kLineBits, kNumberBits), low(key, kLineBits)};
  }
};

constexpr std::uint8_t table_of(std::uint64_t packed) {
  return static_cast<std::uint8_t>(packed >> RowKey::kTableShift);
}

// Rows are compared, and given to stores, as their bytes.
template <class T>
concept Row =
    std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T> && requires {
  { T::table } -> std::convertible_to<std::uint8_t>;
};

}  // namespace sp3::workloads

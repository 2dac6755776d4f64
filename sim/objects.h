// The persistent objects of the simulator's programs: a directory and a few cells of several sizes,
// and reading them straight from a recovered pool.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <sp3/ptr.h>
#include <sp3/type.h>

#include "pool/pool_file.h"
#include "sim/ledger.h"
#include "sim/structure.h"

namespace sp3::sim {

// A value, and words that follow from it: an update of the value alone logs two words that lie at
// the two ends of the object, a rewrite all of them.
template <std::uint32_t kFill>
struct Cell {
  Value value;
  Value base;  // the value when all words were last written
  std::array<std::uint64_t, kFill> fill;
  std::uint64_t twin;  // of value
};

using Small = Cell<1>;
using Middle = Cell<6>;
using Large = Cell<22>;
inline constexpr std::uint32_t kKinds = 3;
// With those of programs that churn: so many that slabs are emptied and carved anew all the time.
inline constexpr std::uint32_t kAllKinds = 6;
// Larger than a log segment. In bulky cases the first cells are of this kind, and stay so.
using Bulk = Cell<510>;
inline constexpr std::uint64_t kBulk = kAllKinds;
inline constexpr std::uint32_t kBulkyCells = 2;

// Holds a cell of its own, which is replaced without a word to anybody else: what two boxes share
// at most is a slot that one has freed and the other has taken.
struct Box {
  Value value;
  std::uint64_t content;  // offset of a Small of the same value
  std::uint64_t twin;     // of value
};

struct Directory {
  Value value;
  std::array<std::uint64_t, kCells> cells;  // offsets
  std::array<std::uint64_t, kCells> kinds;  // 0 small, 1 middle, 2 large, kBulk; see with_kind
  std::array<std::uint64_t, kBoxes> boxes;  // offsets
};

inline constexpr std::string_view kRootName = "directory";

// Calls visit.operator()<Type>() for a cell kind.
template <class Visitor>
decltype(auto) with_kind(std::uint64_t kind, Visitor&& visit) {
  if (kind == 0) return visit.template operator()<Small>();
  if (kind == 1) return visit.template operator()<Middle>();
  if (kind == 3) return visit.template operator()<Cell<2>>();
  if (kind == 4) return visit.template operator()<Cell<4>>();
  if (kind == 5) return visit.template operator()<Cell<10>>();
  if (kind == kBulk) return visit.template operator()<Bulk>();
  return visit.template operator()<Large>();
}

template <class T>
void rewrite(T& cell, Value value) {
  cell.value = value;
  cell.base = value;
  for (std::size_t i = 0; i < cell.fill.size(); ++i) cell.fill[i] = value * 31 + i;
  cell.twin = ~value;
}
template <class T>
T cell_of(Value value) {
  T cell{};
  rewrite(cell, value);
  return cell;
}
template <class T>
void update(T& cell, Value value) {
  cell.value = value;
  cell.twin = ~value;
}
template <class T>
bool is_whole(const T& cell) {
  for (std::size_t i = 0; i < cell.fill.size(); ++i) {
    if (cell.fill[i] != cell.base * 31 + i) return false;
  }
  return cell.twin == ~cell.value;
}

// The copy that the superblocks choose, and what it has lost from the other.
inline constexpr int kEitherCopy = -1;

// Reads what is at home in a pool that recovery is done with (or that was closed): `copy` of its
// metadata. Every object that is allocated must be reachable and the other way round, and every
// object whole; the objects of a `structure` belong to it, but what they hold is not looked at.
// What is wrong; empty if nothing.
std::string read_state(pool::PoolFile& file, int copy, StructureKind structure, State& state);

}  // namespace sp3::sim

template <std::uint32_t kFill>
struct sp3::TypeTag<sp3::sim::Cell<kFill>> {
  static constexpr std::string_view name = "sp3.sim.Cell";
  static constexpr std::uint32_t version = 1;
};
template <>
struct sp3::TypeTag<sp3::sim::Box> {
  static constexpr std::string_view name = "sp3.sim.Box";
  static constexpr std::uint32_t version = 1;
};
template <>
struct sp3::TypeTag<sp3::sim::Directory> {
  static constexpr std::string_view name = "sp3.sim.Directory";
  static constexpr std::uint32_t version = 1;
};

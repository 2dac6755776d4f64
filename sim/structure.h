// Structure: a container of the library that a simulated program keeps beside its cells, in the
// same transactions.
//
// What it must hold is a function of the cells, so the ledger, which knows which states of the
// cells are allowed, also says what the container may hold; an image in which the two disagree has
// half of a transaction, or has lost a transaction that changed the container's inside.
//   maps    a cell's value says which of the cell's keys are present, and all of those have it
//   array   a cell's value is in all of its entries, mixed with their numbers; two of them swapped
//   ranged  a cell's value is in two ranges of its own, which share chunks with other cells'; and
//           the length follows from cell 0's
//   deep    a ranged object whose length may need a table of one, two or three levels, and whose
//           last word is cell 0's too; a hash table that needs directories of three levels
//   queue   each write of cell 0 pushes its value, each write of cell 1 pops one
// The keys of the cells alternate, so that different cells share nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sp3/containers/array.h>
#include <sp3/containers/bp_tree.h>
#include <sp3/containers/hash_table.h>
#include <sp3/containers/queue.h>
#include <sp3/containers/rb_tree.h>
#include <sp3/ranged.h>
#include <sp3/sp3.h>

#include "sim/ledger.h"

namespace sp3::sim {

enum class StructureKind : std::uint8_t {
  none,
  queue,
  hash_table,
  rb_tree,
  bp_tree,
  array,
  ranged,
  deep_ranged,
  deep_hash_table
};
inline constexpr std::uint32_t kStructureKinds = 6;  // without none, and without the deep ones
const char* to_string(StructureKind kind) noexcept;

inline constexpr std::string_view kStructureRoot = "structure";
inline constexpr std::uint64_t kKeysOfCell = 5;
inline constexpr std::uint32_t kPushes = 0;  // the cells that a queue follows
inline constexpr std::uint32_t kPops = 1;

using SimQueue = Queue<Value>;
using SimHashTable = HashTable<std::uint64_t, Value>;
using SimRbTree = RbTree<std::uint64_t, Value>;
// A fan-out so small that a few keys split, borrow and merge at two levels.
using SimBpTree = BpTree<std::uint64_t, Value, 4>;
using SimArray = Array<Value>;
using SimRanged = Ranged<Value>;
inline constexpr std::uint32_t kRangedChunk = 256;  // bytes; three of them

// Keys agree in two directories' bits, so that fifteen of them need a third level, and most of them
// in those of the small directory there too, so that fifteen of these make it large.
struct CrowdedHash {
  std::uint64_t operator()(std::uint64_t key) const noexcept {
    constexpr unsigned kTwoLevels = 2 * SimHashTable::cell_bits;
    const bool is_one_of_most = key >= kCells;
    return mix_hash(key) >> (kTwoLevels + (is_one_of_most ? SimHashTable::small_cell_bits : 0));
  }
};
using SimDeepHashTable = HashTable<std::uint64_t, Value, CrowdedHash>;

// Inside a transaction. REQUIRES of all but the first: the structure is there.
void make_structure(Transaction& t, StructureKind kind);
// Whether a write of the cell is possible now: an empty queue cannot be popped.
bool may_write(Transaction& t, StructureKind kind, std::uint32_t cell);
// Follows the cell's new value. `handle`: of a ranged object, kept from an earlier attempt; it is
// opened if there is none. Who has one writes without having read the object's header.
void write_structure(Transaction& t, StructureKind kind, std::uint32_t cell, Value value,
                     std::optional<SimRanged>& handle);
// Whether a ranged object, seen through a view of the cell's stretch, shows what the cell says.
// True for all other structures.
bool agrees(Transaction& t, StructureKind kind, std::uint32_t cell, Value value,
            std::optional<SimRanged>& handle);
// Checks the invariants and reads what is there. What is wrong; empty if nothing.
std::string read_structure(Transaction& t, StructureKind kind, Contents& contents);

// Holds what was found in the structure against what was found in the cells. `start`: what the
// structure held when the ledger's run began. What is wrong; empty if nothing.
// REQUIRES: the ledger allows the state.
std::string find_difference(StructureKind kind, const State& state, const Contents& start,
                            const Ledger& ledger);

}  // namespace sp3::sim

// What the three map workloads on libpmemobj share: insert (update if present) or search by an
// 8-byte key, and filling.
//
// `Map<Size>` has, besides create, attach, check_structure and visit:
//   bool search(std::uint64_t key, Entry<Size>& result) const;
//   void insert(std::uint64_t key, const Entry<Size>& value);   // one transaction
// and, where other mixes than the paper's are run:
//   // One transaction. Whether the key was there; its value is then in `before`.
//   bool modify(std::uint64_t key, const Entry<Size>& value, Entry<Size>& before);
//   // Reads up to `count` entries from `key` on, each into `result` in turn. Returns how many.
//   std::uint64_t scan(std::uint64_t key, std::uint64_t count, Entry<Size>& result) const;
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "workloads/contents.h"
#include "workloads/entry.h"
#include "workloads/systems/pmdk/heap.h"
#include "workloads/systems/pmdk/structure.h"
#include "workloads/workload.h"

namespace sp3::workloads::pmdk {

template <class Map, std::size_t Size>
class MapWorkload {
 public:
  MapWorkload(const Heap& heap, const WorkloadSpec& spec) : spec_(spec), map_(heap, spec) {}

  void create() { map_.create(); }
  void attach() { map_.attach(); }
  std::string check_structure() const { return map_.check_structure(); }
  void visit(const ItemVisitor& visitor) const { map_.visit(visitor); }

  void populate() {
    for (const std::uint64_t key : spec_.initial_keys()) map_.insert(key, Entry<Size>::of(key));
  }

  Outcome execute(const Operation& operation, Entry<Size>& result) {
    if (operation.kind == OperationKind::insert) {
      map_.insert(operation.key, Entry<Size>::of(operation.value));
      return {.found = true, .wrote = true};
    }
    const auto value = Entry<Size>::of(operation.value);
    if constexpr (requires { map_.modify(operation.key, value, result); }) {
      if (operation.kind == OperationKind::modify) {
        return {.found = map_.modify(operation.key, value, result), .wrote = true};
      }
    }
    if constexpr (requires { map_.scan(operation.key, operation.count, result); }) {
      if (operation.kind == OperationKind::scan) {
        return {.found = map_.scan(operation.key, operation.count, result) != 0, .wrote = false};
      }
    }
    return {.found = map_.search(operation.key, result), .wrote = false};
  }

 private:
  WorkloadSpec spec_;
  Map map_;
};

}  // namespace sp3::workloads::pmdk

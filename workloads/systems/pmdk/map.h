// What the three map workloads on libpmemobj share: insert (update if present) or search by an
// 8-byte key, and filling.
//
// `Map<Size>` has, besides create, attach, check_structure and visit:
//   bool search(std::uint64_t key, Entry<Size>& result) const;
//   void insert(std::uint64_t key, const Entry<Size>& value);   // one transaction
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
    return {.found = map_.search(operation.key, result), .wrote = false};
  }

 private:
  WorkloadSpec spec_;
  Map map_;
};

}  // namespace sp3::workloads::pmdk

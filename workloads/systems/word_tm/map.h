// What the three maps over words share: which keys go in first, and what an operation does.
#pragma once

#include "workloads/systems/word_tm/words.h"
#include "workloads/workload.h"
#include "workloads/zipf.h"

namespace sp3::workloads::word_tm {

// `Base` is HashTable, RbTree or BpTree.
template <class Base>
class Map : public Base {
 public:
  explicit Map(const WorkloadSpec& spec) : Base(spec), spec_(spec), order_(spec.entries, 0.0) {}

  // In no particular order, as over time: sorted insertion would leave a B+ tree half empty.
  template <WordTransaction Tx>
  void populate(Tx& tx, std::uint64_t from, std::uint64_t to) const {
    for (std::uint64_t i = from; i < to; ++i) {
      const std::uint64_t key = order_.scramble(i);
      if (spec_.present_at_start(key)) this->insert(tx, key, key);
    }
  }

  // `tag` becomes that of the last entry read.
  template <WordTransaction Tx>
  bool execute(Tx& tx, const Operation& operation, std::uint64_t& tag) const {
    if (operation.kind == OperationKind::insert) {
      this->insert(tx, operation.key, operation.value);
      return true;
    }
    EntryWords value;  // the caller of a search wants the value, so its words are read
    if constexpr (requires { this->scan(tx, operation.key, operation.count, value); }) {
      if (operation.kind == OperationKind::scan) {
        const bool found = this->scan(tx, operation.key, operation.count, value) != 0;
        tag = value.tag();
        return found;
      }
    }
    const bool is_there = this->lookup(tx, operation.key, value);
    tag = value.tag();
    if (operation.kind == OperationKind::modify) {
      this->insert(tx, operation.key, operation.value);
    }
    return is_there;
  }

 private:
  WorkloadSpec spec_;
  Zipf order_;
};

}  // namespace sp3::workloads::word_tm

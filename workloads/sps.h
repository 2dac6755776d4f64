// sps: swap two entries of an array. Invariant: the entries stay a permutation of what they were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <sp3/containers/array.h>
#include <sp3/sp3.h>

#include "workloads/batches.h"
#include "workloads/contents.h"
#include "workloads/entry.h"
#include "workloads/workload.h"

namespace sp3::workloads {

template <std::size_t Size>
class Sps {
 public:
  using Values = Array<Entry<Size>>;

  explicit Sps(const WorkloadSpec& spec) : entries_(spec.entries) {}

  void create(Session& session) {
    session.run([&](Transaction& tx) {
      values_ = Values::reserve(tx, entries_);
      tx.set_root("sps", values_.header());
    });
  }

  // Entry i starts with tag i.
  void populate(Session& session) {
    for_each_batched(session, entries_, Size, [this](Transaction& tx, std::uint64_t i) {
      values_.fill(tx, 1, Entry<Size>::of(i));
    });
    attach(session);
  }

  void attach(Session& session) {
    session.run([&](Transaction& tx) {
      values_ = Values::open(tx, tx.root<typename Values::Header>("sps")).cached(tx);
    });
  }

  bool execute(Transaction& tx, const Operation& operation) {
    values_.swap(tx, operation.key, operation.value);
    return true;
  }

  std::string check_structure(Transaction& tx) const { return values_.check_invariants(tx); }

  void visit(Transaction& tx, const ItemVisitor& visitor) const {
    std::uint64_t index = 0;
    values_.for_each(tx, [&](const Entry<Size>& entry) {
      return visitor({index++, entry.tag(), entry.intact()});
    });
  }

 private:
  std::uint64_t entries_;
  Values values_;
};

}  // namespace sp3::workloads

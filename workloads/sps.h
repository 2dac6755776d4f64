// sps: swap two entries of an array. Invariant: the entries stay a permutation of what they were.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sp3/containers/array.h>
#include <sp3/sp3.h>

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
    constexpr std::uint64_t kBatch = std::max<std::uint64_t>(1, 16384 / Size);
    for (std::uint64_t next = 0; next < entries_;) {
      const std::uint64_t end = std::min(entries_, next + kBatch);
      session.run([&](Transaction& tx) {
        for (std::uint64_t i = next; i < end; ++i) values_.fill(tx, 1, Entry<Size>::of(i));
      });
      next = end;
    }
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

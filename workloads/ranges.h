// ranges: read and overwrite ranges of one large object. Invariant: every entry is whole.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sp3/sp3.h>

#include "workloads/contents.h"
#include "workloads/entry.h"
#include "workloads/workload.h"

namespace sp3::workloads {

template <std::size_t Size>
class Ranges {
 public:
  using Values = Ranged<Entry<Size>>;

  explicit Ranges(const WorkloadSpec& spec) : entries_(spec.entries), chunk_(spec.range_chunk) {}

  void create(Session& session) {
    session.run([&](Transaction& tx) {
      values_ = Values::create(tx, entries_, chunk_);
      tx.set_root("ranges", values_.header());
    });
  }

  // Entry i starts with tag i.
  void populate(Session& session) {
    constexpr std::uint64_t kBatch = std::max<std::uint64_t>(1, 65536 / Size);
    for (std::uint64_t next = 0; next < entries_; next += kBatch) {
      scratch_.clear();
      for (std::uint64_t i = next; i < std::min(entries_, next + kBatch); ++i) {
        scratch_.push_back(Entry<Size>::of(i));
      }
      session.run([&](Transaction& tx) { values_.write(tx, next, scratch_); });
    }
  }

  void attach(Session& session) {
    session.run([&](Transaction& tx) {
      values_ = Values::open(tx, tx.root<typename Values::Header>("ranges"));
    });
  }

  bool execute(Transaction& tx, const Operation& operation) {
    if (operation.kind == OperationKind::read_range) {
      scratch_.resize(operation.count);
      values_.read(tx, operation.key, scratch_);
      return true;
    }
    scratch_.assign(operation.count, Entry<Size>::of(operation.value));
    values_.write(tx, operation.key, scratch_);
    return true;
  }

  std::string check_structure(Transaction& tx) const { return values_.check_invariants(tx); }

  void visit(Transaction& tx, const ItemVisitor& visitor) const {
    const auto view = values_.view(tx, 0, entries_);
    for (std::uint64_t i = 0; i < entries_; ++i) {
      const Entry<Size> entry = view[i];
      if (!visitor({i, entry.tag(), entry.intact()})) return;
    }
  }

 private:
  std::uint64_t entries_;
  std::uint32_t chunk_;
  Values values_;
  std::vector<Entry<Size>> scratch_;
};

}  // namespace sp3::workloads

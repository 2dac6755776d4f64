// queue: enqueue or dequeue. Invariant: values of one producer stay in the order they came in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <sp3/containers/queue.h>
#include <sp3/sp3.h>

#include "workloads/batches.h"
#include "workloads/contents.h"
#include "workloads/entry.h"
#include "workloads/workload.h"

namespace sp3::workloads {

template <std::size_t Size>
class QueueWorkload {
 public:
  using Values = Queue<Entry<Size>>;

  explicit QueueWorkload(const WorkloadSpec& spec) : entries_(spec.entries) {}

  void create(Session& session) {
    session.run([&](Transaction& tx) {
      values_ = Values::create(tx);
      tx.set_root("queue", values_.header());
    });
  }

  void populate(Session& session) {
    for_each_batched(session, entries_, Size, [this](Transaction& tx, std::uint64_t i) {
      values_.push(tx, Entry<Size>::of(i));
    });
  }

  void attach(Session& session) {
    session.run([&](Transaction& tx) {
      values_ = Values::open(tx, tx.root<typename Values::Header>("queue"));
    });
  }

  bool execute(Transaction& tx, const Operation& operation) {
    if (operation.kind == OperationKind::enqueue) {
      values_.push(tx, Entry<Size>::of(operation.value));
      return true;
    }
    const std::optional<Entry<Size>> found = values_.pop(tx);
    // As of a map: the caller wants the value, so its bytes are read.
    if (found) result_ = *found;
    return found.has_value();
  }

  std::string check_structure(Transaction& tx) const { return values_.check_invariants(tx); }

  void visit(Transaction& tx, const ItemVisitor& visitor) const {
    std::uint64_t position = 0;
    values_.for_each(tx, [&](const Entry<Size>& entry) {
      return visitor({position++, entry.tag(), entry.intact()});
    });
  }

 private:
  std::uint64_t entries_;
  Values values_;
  Entry<Size> result_{};
};

}  // namespace sp3::workloads

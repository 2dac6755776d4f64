// queue on libpmemobj: the two-lock queue of Michael and Scott (PODC 1996), a mutex at each end,
// held to commit.
//
// Invariants:
//   1. `first` is a dummy; the values are in the nodes after it, and `last` is the last of them, or
//      the dummy.
//   2. Whoever takes nodes away holds the first end's mutex, whoever adds them the last end's.
//   3. A node that a transaction under way has linked can still vanish, so it must not be taken.
//      `added_` counts committed enqueues, `taken_` dequeues, both in DRAM: while they differ, the
//      dummy's successor is committed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "workloads/contents.h"
#include "workloads/entry.h"
#include "workloads/systems/pmdk/heap.h"
#include "workloads/systems/pmdk/structure.h"
#include "workloads/workload.h"

namespace sp3::workloads::pmdk {

template <std::size_t Size>
class Queue {
 public:
  Queue(const Heap& heap, const WorkloadSpec& spec) : heap_(heap), entries_(spec.entries) {}

  void create() {
    Root& root = heap_.root<Root>();
    heap_.make_array(root.ends, 2);
    Tx tx(heap_);
    const Ref<Node> dummy = tx.make(Node{});
    for (int i = 0; i < 2; ++i) tx.change((&heap_.at(root.ends))[i].node) = dummy;
    tx.commit();
    attach();
  }

  void populate() {
    for (std::uint64_t i = 0; i < entries_; ++i) enqueue(i);
  }

  void attach() {
    End* const ends = &heap_.at(heap_.root<Root>().ends);
    first_ = ends;
    last_ = ends + 1;
    std::uint64_t nodes = 0;
    for (Ref<Node> at = next_of(first_->node); at; at = next_of(at)) ++nodes;
    taken_ = 0;
    added_.store(nodes, std::memory_order_relaxed);  // relaxed: no client runs yet
  }

  Outcome execute(const Operation& operation, Entry<Size>& result) {
    if (operation.kind == OperationKind::enqueue) {
      enqueue(operation.value);
      return {.found = true, .wrote = true};
    }
    const bool found = dequeue(result);
    return {.found = found, .wrote = found};
  }

  [[nodiscard]] std::string check_structure() const {
    Ref<Node> at = first_->node;
    while (next_of(at)) at = next_of(at);
    if (at == last_->node) return {};
    return fmt::format("The last node is at {}, but the queue ends at {}.", last_->node.offset,
                       at.offset);
  }

  void visit(const ItemVisitor& visitor) const {
    std::uint64_t position = 0;
    for (Ref<Node> at = next_of(first_->node); at; at = next_of(at)) {
      const Entry<Size>& value = heap_.at(at).value;
      if (!visitor({position++, value.tag(), value.intact()})) return;
    }
  }

 private:
  struct Node {
    static constexpr std::uint64_t kType = 1;
    Ref<Node> next;
    Entry<Size> value;
  };
  // Two lines, so that the ends share none.
  struct End {
    PMEMmutex mutex;
    Ref<Node> node;
    std::uint64_t unused[7];
  };
  static_assert(sizeof(End) == 128);
  struct Root {
    Ref<End> ends;
  };

  [[nodiscard]] Ref<Node> next_of(Ref<Node> node) const { return heap_.at(node).next; }

  void enqueue(std::uint64_t tag) {
    Tx tx(heap_);
    tx.lock(last_->mutex);
    const Ref<Node> node = tx.make(Node{.value = Entry<Size>::of(tag)});
    tx.change(heap_.at(last_->node).next) = node;
    tx.change(last_->node) = node;
    tx.commit();
    added_.fetch_add(1, std::memory_order_release);  // (1) the node may be taken: pairs with (2)
  }

  bool dequeue(Entry<Size>& result) {
    Tx tx(heap_);
    tx.lock(first_->mutex);
    // (2) the successor as (1) left it
    const bool found = added_.load(std::memory_order_acquire) != taken_;
    if (found) {
      const Ref<Node> dummy = first_->node;
      const Ref<Node> successor = next_of(dummy);
      result = heap_.at(successor).value;
      tx.change(first_->node) = successor;
      tx.destroy(dummy);
    }
    tx.commit();
    if (found) ++taken_;
    return found;
  }

  const Heap& heap_;
  std::uint64_t entries_;
  End* first_ = nullptr;
  End* last_ = nullptr;
  alignas(64) std::atomic<std::uint64_t> added_{0};
  alignas(64) std::uint64_t taken_ = 0;  // guarded by the first end's mutex
};

}  // namespace sp3::workloads::pmdk

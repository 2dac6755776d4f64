// sps on libpmemobj: one array of entries, each at a cache line; mutexes for stripes of it, taken
// in the order of the stripes and held to commit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "workloads/contents.h"
#include "workloads/entry.h"
#include "workloads/systems/pmdk/heap.h"
#include "workloads/systems/pmdk/structure.h"
#include "workloads/workload.h"

namespace sp3::workloads::pmdk {

template <std::size_t Size>
class Sps {
 public:
  Sps(const Heap& heap, const WorkloadSpec& spec) : heap_(heap), entries_(spec.entries) {}

  void create() {
    Root& root = heap_.root<Root>();
    heap_.make_array(root.stripes, kStripes);
    heap_.make_array(root.entries, entries_);
    attach();
  }

  void populate() {
    for (std::uint64_t i = 0; i < entries_; ++i) array_[i] = Entry<Size>::of(i);
    heap_.persist(array_, entries_ * sizeof *array_);
  }

  void attach() {
    const Root& root = heap_.root<Root>();
    stripes_ = &heap_.at(root.stripes);
    array_ = &heap_.at(root.entries);
  }

  Outcome execute(const Operation& operation, Entry<Size>&) {
    const auto [low, high] = std::minmax({operation.key % kStripes, operation.value % kStripes});
    Tx tx(heap_);
    tx.lock(stripes_[low]);
    if (high != low) tx.lock(stripes_[high]);
    std::swap(tx.change(array_[operation.key]), tx.change(array_[operation.value]));
    tx.commit();
    return {.found = true, .wrote = true};
  }

  // An array has no structure that could be broken.
  [[nodiscard]] std::string check_structure() const { return {}; }

  void visit(const ItemVisitor& visitor) const {
    for (std::uint64_t i = 0; i < entries_; ++i) {
      if (!visitor({i, array_[i].tag(), array_[i].intact()})) return;
    }
  }

 private:
  // A collision of two threads costs one a wait; four words in a thousand are rare enough.
  static constexpr std::uint64_t kStripes = 1024;

  struct Root {
    Ref<PMEMmutex> stripes;
    Ref<Entry<Size>> entries;
  };

  const Heap& heap_;
  std::uint64_t entries_;
  PMEMmutex* stripes_ = nullptr;
  Entry<Size>* array_ = nullptr;
};

}  // namespace sp3::workloads::pmdk

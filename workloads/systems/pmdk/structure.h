// One workload's data in a libpmemobj pool, with the entry size fixed at compile time behind it.
//
// The structures (sps.h, queue.h, hashtable.h, rbtree.h, bptree.h) are classes W<Size> with
//   W(const Heap&, const WorkloadSpec&);
//   void create();      void populate();      void attach();   // the pool is new, or opened
//   Outcome execute(const Operation&, Entry<Size>& result);    // one transaction; any thread
//   std::string check_structure() const;     void visit(const ItemVisitor&) const;
#pragma once

#include <memory>
#include <string>

#include "emu/interposed/libpmem.h"
#include "workloads/contents.h"
#include "workloads/entry.h"
#include "workloads/system.h"
#include "workloads/systems/pmdk/heap.h"
#include "workloads/workload.h"

namespace sp3::workloads::pmdk {

struct Outcome {
  bool found = false;  // as Client::execute returns it
  bool wrote = false;
};

class Structure {
 public:
  Structure() = default;
  Structure(const Structure&) = delete;
  Structure& operator=(const Structure&) = delete;
  virtual ~Structure() = default;

  virtual void create() = 0;
  virtual void populate() = 0;
  virtual void attach() = 0;
  virtual std::string check_structure() const = 0;
  virtual void visit(const ItemVisitor& visitor) const = 0;
  virtual std::unique_ptr<Client> connect() = 0;
};

template <class W, std::size_t Size>
class PmdkClient final : public Client {
 public:
  explicit PmdkClient(W& workload) : workload_(workload) {}

  bool execute(const Operation& operation) override {
    const emu::FlushCounts before = emu::libpmem_counts();
    const Outcome outcome = workload_.execute(operation, result_);
    const emu::FlushCounts& after = emu::libpmem_counts();
    ++counters_.commits;
    if (outcome.wrote) ++counters_.writing_commits;
    counters_.lines += after.lines - before.lines;
    counters_.fences += after.fences - before.fences;
    return outcome.found;
  }
  [[nodiscard]] std::uint64_t last_tag() const override { return result_.tag(); }
  [[nodiscard]] ClientCounters counters() const override { return counters_; }

 private:
  W& workload_;
  ClientCounters counters_;
  Entry<Size> result_{};  // whoever searches or dequeues wants the value, so its bytes are read
};

template <template <std::size_t> class W, std::size_t Size>
class StructureOf final : public Structure {
 public:
  StructureOf(const Heap& heap, const WorkloadSpec& spec) : workload_(heap, spec) {}

  void create() override { workload_.create(); }
  void populate() override { workload_.populate(); }
  void attach() override { workload_.attach(); }
  std::string check_structure() const override { return workload_.check_structure(); }
  void visit(const ItemVisitor& visitor) const override { workload_.visit(visitor); }
  std::unique_ptr<Client> connect() override {
    return std::make_unique<PmdkClient<W<Size>, Size>>(workload_);
  }

 private:
  W<Size> workload_;
};

// The instantiation for the spec's entry size. REQUIRES: it is one of kEntrySizes.
template <template <std::size_t> class W>
std::unique_ptr<Structure> structure_for(const Heap& heap, const WorkloadSpec& spec) {
  return with_entry_size(spec.entry_size, [&]<std::size_t Size>() -> std::unique_ptr<Structure> {
    return std::make_unique<StructureOf<W, Size>>(heap, spec);
  });
}

// One source file each, so that they compile in parallel. REQUIRES: spec.validate() passed.
std::unique_ptr<Structure> make_sps(const Heap& heap, const WorkloadSpec& spec);
std::unique_ptr<Structure> make_queue(const Heap& heap, const WorkloadSpec& spec);
std::unique_ptr<Structure> make_hashtable(const Heap& heap, const WorkloadSpec& spec);
std::unique_ptr<Structure> make_rbtree(const Heap& heap, const WorkloadSpec& spec);
std::unique_ptr<Structure> make_bptree(const Heap& heap, const WorkloadSpec& spec);

}  // namespace sp3::workloads::pmdk

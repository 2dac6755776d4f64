#include "workloads/systems/pmdk/bptree.h"

namespace sp3::workloads::pmdk {

std::unique_ptr<Structure> make_bptree(const Heap& heap, const WorkloadSpec& spec) {
  return structure_for<BpTreeWorkload>(heap, spec);
}

}  // namespace sp3::workloads::pmdk

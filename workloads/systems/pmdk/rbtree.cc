#include "workloads/systems/pmdk/rbtree.h"

namespace sp3::workloads::pmdk {

std::unique_ptr<Structure> make_rbtree(const Heap& heap, const WorkloadSpec& spec) {
  return structure_for<RbTreeWorkload>(heap, spec);
}

}  // namespace sp3::workloads::pmdk

#include "workloads/rbtree.h"
#include "workloads/systems/structure.h"

namespace sp3::workloads {

std::unique_ptr<Structure> make_rbtree(const WorkloadSpec& spec) {
  return structure_for<RbTreeWorkload>(spec);
}

}  // namespace sp3::workloads

#include "workloads/bptree.h"
#include "workloads/systems/structure.h"

namespace sp3::workloads {

std::unique_ptr<Structure> make_bptree(const WorkloadSpec& spec) {
  return structure_for<BpTreeWorkload>(spec);
}

}  // namespace sp3::workloads

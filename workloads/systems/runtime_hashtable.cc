#include "workloads/hashtable.h"
#include "workloads/systems/structure.h"

namespace sp3::workloads {

std::unique_ptr<Structure> make_hashtable(const WorkloadSpec& spec) {
  return structure_for<HashTableWorkload>(spec);
}

}  // namespace sp3::workloads

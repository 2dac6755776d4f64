#include "workloads/systems/pmdk/hashtable.h"

namespace sp3::workloads::pmdk {

std::unique_ptr<Structure> make_hashtable(const Heap& heap, const WorkloadSpec& spec) {
  return structure_for<HashTableWorkload>(heap, spec);
}

}  // namespace sp3::workloads::pmdk

#include "workloads/systems/pmdk/queue.h"

namespace sp3::workloads::pmdk {

std::unique_ptr<Structure> make_queue(const Heap& heap, const WorkloadSpec& spec) {
  return structure_for<Queue>(heap, spec);
}

}  // namespace sp3::workloads::pmdk

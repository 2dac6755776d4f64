#include "workloads/queue.h"
#include "workloads/systems/structure.h"

namespace sp3::workloads {

std::unique_ptr<Structure> make_queue(const WorkloadSpec& spec) {
  return structure_for<QueueWorkload>(spec);
}

}  // namespace sp3::workloads

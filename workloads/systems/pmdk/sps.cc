#include "workloads/systems/pmdk/sps.h"

namespace sp3::workloads::pmdk {

std::unique_ptr<Structure> make_sps(const Heap& heap, const WorkloadSpec& spec) {
  return structure_for<Sps>(heap, spec);
}

}  // namespace sp3::workloads::pmdk

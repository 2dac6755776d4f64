#include "workloads/sps.h"
#include "workloads/systems/structure.h"

namespace sp3::workloads {

std::unique_ptr<Structure> make_sps(const WorkloadSpec& spec) { return structure_for<Sps>(spec); }

}  // namespace sp3::workloads

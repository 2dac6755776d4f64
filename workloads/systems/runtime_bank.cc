#include "workloads/bank.h"
#include "workloads/systems/structure.h"

namespace sp3::workloads {

std::unique_ptr<Structure> make_bank(const WorkloadSpec& spec) { return structure_for<Bank>(spec); }

}  // namespace sp3::workloads

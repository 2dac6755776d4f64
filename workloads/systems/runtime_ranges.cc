#include "workloads/ranges.h"
#include "workloads/systems/structure.h"

namespace sp3::workloads {

std::unique_ptr<Structure> make_ranges(const WorkloadSpec& spec) {
  return structure_for<Ranges>(spec);
}

}  // namespace sp3::workloads

#include "workloads/systems/structure.h"
#include "workloads/tpcc/tpcc.h"

namespace sp3::workloads {

std::unique_ptr<Structure> make_tpcc(const WorkloadSpec& spec) {
  return std::make_unique<StructureOf<tpcc::Tpcc>>(spec);
}

}  // namespace sp3::workloads

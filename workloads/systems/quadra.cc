#include "workloads/systems/quadra.h"

#include "workloads/systems/quadra/engine.h"
#include "workloads/systems/word_tm/system.h"

namespace sp3::workloads {

std::unique_ptr<System> make_quadra() {
  return std::make_unique<word_tm::WordSystem<quadra::Engine>>();
}

std::string why_not_quadra(const WorkloadSpec& /*spec*/, const SystemOptions& options) {
  return word_tm::why_not_mapped("quadra", options.pool);
}

}  // namespace sp3::workloads

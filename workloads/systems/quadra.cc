#include "workloads/systems/quadra.h"

#include "workloads/systems/quadra/engine.h"
#include "workloads/systems/word_tm/system.h"

namespace sp3::workloads {

std::unique_ptr<System> make_quadra() {
  return std::make_unique<word_tm::WordSystem<quadra::Engine>>();
}

std::string why_not_quadra(const WorkloadSpec& spec, const SystemOptions& options) {
  if (is_application(spec.kind)) return why_no_application("quadra", spec.kind);
#ifdef SP3_SIMULATED
  // Its many small stores would each be charged as a line of a log record.
  static_cast<void>(options);
  return "quadra: the simulated machine has no measured costs for it";
#else
  return word_tm::why_not_mapped("quadra", options.pool);
#endif
}

}  // namespace sp3::workloads

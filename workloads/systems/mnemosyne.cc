#include "workloads/systems/mnemosyne.h"

#include "workloads/systems/mnemosyne/engine.h"
#include "workloads/systems/word_tm/system.h"

namespace sp3::workloads {

// Each client has a log to itself.
static_assert(kMnemosyneClients == mnemosyne::Layout::kLogs);

std::unique_ptr<System> make_mnemosyne() {
  return std::make_unique<word_tm::WordSystem<mnemosyne::Engine>>();
}

std::string why_not_mnemosyne(const WorkloadSpec& spec, const SystemOptions& options) {
  if (is_application(spec.kind)) return why_no_application("mnemosyne", spec.kind);
  return word_tm::why_not_mapped("mnemosyne", options.pool);
}

}  // namespace sp3::workloads

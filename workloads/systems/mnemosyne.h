// mnemosyne: a re-implementation of Mnemosyne: an STM with a torn-bit redo log
// (mnemosyne/engine.h).
#pragma once

#include <memory>
#include <string>

#include "workloads/system.h"

namespace sp3::workloads {

inline constexpr unsigned kMnemosyneClients = 64;  // at once

std::unique_ptr<System> make_mnemosyne();
// As why_unsupported() in workloads/system.h.
std::string why_not_mnemosyne(const WorkloadSpec& spec, const SystemOptions& options);

}  // namespace sp3::workloads

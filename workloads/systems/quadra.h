// quadra: a re-implementation of QuadraFC with a volatile replica (quadra/engine.h).
#pragma once

#include <memory>
#include <string>

#include "workloads/system.h"

namespace sp3::workloads {

std::unique_ptr<System> make_quadra();
// As why_unsupported() in workloads/system.h.
std::string why_not_quadra(const WorkloadSpec& spec, const SystemOptions& options);

}  // namespace sp3::workloads

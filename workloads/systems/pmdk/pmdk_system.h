// pmdk: the workloads on libpmemobj, the object store that persistent memory is programmed with
// today: undo-log transactions, its own allocator, its own locks held to commit (docs/PEERS.md).
#pragma once

#include <memory>
#include <string>

#include "workloads/system.h"

namespace sp3::workloads {

std::unique_ptr<System> make_pmdk();

// Empty, or which option libpmemobj has no notion of.
std::string why_not_pmdk(const WorkloadSpec& spec, const SystemOptions& options);

}  // namespace sp3::workloads

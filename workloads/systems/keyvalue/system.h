// The key-value stores as systems in `file` memory, one transaction an operation: the hash table
// and the B+ tree workload, and those of several rows a transaction (applications.h).
#pragma once

#include <memory>
#include <string>

#include "workloads/system.h"
#include "workloads/systems/keyvalue/store.h"

namespace sp3::workloads::keyvalue {

std::unique_ptr<System> make_system(OpenStore* open);

// Empty, or which workload or option a key-value store has no notion of.
std::string why_not(const WorkloadSpec& spec, const SystemOptions& options);

}  // namespace sp3::workloads::keyvalue

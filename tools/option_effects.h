// Which options of a benchmark mean something to what was chosen to be run. Who gives another would
// take the result for one of what was asked for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/cli_fwd.h"
#include "workloads/workload.h"

namespace sp3::tools {

// What is run. REQUIRES: systems of this build.
struct Chosen {
  std::vector<workloads::WorkloadKind> workloads;
  std::vector<std::string> systems;
  bool asynchronous = false;  // --durability async
};

// Throws UsageError for an option that was given and that none of them looks at.
void refuse_options_without_effect(const CLI::App& command, const Chosen& chosen);

// Options and their values as arguments, without those that would be refused.
std::vector<std::string> arguments_with_effect(
    const std::vector<std::pair<std::string, std::string>>& values, const Chosen& chosen);

}  // namespace sp3::tools

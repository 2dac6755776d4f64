// The probes of one run, by their names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "workloads/runner.h"

namespace sp3::tools {

// "none", or a list of perf and pcm. Throws UsageError.
std::vector<std::string> parse_probes(const std::string& text);

// Makes them. Counters follow the threads that are started afterwards, so this comes before the
// system that is measured, and after the programs of other probes: pcm is the first of them. A
// probe that this machine does not allow takes no time, and says why in its note.
std::vector<std::unique_ptr<workloads::Probe>> make_probes(const std::vector<std::string>& names);

}  // namespace sp3::tools

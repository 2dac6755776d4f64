// The table of recoveries, as `sp3 recovery-bench` and `sp3 compare` print it.
#pragma once

#include <cstdio>

#include <nlohmann/json_fwd.hpp>

namespace sp3::tools {

// One line for each row (docs/RESULTS.md).
void print_recoveries(std::FILE* out, const nlohmann::json& rows);

}  // namespace sp3::tools

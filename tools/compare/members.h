// The members of what a results file keeps (docs/RESULTS.md), and the type of each: tables are
// printed from them, and rows made of them.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace sp3::tools {

// Which member of the row, or of the run of that name, is missing or of another type; empty if
// none is. Members that nobody asks for do not count.
std::string what_is_wrong_with_row(const nlohmann::json& row);
std::string what_is_wrong_with_run(const std::string& name, const nlohmann::json& run);

}  // namespace sp3::tools

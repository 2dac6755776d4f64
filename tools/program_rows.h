// Rows that another program of ours measures.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace sp3::tools {

// What `program`, which is an sp3, writes with these arguments and `--json -`. What else it says is
// kept to itself, and ended with this thread it is too (start_program.h).
// Errors: std::runtime_error with what it said last, if it fails.
nlohmann::json rows_of_program(const std::string& program,
                               const std::vector<std::string>& arguments);

}  // namespace sp3::tools

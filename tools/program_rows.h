// The rows of another command, run as a program of its own.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace sp3::tools {

// Runs `program` with `arguments` and --json, and returns what it wrote there: to `file`, which is
// removed afterwards. What it prints is dropped.
// Errors: std::system_error if it cannot be started, std::runtime_error if it fails.
nlohmann::json rows_of_program(const std::string& program, std::vector<std::string> arguments,
                               const std::string& file);

}  // namespace sp3::tools

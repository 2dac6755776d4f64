// The distance between the cores of a run (core_distance.h) on the command line, in rows and under
// tables.
#pragma once

#include <cstdio>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "tools/cli_fwd.h"
#include "tools/core_distance.h"

namespace sp3::tools {

// --core-distance LEAST:MOST, either of which may be left out.
CLI::Option* add_distance_option(CLI::App& command, std::string& limits);
// Reads it; empty if it was not given. Throws UsageError.
DistanceLimits parse_distance_limits(const std::string& text);

// As a member of a row or run: null for 0, which stands for what was not measured.
nlohmann::json distance_json(double line_transfer_ns);

// If the runs of several threads that are in the rows were at very different distances, says so.
void print_distances(std::FILE* out, const nlohmann::json& rows);

}  // namespace sp3::tools

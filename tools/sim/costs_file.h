// Cost files: what the simulated machine charges, where it was measured, and factors on it.
//
//   {"machine": {"cpu": ...}, "costs_ns": {"hit": 1.2, ...}, "measured_ns": {...}}
//
// The default is part of the program (tools/sim/costs.json).
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "emu/sim/costs.h"

namespace sp3::tools {

struct CostsFile {
  emu::sim::Costs costs;
  nlohmann::json machine;  // where they were measured; null if nobody said
};

const char* default_costs_text() noexcept;

// Of a file that the option names. Throws UsageError if it cannot be read, and
// nlohmann::json::exception if it is no JSON.
nlohmann::json read_json(const std::string& option, const std::string& file);

// Reads `file`, or the default if it is empty. Costs it does not name keep theirs. Throws
// UsageError.
CostsFile read_costs(const std::string& file);
// "NAME=FACTOR", each applied in turn. Throws UsageError.
void apply_factors(emu::sim::Costs& costs, const std::vector<std::string>& factors);
void scale(emu::sim::Costs& costs, const emu::sim::NamedCost& cost, double factor);

nlohmann::json to_json(const emu::sim::Costs& costs);  // nanoseconds by name

}  // namespace sp3::tools

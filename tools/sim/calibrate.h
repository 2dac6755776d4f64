// What microbenchmarks measured, and the costs that follow from it.
#pragma once

#include <map>
#include <string>

#include <sp3/options.h>
#include <nlohmann/json_fwd.hpp>

#include "emu/sim/costs.h"

namespace sp3::tools {

using Measured = std::map<std::string, double>;  // by name of the microbenchmark; nanoseconds

// Of the rows of `sp3 micro --calibrate --json`. Throws nlohmann::json::exception.
Measured measured_in(const nlohmann::json& rows);

// `flush`: what was measured with. Throws UsageError if something was not measured, or takes
// longer than a cost can be.
emu::sim::Costs costs_from(const Measured& measured,
                           FlushInstruction flush = FlushInstruction::automatic);

}  // namespace sp3::tools

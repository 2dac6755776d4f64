#include "tools/sim/costs_file.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "tools/command.h"
#include "tools/json_depth.h"

namespace sp3::tools {
namespace {

using emu::sim::Costs;
using emu::sim::kNamedCosts;
using emu::sim::NamedCost;

constexpr double kPicoseconds = 1000;  // in a nanosecond

// `where`: the option, and its file if there is one.
const NamedCost& named(const std::string& where, const std::string& name) {
  const auto found = std::find_if(std::begin(kNamedCosts), std::end(kNamedCosts),
                                  [&](const NamedCost& cost) { return name == cost.name; });
  if (found != std::end(kNamedCosts)) return *found;
  std::string names;
  for (const NamedCost& cost : kNamedCosts) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", cost.name);
  }
  throw UsageError(fmt::format("{}: wanted one of {}, found '{}'", where, names, name));
}

std::uint32_t picoseconds(const std::string& what, double ps) {
  if (!(ps >= 0 && ps <= std::numeric_limits<std::uint32_t>::max())) {
    throw UsageError(
        fmt::format("{}: wanted 0 to 4 million (ns, or MiB), found {}", what, ps / kPicoseconds));
  }
  return static_cast<std::uint32_t>(std::llround(ps));
}

}  // namespace

nlohmann::json read_json(const std::string& option, const std::string& file) {
  std::ifstream in(file);
  try {
    if (in)
      return nlohmann::json::parse(in, refuse_deep_nesting(fmt::format("{}: {}", option, file)));
  } catch (const std::ios_base::failure&) {  // what can be opened is not always a file
  }
  throw UsageError(fmt::format("{}: {}: cannot be read", option, file));
}

CostsFile read_costs(const std::string& file) {
  const std::string where = "--costs: " + file;
  CostsFile result;
  try {
    const auto json =
        file.empty() ? nlohmann::json::parse(default_costs_text()) : read_json("--costs", file);
    if (!json.is_object() || !json.contains("costs_ns") || !json.at("costs_ns").is_object()) {
      throw UsageError(where + ": wanted an object with an object 'costs_ns'");
    }
    for (const auto& [name, ns] : json.at("costs_ns").items()) {
      const std::string what = fmt::format("{}: {}", where, name);
      if (!ns.is_number()) throw UsageError(what + ": wanted a number");
      result.costs.*(named(where, name).value) = picoseconds(what, ns.get<double>() * kPicoseconds);
    }
    result.machine = json.value("machine", nlohmann::json());
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(fmt::format("{}: {}", where, error.what()));
  }
  return result;
}

void scale(Costs& costs, const NamedCost& cost, double factor) {
  std::uint32_t& value = costs.*(cost.value);
  value =
      picoseconds(fmt::format("cost {} times {}", cost.name, factor), std::round(value * factor));
}

void apply_factors(Costs& costs, const std::vector<std::string>& factors) {
  for (const std::string& text : factors) {
    const std::size_t equals = text.find('=');
    std::size_t used = 0;
    double factor = -1;
    try {
      if (equals != std::string::npos) factor = std::stod(text.substr(equals + 1), &used);
    } catch (const std::logic_error&) {
    }
    if (!(factor >= 0) || equals + 1 + used != text.size()) {
      throw UsageError(fmt::format("--cost: wanted NAME=FACTOR, found '{}'", text));
    }
    scale(costs, named("--cost", text.substr(0, equals)), factor);
  }
}

nlohmann::json to_json(const Costs& costs) {
  nlohmann::json json;
  for (const NamedCost& cost : kNamedCosts) json[cost.name] = costs.*(cost.value) / kPicoseconds;
  return json;
}

}  // namespace sp3::tools

#include "tools/sim/costs_file.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "tools/command.h"

namespace sp3::tools {
namespace {

using emu::sim::Costs;
using emu::sim::kNamedCosts;
using emu::sim::NamedCost;

constexpr double kPicoseconds = 1000;  // in a nanosecond

const NamedCost& named(const std::string& name) {
  const auto found = std::find_if(std::begin(kNamedCosts), std::end(kNamedCosts),
                                  [&](const NamedCost& cost) { return name == cost.name; });
  if (found != std::end(kNamedCosts)) return *found;
  std::string names;
  for (const NamedCost& cost : kNamedCosts) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", cost.name);
  }
  throw UsageError(fmt::format("costs: wanted one of {}, found '{}'", names, name));
}

std::uint32_t picoseconds(const std::string& name, double ps) {
  if (!(ps >= 0 && ps <= std::numeric_limits<std::uint32_t>::max())) {
    throw UsageError(fmt::format("cost {}: wanted 0 to 4 million (ns, or MiB), found {}", name,
                                 ps / kPicoseconds));
  }
  return static_cast<std::uint32_t>(std::llround(ps));
}

std::string contents(const std::string& file) {
  std::ifstream in(file);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in) throw UsageError(fmt::format("--costs: {} cannot be read", file));
  return text;
}

}  // namespace

CostsFile read_costs(const std::string& file) {
  CostsFile result;
  try {
    const auto json = nlohmann::json::parse(file.empty() ? default_costs_text() : contents(file));
    for (const auto& [name, ns] : json.at("costs_ns").items()) {
      result.costs.*(named(name).value) = picoseconds(name, ns.get<double>() * kPicoseconds);
    }
    result.machine = json.value("machine", nlohmann::json());
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(fmt::format("--costs: {}: {}", file, error.what()));
  }
  return result;
}

void scale(std::uint32_t& cost, double factor) {
  cost = picoseconds("scaled", std::round(cost * factor));
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
    scale(costs.*(named(text.substr(0, equals)).value), factor);
  }
}

nlohmann::json to_json(const Costs& costs) {
  nlohmann::json json;
  for (const NamedCost& cost : kNamedCosts) json[cost.name] = costs.*(cost.value) / kPicoseconds;
  return json;
}

}  // namespace sp3::tools

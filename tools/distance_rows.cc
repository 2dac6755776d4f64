#include "tools/distance_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/print_to.h"

namespace sp3::tools {

namespace {

// Distances that differ less may be of the same two cores, with others at work beside them.
constexpr double kFarApart = 3;

// A limit that is left out is `otherwise`.
std::optional<double> parse_limit(const std::string& text, double otherwise) {
  if (text.empty()) return otherwise;
  const std::optional<std::uint64_t> number = whole_number(text);
  return number ? std::optional(static_cast<double>(*number)) : std::nullopt;
}

}  // namespace

CLI::Option* add_distance_option(CLI::App& command, std::string& limits) {
  return command.add_option(
      "--core-distance", limits,
      "LEAST:MOST ns that a cache line takes between the cores of several threads: "
      "waited for before each run, which is repeated if it was other afterwards");
}

DistanceLimits parse_distance_limits(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos && text != ":") {
    const DistanceLimits any;
    const auto least = parse_limit(text.substr(0, colon), any.least);
    const auto most = parse_limit(text.substr(colon + 1), any.most);
    if (least && most && *least <= *most) return {*least, *most};
  }
  throw UsageError(
      fmt::format("--core-distance: wanted LEAST:MOST in ns, as 0:100, found '{}'", text));
}

nlohmann::json distance_json(double line_transfer_ns) {
  return line_transfer_ns > 0 ? nlohmann::json(line_transfer_ns) : nlohmann::json();
}

void print_distances(std::FILE* out, const nlohmann::json& rows) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const nlohmann::json& row : rows) {
    for (const nlohmann::json& ns : row.at("line_transfers_ns")) {
      if (ns.is_null()) continue;
      least = std::min(least, ns.get<double>());
      most = std::max(most, ns.get<double>());
    }
  }
  if (most <= kFarApart * least) return;
  print_to(
      out,
      "\nthe cores moved: a cache line took from {:.0f} to {:.0f} ns between them. What several "
      "threads did compares\nat one distance only: --core-distance 0:{:.0f} waits for it\n",
      least, most, std::sqrt(least * most));
}

}  // namespace sp3::tools

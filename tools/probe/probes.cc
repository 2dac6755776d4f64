#include "tools/probe/probes.h"

#include <fmt/format.h>

#include "tools/command.h"

namespace sp3::tools {

std::vector<std::string> parse_probes(const std::string& text) {
  if (text == "none") return {};
  std::vector<std::string> names = split_list("--probe", text);
  for (const std::string& name : names) {
    if (name == "perf" || name == "pcm") continue;
    throw UsageError(
        fmt::format("--probe: wanted none, or a list of perf and pcm, found '{}'", name));
  }
  return names;
}

}  // namespace sp3::tools

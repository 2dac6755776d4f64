#include "tools/probe/probes.h"

#include <utility>

#include <fmt/format.h>

#include "tools/command.h"
#include "tools/probe/pcm_probe.h"
#include "tools/probe/perf_probe.h"

namespace sp3::tools {

namespace {

// Stands for a probe that cannot be.
class NoProbe final : public workloads::Probe {
 public:
  NoProbe(std::string name, std::string why) : reading_{std::move(name), {}, std::move(why)} {}
  void start() override {}
  workloads::ProbeReading stop() override { return reading_; }

 private:
  workloads::ProbeReading reading_;
};

std::unique_ptr<workloads::Probe> make_pcm_probe() {
  std::string program;
  std::string why = why_no_pcm(program);
  if (!why.empty()) return std::make_unique<NoProbe>("pcm", std::move(why));
  return std::make_unique<PcmProbe>(program);
}

}  // namespace

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

std::vector<std::unique_ptr<workloads::Probe>> make_probes(const std::vector<std::string>& names) {
  std::vector<std::unique_ptr<workloads::Probe>> probes;
  for (const std::string& name : names) {
    if (name == "perf") {
      probes.push_back(std::make_unique<PerfProbe>());
    } else {
      probes.push_back(make_pcm_probe());
    }
  }
  return probes;
}

}  // namespace sp3::tools

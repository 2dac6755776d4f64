#include <algorithm>
#include <utility>

#include "tools/probe/pcm_probe.h"
#include "tools/probe/perf_probe.h"
#include "tools/probe/probes.h"

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

std::vector<std::unique_ptr<workloads::Probe>> make_probes(const std::vector<std::string>& names) {
  std::vector<std::unique_ptr<workloads::Probe>> probes;
  const auto asked = [&](const char* name) {
    return std::ranges::find(names, name) != names.end();
  };
  // First: a program that is started after the counters were opened inherits them, and what it does
  // would be counted as ours.
  if (asked("pcm")) probes.push_back(make_pcm_probe());
  if (asked("perf")) probes.push_back(std::make_unique<PerfProbe>());
  return probes;
}

}  // namespace sp3::tools

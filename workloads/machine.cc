#include "workloads/machine.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

#include <sys/utsname.h>

namespace sp3::workloads {

namespace {

constexpr std::string_view kFlagsOfInterest[] = {
    "clflush", "clflushopt", "clwb", "constant_tsc", "nonstop_tsc", "rtm", "avx512f", "hypervisor"};

// The value of the first line of /proc/cpuinfo that starts with `key`.
std::string cpuinfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    return colon + 2 <= line.size() ? line.substr(colon + 2) : std::string();
  }
  return "unknown";
}

}  // namespace

Machine describe_machine() {
  Machine machine;
  machine.cpu = cpuinfo("model name");
  machine.cores = std::thread::hardware_concurrency();
  std::istringstream flags(cpuinfo("flags"));
  for (std::string flag; flags >> flag;) {
    if (std::ranges::find(kFlagsOfInterest, flag) != std::end(kFlagsOfInterest)) {
      machine.flags.push_back(flag);
    }
  }
  utsname names{};
  machine.kernel = uname(&names) == 0 ? names.release : "unknown";
#if defined(__clang__)
  machine.compiler = "clang " __clang_version__;
#else
  machine.compiler = "gcc " __VERSION__;
#endif
  return machine;
}

}  // namespace sp3::workloads

// Each event is a counter of its own, because the kernel does not let groups be inherited by threads.
// Where there are fewer counters in the CPU than events they take turns; the kernel says for how long
// each really counted, and its count is scaled to the whole time.
#include "tools/probe/perf_probe.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sp3::tools {

namespace {

struct Event {
  const char* name;
  std::uint32_t type;
  std::uint64_t config;
};

constexpr Event kEvents[] = {
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"llc_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"cpu_ns", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"context_switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
};

// The descriptor, or -1 with errno.
int open_counter(const Event& event, bool user_only) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.disabled = 1;
  attributes.inherit = 1;
  attributes.exclude_kernel = user_only ? 1 : 0;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

// "EACCES (perf_event_paranoid=3)": the error, and the setting that decides about some of them.
std::string describe(int error) {
  const char* const name = ::strerrorname_np(error);
  std::string text = name != nullptr ? name : fmt::format("errno {}", error);
  if (error == EACCES || error == EPERM) {
    std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
    int level = 0;
    if (file >> level) text += fmt::format(" (perf_event_paranoid={})", level);
  }
  return text;
}

}  // namespace

PerfProbe::PerfProbe() {
  for (const Event& event : kEvents) {
    Counter counter{event.name};
    counter.fd = open_counter(event, false);
    if (counter.fd < 0 && (errno == EACCES || errno == EPERM)) {
      counter.user_only = true;
      counter.fd = open_counter(event, true);
    }
    if (counter.fd < 0) counter.error = errno;
    counters_.push_back(counter);
  }
}

PerfProbe::~PerfProbe() {
  for (const Counter& counter : counters_) {
    if (counter.fd >= 0) ::close(counter.fd);
  }
}

void PerfProbe::start() {
  for (Counter& counter : counters_) {
    if (counter.fd < 0) continue;
    if (::ioctl(counter.fd, PERF_EVENT_IOC_RESET, 0) != 0 ||
        ::ioctl(counter.fd, PERF_EVENT_IOC_ENABLE, 0) != 0) {
      counter.error = errno;
    }
  }
}

workloads::ProbeReading PerfProbe::stop() {
  workloads::ProbeReading reading{"perf", {}, {}};
  for (Counter& counter : counters_) {
    if (counter.fd < 0 || counter.error != 0) continue;
    struct {
      std::uint64_t value, enabled, running;
    } count{};
    if (::ioctl(counter.fd, PERF_EVENT_IOC_DISABLE, 0) != 0 ||
        ::read(counter.fd, &count, sizeof count) != sizeof count) {
      counter.error = errno;
      continue;
    }
    if (count.running == 0) {
      counter.error = EBUSY;  // others, or the hypervisor, have all counters
      continue;
    }
    const double share = static_cast<double>(count.enabled) / static_cast<double>(count.running);
    reading.counts.emplace_back(counter.name, static_cast<double>(count.value) * share);
  }
  reading.note = note();
  return reading;
}

std::string PerfProbe::note() const {
  std::string missing;
  int error = 0;
  bool user_only = false;
  for (const Counter& counter : counters_) {
    if (counter.error == 0) {
      user_only = user_only || counter.user_only;
      continue;
    }
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", counter.name);
    error = counter.error;
  }
  std::string text;
  if (!missing.empty()) {
    text = fmt::format("unavailable: {}: perf_event_open: {}", missing, describe(error));
  }
  if (user_only) text += fmt::format("{}user mode only", text.empty() ? "" : "; ");
  return text;
}

}  // namespace sp3::tools

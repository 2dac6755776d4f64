#include "tools/core_distance.h"

#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <sched.h>

#include "tools/line_transfer.h"

namespace sp3::tools {

namespace {

std::string describe(const DistanceLimits& limits) {
  return std::isinf(limits.most) ? fmt::format("{:.0f} ns or more", limits.least)
                                 : fmt::format("{:.0f} to {:.0f} ns", limits.least, limits.most);
}

bool has_two_cores() {
  ::cpu_set_t cores;
  CPU_ZERO(&cores);
  // A machine with more cores than the set has places for has two.
  return ::sched_getaffinity(0, sizeof cores, &cores) != 0 || CPU_COUNT(&cores) > 1;
}

}  // namespace

std::optional<double> core_distance_ns() {
  constexpr unsigned kBursts = 101;
  constexpr double kMostNs = 20e6;
  if (!has_two_cores()) return std::nullopt;
  try {
    // The fastest: what others do on the machine only ever adds.
    return line_transfers_ns<1>(kBursts, kMostNs).front();
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

std::optional<double> wait_for_distance(const DistanceLimits& limits, const DistanceMeter& measure,
                                        std::chrono::steady_clock::duration patience) {
  constexpr auto kBetween = std::chrono::milliseconds(50);
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const std::optional<double> ns = measure();
    if (!limits.exclude_any()) return ns;
    if (!ns) throw std::runtime_error("--core-distance: there is no second core to measure it to");
    if (limits.allow(*ns)) return ns;
    if (std::chrono::steady_clock::now() - start > patience) {
      throw std::runtime_error(
          fmt::format("--core-distance: wanted {}, found {:.0f} ns after {} s", describe(limits),
                      *ns, std::chrono::duration_cast<std::chrono::seconds>(patience).count()));
    }
    std::this_thread::sleep_for(kBetween);
  }
}

void throw_cores_move(const DistanceLimits& limits, unsigned runs) {
  throw std::runtime_error(fmt::format(
      "--core-distance: wanted {}, which did not last for any of {} runs: shorter ones may be over "
      "in time",
      describe(limits), runs));
}

}  // namespace sp3::tools

#include "tools/repeats.h"

#include <fmt/format.h>

#include "tools/command.h"
#include "workloads/runner.h"

namespace sp3::tools {

void check_repeat(unsigned repeat) {
  if (repeat >= 1 && repeat <= 1000) return;
  throw UsageError(fmt::format("--repeat: wanted 1 to 1000, found {}", repeat));
}

void check_seconds(double seconds) {
  if (seconds > 0 && seconds <= workloads::kMostSeconds) return;
  throw UsageError(fmt::format("--seconds: wanted more than 0, up to {}; found {}",
                               workloads::kMostSeconds, seconds));
}

}  // namespace sp3::tools

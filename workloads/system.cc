#include "workloads/system.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "workloads/systems/runtime_system.h"

namespace sp3::workloads {

ClientCounters& ClientCounters::operator+=(const ClientCounters& other) {
  commits += other.commits;
  writing_commits += other.writing_commits;
  aborts += other.aborts;
  lines += other.lines;
  fences += other.fences;
  helped_lines += other.helped_lines;
  helped_fences += other.helped_fences;
  waits += other.waits;
  log_bytes += other.log_bytes;
  return *this;
}

ClientCounters& ClientCounters::operator-=(const ClientCounters& other) {
  commits -= other.commits;
  writing_commits -= other.writing_commits;
  aborts -= other.aborts;
  lines -= other.lines;
  fences -= other.fences;
  helped_lines -= other.helped_lines;
  helped_fences -= other.helped_fences;
  waits -= other.waits;
  log_bytes -= other.log_bytes;
  return *this;
}

BackgroundCounters& BackgroundCounters::operator-=(const BackgroundCounters& other) {
  checkpoints -= other.checkpoints;
  checkpoint_lines -= other.checkpoint_lines;
  checkpoint_fences -= other.checkpoint_fences;
  flusher_lines -= other.flusher_lines;
  flusher_fences -= other.flusher_fences;
  return *this;  // the longest checkpoint is not a sum: it stays
}

namespace {

// Adding a system: one line here, one case in make_system.
const std::vector<SystemInfo> kSystems = {
    {"sp3", "this library: visible first, durable after, acknowledged in order", true, true},
    {"sp3-async", "this library, acknowledged when visible, made durable in groups", true, true},
    {"nvm-tx", "same runtime, but durable before it unlocks", true, false},
    {"nvm-ideal", "same runtime without concurrency control; updates only, not safe", true, false},
    {"dram-tx", "same runtime without persistence", false, false},
};

}  // namespace

const std::vector<SystemInfo>& systems() { return kSystems; }

const SystemInfo& system_info(std::string_view name) {
  const auto found = std::ranges::find(kSystems, name, &SystemInfo::name);
  if (found != kSystems.end()) return *found;
  std::vector<std::string_view> names;
  for (const SystemInfo& info : kSystems) names.push_back(info.name);
  throw std::invalid_argument(
      fmt::format("system: wanted one of {}, found '{}'", fmt::join(names, ", "), name));
}

std::unique_ptr<System> make_system(std::string_view name) {
  const SystemInfo& info = system_info(name);
  if (info.name == "sp3") return make_runtime_system({CommitPolicy::speculative, false});
  if (info.name == "sp3-async") return make_runtime_system({CommitPolicy::speculative, true});
  if (info.name == "nvm-tx") return make_runtime_system({CommitPolicy::conservative, false});
  if (info.name == "nvm-ideal") return make_runtime_system({CommitPolicy::ideal, false});
  return make_runtime_system({CommitPolicy::volatile_only, false});
}

std::string why_unsupported(std::string_view name, const WorkloadSpec& spec,
                            const SystemOptions& options) {
  const SystemInfo& info = system_info(name);
  if (options.asynchronous && !info.has_async) {
    return fmt::format("{} has no asynchronous commit", name);
  }
  if (info.name == "nvm-ideal") {
    if (spec.kind == WorkloadKind::queue) return "nvm-ideal cannot make or destroy queue nodes";
    if (spec.fill < 1.0) return "nvm-ideal only updates: it needs all keys present (--fill 1)";
  }
  return {};
}

std::uint64_t default_pool_size(const WorkloadSpec& spec) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  // Links, bitmaps and half-full nodes: less than the entry again plus 128 bytes.
  const std::uint64_t data = spec.entries * (2 * std::uint64_t{spec.entry_size} + 128);
  return (256 * kMiB + 2 * data + kMiB - 1) / kMiB * kMiB;
}

}  // namespace sp3::workloads

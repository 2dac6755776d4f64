// A victim's options as command-line arguments, written and read by one table.

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/crash/victim.h"

namespace sp3::tools::crash {

namespace {

// Visits every option as (name, reference to a number or string). Enumerations travel as numbers:
// both ends are the same program.
template <class Options, class F>
void for_each_option(Options& o, F&& visit) {
  visit("mode", o.mode);
  visit("path", o.path);
  visit("workload", o.plan.workload);
  visit("entries", o.plan.entries);
  visit("threads", o.plan.threads);
  visit("plan-seed", o.plan.seed);
  visit("window", o.window);
  visit("run-seed", o.run_seed);
  visit("pool-size", o.pool_size);
  visit("memory", o.pool.memory);
  visit("flush", o.pool.flush);
  visit("locks", o.pool.locks);
  visit("range-lock", o.pool.range_lock);
  visit("strategy", o.pool.recovery.strategy);
  visit("recovery-threads", o.pool.recovery.threads);
  visit("group", o.pool.async.group_records);
  visit("checkpoint-ms", o.pool.checkpoint.interval_ms);
  visit("checkpoint-threads", o.pool.checkpoint.threads);
  visit("log-percent", o.pool.checkpoint.log_percent);
  visit("log-size", o.pool.geometry.log_size);
  visit("segment-size", o.pool.geometry.segment_size);
  visit("slab-size", o.pool.geometry.slab_size);
  visit("max-sessions", o.pool.geometry.max_sessions);
  visit("watermark-ms", o.pool.watermark_ms);
  visit("open-step", o.at_open.step);
  visit("open-count", o.at_open.countdown);
  visit("run-step", o.at_run.step);
  visit("run-count", o.at_run.countdown);
  visit("close-step", o.at_close.step);
  visit("close-count", o.at_close.countdown);
  visit("close-after-ms", o.close_after_ms);
  visit("fd", o.fd);
}

}  // namespace

std::vector<std::string> VictimOptions::arguments() const {
  std::vector<std::string> result = {"crash-victim"};
  for_each_option(*this, [&](const char* name, const auto& value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_enum_v<Value>) {
      result.push_back(fmt::format("--{}={}", name, static_cast<unsigned>(value)));
    } else {
      result.push_back(fmt::format("--{}={}", name, value));
    }
  });
  return result;
}

void VictimOptions::add_to(CLI::App& app, VictimOptions& options) {
  for_each_option(options, [&](const char* name, auto& value) {
    using Value = std::decay_t<decltype(value)>;
    const std::string flag = std::string("--") + name;
    if constexpr (std::is_enum_v<Value>) {
      app.add_option_function<unsigned>(
          flag, [&value](unsigned number) { value = static_cast<Value>(number); });
    } else {
      app.add_option(flag, value);
    }
  });
}

}  // namespace sp3::tools::crash

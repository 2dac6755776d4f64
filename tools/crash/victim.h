// The victim: the process that crash-test kills. It opens a pool (recovering it), tells everything
// that is in it, and then runs transactions, telling of each when it is acknowledged, until it is
// killed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sp3/options.h>

#include "emu/step.h"
#include "tools/cli_fwd.h"
#include "tools/crash/operation.h"

namespace sp3::tools::crash {

enum class VictimMode : std::uint8_t {
  create,  // make the pool and its structures, close
  run,     // open, tell, run until killed
  tell,    // open, tell, then wait to be killed
  close,   // open, tell, run for close_after_ms (0: not at all), close
};

// Kill yourself when `step` is reached for the `countdown`-th time.
struct Arm {
  emu::Step step = emu::Step::none;
  std::uint64_t countdown = 1;
};

struct VictimOptions {
  VictimMode mode = VictimMode::run;
  std::string path;
  Plan plan;
  unsigned window = 0;  // transactions of a thread that may be unacknowledged; 0: synchronous
  std::uint64_t run_seed = 1;  // for what is not part of the plan: observations, waits
  std::uint64_t pool_size = 16 << 20;
  Options pool;
  Arm at_open;   // armed before the pool is opened
  Arm at_run;    // armed when transactions start
  Arm at_close;  // armed before the pool is closed
  unsigned close_after_ms = 0;
  int fd = 3;  // where to tell

  // The command line of a victim, without the program's name, and the subcommand that reads it.
  [[nodiscard]] std::vector<std::string> arguments() const;
  static void add_to(CLI::App& app, VictimOptions& options);
};

// Runs the victim to its end and returns its exit code.
int run_victim(const VictimOptions& options);

}  // namespace sp3::tools::crash

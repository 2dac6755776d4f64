// sp3: the command-line tool. One source file for each subcommand.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/command.h"
#include "workloads/machine.h"

int main(int argc, char** argv) {
  CLI::App app("sp3: transactions for persistent memory", "sp3");
  app.set_version_flag("--version",
                       fmt::format("sp3 {} ({})", SP3_VERSION, sp3::workloads::built_from()));
  app.require_subcommand(1);
  int exit_code = sp3::tools::kOk;
  sp3::tools::add_pool_command(app, exit_code);
  sp3::tools::add_log_command(app, exit_code);
  sp3::tools::add_bench_command(app, exit_code);
  sp3::tools::add_compare_command(app, exit_code);
  sp3::tools::add_micro_command(app, exit_code);
  sp3::tools::add_crash_command(app, exit_code);
  sp3::tools::add_lockbench_command(app, exit_code);
  sp3::tools::add_recovery_command(app, exit_code);
  sp3::tools::add_report_command(app, exit_code);
  sp3::tools::add_sim_command(app, exit_code);
  return sp3::tools::run_app(app, argc, argv, exit_code);
}

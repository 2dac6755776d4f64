// sp3: the command-line tool. One source file for each subcommand.
#include <cstdio>
#include <exception>

#include <fmt/format.h>
#include <sp3/error.h>
#include <CLI/CLI.hpp>

#include "tools/command.h"
#include "workloads/machine.h"

namespace {

int fail(int code, const char* what) {
  fmt::print(stderr, "sp3: {}\n", what);
  return code;
}

int run(int argc, char** argv) {
  CLI::App app("sp3: transactions for persistent memory", "sp3");
  app.set_version_flag("--version", fmt::format("sp3 ({})", sp3::workloads::built_from()));
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("sp3: {} (see --help)\n", error.what());
  });
  int exit_code = sp3::tools::kOk;
  sp3::tools::add_pool_command(app, exit_code);
  sp3::tools::add_log_command(app, exit_code);
  sp3::tools::add_bench_command(app, exit_code);
  sp3::tools::add_micro_command(app, exit_code);
  sp3::tools::add_crash_command(app, exit_code);
  sp3::tools::add_lockbench_command(app, exit_code);
  try {
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& error) {
    // Help and version arrive here too, with exit code 0.
    return app.exit(error) == 0 ? sp3::tools::kOk : sp3::tools::kUsage;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const sp3::tools::UsageError& error) {
    return fail(sp3::tools::kUsage, error.what());
  } catch (const std::invalid_argument& error) {
    return fail(sp3::tools::kUsage, error.what());
  } catch (const sp3::Error& error) {
    return fail(
        error.code() == sp3::ErrorCode::invalid_argument ? sp3::tools::kUsage : sp3::tools::kError,
        error.what());
  } catch (const std::exception& error) {
    return fail(sp3::tools::kError, error.what());
  }
}

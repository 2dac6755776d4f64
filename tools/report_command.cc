// sp3 report: hands over to the Python programs of tools/report, which draw with matplotlib.
#include <stdexcept>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/command.h"
#include "tools/start_program.h"

namespace sp3::tools {
namespace {

[[noreturn]] void draw(std::vector<std::string> arguments) {
  const std::filesystem::path report = program_beside(SP3_REPORT_BESIDE_TOOL);
  if (!std::filesystem::exists(report)) {
    throw std::runtime_error(fmt::format("{}: the report's programs are not installed",
                                         report.lexically_normal().string()));
  }
  arguments.insert(arguments.begin(), {"-B", report.lexically_normal().string()});
  hand_over("python3", arguments, "drawing needs Python 3 and matplotlib");
}

}  // namespace

void add_report_command(CLI::App& app, int& /*exit_code*/) {
  CLI::App* report = app.add_subcommand(
      "report", "draw results of the others: one HTML page, and PNGs (report --help)");
  report->prefix_command();
  report->set_help_flag();  // the programs' own
  report->callback([report] { draw(report->remaining()); });
}

}  // namespace sp3::tools

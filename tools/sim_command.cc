// sp3 sim: hands over to sp3-sim, a program of its own: it has the runtime compiled for the
// simulated machine, and no program can have both.
#include <CLI/CLI.hpp>

#include "tools/command.h"
#include "tools/start_program.h"

namespace sp3::tools {

void add_sim_command(CLI::App& app, int& /*exit_code*/) {
  CLI::App* sim = app.add_subcommand(
      "sim", "the same runtime on simulated cores and simulated power loss (sim --help)");
  sim->prefix_command();
  sim->set_help_flag();  // sp3-sim's own
  sim->callback([sim] {
    // Everything after the word: what CLI11 keeps is in the order of the command line.
    hand_over(program_beside(kSimulator), sim->remaining(), "building it needs Boost.Context");
  });
}

}  // namespace sp3::tools

// sp3 sim: hands over to sp3-sim, a program of its own: it has the runtime compiled for the simulated
// machine, and no program can have both.
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/start_program.h"

namespace sp3::tools {
namespace {

[[noreturn]] void hand_over(std::vector<std::string> arguments) {
  const std::filesystem::path program = program_beside(kSimulator);
  arguments.insert(arguments.begin(), program.string());
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  throw std::runtime_error(fmt::format("{}: {}: building it needs Boost.Context", program.string(),
                                       std::strerror(errno)));
}

}  // namespace

void add_sim_command(CLI::App& app, int& /*exit_code*/) {
  CLI::App* sim = app.add_subcommand(
      "sim", "the same runtime on simulated cores and simulated power loss (sim --help)");
  sim->prefix_command();
  sim->set_help_flag();  // sp3-sim's own
  sim->callback([sim] {
    // Everything after the word: what CLI11 keeps is in the order of the command line.
    hand_over(sim->remaining());
  });
}

}  // namespace sp3::tools

#include "tools/program_rows.h"

#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "tools/pool_remover.h"
#include "tools/start_program.h"

namespace sp3::tools {

nlohmann::json rows_of_program(const std::string& program, std::vector<std::string> arguments,
                               const std::string& file) {
  const PoolRemover remover(file);
  arguments.insert(arguments.end(), {"--json", file});
  const pool::Descriptor null = open_null_device();
  const int status = wait_for(start_program(program, arguments, {{null.get(), STDOUT_FILENO}}));
  if (status != 0) {
    throw std::runtime_error(
        fmt::format("'{} {}' ended with status {}", program, fmt::join(arguments, " "), status));
  }
  std::ifstream rows(file);
  return nlohmann::json::parse(rows);
}

}  // namespace sp3::tools

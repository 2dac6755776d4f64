// Two files in memory, which have no name that anybody could take or leave behind, hold what the
// program writes: a pipe for each would want two readers.
#include "tools/program_rows.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "tools/start_program.h"

namespace sp3::tools {

namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File file_in_memory() {
  const int fd = ::memfd_create("sp3-rows", MFD_CLOEXEC);
  File file(fd < 0 ? nullptr : ::fdopen(fd, "r"), &std::fclose);
  if (file == nullptr) throw std::system_error(errno, std::generic_category(), "memfd_create");
  return file;
}

std::string text_of(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> part;
  while (const std::size_t bytes = std::fread(part.data(), 1, part.size(), file)) {
    text.append(part.data(), bytes);
  }
  return text;
}

std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace

nlohmann::json rows_of_program(const std::string& program,
                               const std::vector<std::string>& arguments) {
  const File rows = file_in_memory();
  const File said = file_in_memory();
  std::vector<std::string> all = arguments;
  all.insert(all.end(), {"--json", "-"});
  const int status = wait_for(start_program(
      program, all,
      {{::fileno(rows.get()), STDOUT_FILENO}, {::fileno(said.get()), STDERR_FILENO}}));
  if (status != 0) {
    throw std::runtime_error(fmt::format("'sp3 {}' {}: {}", fmt::join(arguments, " "),
                                         how_it_ended(status), last_line(text_of(said.get()))));
  }
  return nlohmann::json::parse(text_of(rows.get()));
}

}  // namespace sp3::tools

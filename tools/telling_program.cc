#include "tools/telling_program.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace sp3::tools {

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

TellingProgram start_telling(const std::string& program, const std::vector<std::string>& arguments,
                             int theirs, std::vector<std::pair<int, int>> descriptors,
                             ProcessGroup group) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(program + " cannot be given a pipe");
  pool::Descriptor reading(ends[0]);
  const pool::Descriptor writing(ends[1]);
  descriptors.emplace_back(writing.get(), theirs);
  return {start_program(program, arguments, descriptors, group), std::move(reading)};
}

pool::Descriptor open_null_device() {
  const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (fd < 0) fail("/dev/null");
  return pool::Descriptor(fd);
}

}  // namespace sp3::tools

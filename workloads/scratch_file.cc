#include "workloads/scratch_file.h"

#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <fmt/format.h>

namespace sp3::workloads {

namespace {

std::filesystem::path unforeseen_name(const std::filesystem::path& path) {
  std::uint64_t number = 0;
  pool::random_bytes(&number, sizeof number, path.string());
  return std::filesystem::path(path) += fmt::format(".{:016x}", number);
}

// Fails rather than open a file that is there, however unlikely.
pool::Descriptor make_file(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) pool::throw_system_error(errno, "create", path.string());
  return pool::Descriptor(fd);
}

}  // namespace

ScratchFile::ScratchFile(const std::filesystem::path& path)
    : path_(unforeseen_name(path)), file_(make_file(path_)), remover_(path_) {}

}  // namespace sp3::workloads

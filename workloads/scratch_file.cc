#include "workloads/scratch_file.h"

#include <cerrno>

#include <fcntl.h>

#include "workloads/unused_path.h"

namespace sp3::workloads {

namespace {

// Fails rather than open a file that is there, however unlikely.
pool::Descriptor make_file(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) pool::throw_system_error(errno, "create", path.string());
  return pool::Descriptor(fd);
}

}  // namespace

ScratchFile::ScratchFile(const std::filesystem::path& path)
    : path_(std::filesystem::path(path) += "." + unforeseen_digits()),
      remover_(path_),
      file_(remover_.making([&] { return make_file(path_); })) {}

}  // namespace sp3::workloads

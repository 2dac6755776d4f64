// Descriptors 0, 1 and 2 are a program's standard streams to whoever writes to them, whatever they
// lead to. A program that was started with them closed would be given them for its pool, and what
// it or a library prints would be written over the pool's superblock.
#pragma once

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace sp3::emu {

// The descriptor, or in its place a duplicate with a number above theirs. As `open`, returns -1 and
// sets errno: given that, or where there is no such number.
inline int above_standard(int fd) noexcept {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int higher = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return higher;
}

}  // namespace sp3::emu

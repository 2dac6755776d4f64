// Whether two names, or a name and a descriptor, lead to one file.
#pragma once

#include <sys/stat.h>

namespace sp3::base {

inline bool is_same_file(const struct stat& x, const struct stat& y) noexcept {
  return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

}  // namespace sp3::base

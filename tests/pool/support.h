// What the tests of pool/ share: small pool files, and files as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <sp3/error.h>

#include "pool/check.h"
#include "pool/pool_file.h"
#include "tests/support/errors.h"
#include "tests/support/seals.h"
#include "tests/support/temp_path.h"

namespace sp3::test {

using pool::PoolFile;
using Access = pool::PoolFile::Access;

inline constexpr std::uint64_t kSmall = std::uint64_t{256} * 1024;

inline Options small_options() {
  Options options;
  options.memory = MemoryKind::emulated;
  options.geometry = {65536, 4096, 4096, 7};  // and the library's own session
  return options;
}

inline std::unique_ptr<PoolFile> make_small(const TempPath& at) {
  return PoolFile::create(at.path(), kSmall, small_options());
}

inline std::unique_ptr<PoolFile> open_small(const TempPath& at,
                                            Access access = Access::read_write) {
  return PoolFile::open(at.path(), small_options(), access);
}

inline CheckReport check_file(const std::filesystem::path& path) {
  return pool::check(*PoolFile::open(path, Options{}, Access::read_only));
}

// Mounts a file system with so little room ("size=200k") at `directory`, for this process and its
// children only. False without the privileges for that.
inline bool mounts_small(const std::filesystem::path& directory, const char* size) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", directory.c_str(), "tmpfs", 0, size) == 0;
}

inline std::vector<std::byte> read_file(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  REQUIRE(::pread(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  ::close(fd);
  return bytes;
}

inline void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes,
                       std::uint64_t offset = 0) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0);
  REQUIRE(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
          static_cast<ssize_t>(bytes.size()));
  ::close(fd);
}

// A directory that goes with everything in it.
class TempDirectory {
 public:
  TempDirectory() { std::filesystem::create_directory(temp_.path()); }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(temp_.path(), ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return temp_.path(); }
  [[nodiscard]] std::size_t entries() const {
    using Iterator = std::filesystem::directory_iterator;
    return static_cast<std::size_t>(std::distance(Iterator(path()), Iterator()));
  }

 private:
  TempPath temp_{"directory"};
};

// Changes both superblock copies of a pool file and seals them again.
inline void edit_superblocks(const TempPath& at,
                             const std::function<void(pool::Superblock&)>& edit) {
  std::vector<std::byte> bytes = read_file(at.path());
  pool::Superblock superblock;
  std::memcpy(&superblock, bytes.data(), sizeof superblock);
  const std::uint64_t copy_bytes = superblock.copy_bytes;
  edit(superblock);
  for (const std::uint64_t offset : {std::uint64_t{0}, copy_bytes}) {
    std::memcpy(bytes.data() + offset, &superblock, sizeof superblock);
    if (superblock.copy_bytes == copy_bytes) seal_superblock(bytes.data() + offset);
  }
  write_file(at.path(), bytes);
}

}  // namespace sp3::test

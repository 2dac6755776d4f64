// A file of a given size, open for a test of Memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "emu/memory.h"
#include "tests/support/temp_path.h"

namespace sp3::test {

class ScratchFile {
 public:
  static constexpr std::uint64_t kSize = std::uint64_t{256} * 1024;
  static constexpr std::uint64_t kLogOffset = std::uint64_t{64} * 1024;
  static constexpr std::uint64_t kLogLength = std::uint64_t{64} * 1024;

  ScratchFile() : path_("emu") {
    fd_ = open(path_.string().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    REQUIRE(fd_ >= 0);
    REQUIRE(ftruncate(fd_, static_cast<off_t>(kSize)) == 0);
  }
  ~ScratchFile() { close(fd_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::string path() const { return path_.string(); }

  [[nodiscard]] std::unique_ptr<emu::Memory> map(emu::MemoryOptions options) const {
    options.log_offset = kLogOffset;
    options.log_length = kLogLength;
    return emu::Memory::map(fd_, path(), kSize, options);
  }
  [[nodiscard]] std::unique_ptr<emu::Memory> map(MemoryKind kind) const {
    emu::MemoryOptions options;
    options.kind = kind;
    return map(options);
  }

  // What another process would find: read through a descriptor of its own.
  [[nodiscard]] std::vector<std::byte> read(std::uint64_t offset, std::size_t bytes) const {
    const int fd = open(path_.string().c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    std::vector<std::byte> found(bytes);
    const ssize_t got = pread(fd, found.data(), bytes, static_cast<off_t>(offset));
    close(fd);
    REQUIRE(got == static_cast<ssize_t>(bytes));
    return found;
  }

 private:
  TempPath path_;
  int fd_ = -1;
};

// Bytes that differ from place to place and from seed to seed, and are never 0.
inline std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    made[i] = static_cast<std::byte>((i * 7 + (i >> 8) * 13 + std::size_t{seed} * 31) % 255 + 1);
  }
  return made;
}

}  // namespace sp3::test

#include "emu/block_writer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/no_cancellation.h"
#include "emu/above_standard.h"

namespace sp3::emu {
namespace {

// The open file once more, by the name that is sure to be its own: it may have been renamed.
int open_through(int fd) noexcept {
  constexpr std::string_view kPrefix = "/proc/self/fd/";
  std::array<char, 32> name{};
  char* const digits = std::copy(kPrefix.begin(), kPrefix.end(), name.begin());
  std::to_chars(digits, name.end() - 1, fd);
  return above_standard(::open(name.data(), O_RDWR | O_DIRECT | O_DSYNC | O_CLOEXEC));
}

// Of larger blocks the page cache holds and writes back wholes only: when a checkpoint stores to a
// home, the log's blocks beside it would come into the cache, and go back over what was written past
// it meanwhile.
bool caches_no_more_than(int fd, std::size_t block) noexcept {
  struct statfs system {};
  return ::fstatfs(fd, &system) == 0 && static_cast<std::size_t>(system.f_bsize) <= block;
}

// A file system may let a file be opened so and then refuse.
bool can_read(int fd, std::uint64_t offset, std::size_t block) noexcept {
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(block, block),
                                                           &std::free);
  if (memory == nullptr) return false;
  return ::pread(fd, memory.get(), block, static_cast<::off_t>(offset)) ==
         static_cast<::ssize_t>(block);
}

}  // namespace

BlockWriter::BlockWriter(int fd, std::uint64_t offset, std::size_t block, bool through) noexcept
    : fd_(fd) {
  if (!through || !caches_no_more_than(fd, block)) return;
  through_ = open_through(fd);
  if (through_ >= 0 && !can_read(through_, offset, block)) {
    ::close(through_);
    through_ = -1;
  }
}

BlockWriter::~BlockWriter() {
  if (through_ >= 0) ::close(through_);
}

int BlockWriter::write(const std::byte* from, std::uint64_t bytes,
                       std::uint64_t offset) const noexcept {
  const base::NoCancellation whole;
  const int to = writes_through() ? through_ : fd_;
  while (bytes > 0) {
    const ::ssize_t written = ::pwrite(to, from, bytes, static_cast<::off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return EIO;  // no progress and no reason given
    from += written;
    offset += static_cast<std::uint64_t>(written);
    bytes -= static_cast<std::uint64_t>(written);
  }
  return 0;
}

}  // namespace sp3::emu

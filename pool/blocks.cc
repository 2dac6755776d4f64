// A file system tells a file's extents (FIEMAP), and what lies between them are holes. Extents that
// are reserved and were never written count: they have their blocks.
//
// XFS makes sure of as much free space as fallocate is given bytes, up to 8 GiB at a time, before it
// looks whether they have blocks. So only holes are asked for.
#include "pool/blocks.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "pool/file_system.h"

namespace sp3::pool {
namespace {

constexpr std::uint32_t kExtentsAtOnce = 128;

// {} where the file system does not tell.
std::optional<std::vector<FilePart>> extents_of(int fd, std::uint64_t bytes) {
  std::vector<std::byte> buffer(sizeof(::fiemap) + kExtentsAtOnce * sizeof(::fiemap_extent));
  std::vector<FilePart> extents;
  for (std::uint64_t at = 0; at < bytes;) {
    ::fiemap map{};
    map.fm_start = at;
    map.fm_length = bytes - at;
    map.fm_extent_count = kExtentsAtOnce;
    std::memcpy(buffer.data(), &map, sizeof map);
    while (::ioctl(fd, FS_IOC_FIEMAP, buffer.data()) != 0) {
      if (errno != EINTR) return std::nullopt;
    }
    std::memcpy(&map, buffer.data(), sizeof map);
    std::uint64_t end = at;
    for (std::size_t i = 0; i < std::min(map.fm_mapped_extents, kExtentsAtOnce); ++i) {
      ::fiemap_extent extent{};
      std::memcpy(&extent, buffer.data() + sizeof map + i * sizeof extent, sizeof extent);
      extents.push_back({extent.fe_logical, extent.fe_length});
      end = std::max<std::uint64_t>(end, extent.fe_logical + extent.fe_length);
    }
    if (end == at) break;  // a hole is all that is left
    at = end;
  }
  return extents;
}

bool has_as_many_blocks(int fd, std::uint64_t bytes) {
  struct stat status {};
  constexpr std::uint64_t kUnit = 512;  // of st_blocks
  return ::fstat(fd, &status) == 0 && static_cast<std::uint64_t>(status.st_blocks) * kUnit >= bytes;
}

// False where the file system cannot do it.
bool allocate(int fd, int mode, const FilePart& part, const std::string& path) {
  // Not posix_fallocate, which reads and writes each block where the file system cannot do it.
  while (::fallocate(fd, mode, static_cast<::off_t>(part.offset),
                     static_cast<::off_t>(part.bytes)) != 0) {
    if (errno == EINTR) continue;
    if (errno == ENOSPC || errno == EDQUOT || errno == EIO) {
      throw_system_error(errno, "fallocate", path);
    }
    return false;
  }
  return true;
}

}  // namespace

std::vector<FilePart> holes_between(std::span<const FilePart> extents, std::uint64_t bytes) {
  std::vector<FilePart> holes;
  std::uint64_t at = 0;
  for (const FilePart& extent : extents) {
    const std::uint64_t begin = std::min(extent.offset, bytes);
    if (begin > at) holes.push_back({at, begin - at});
    at = std::max(at, extent.offset + extent.bytes);
  }
  if (at < bytes) holes.push_back({at, bytes - at});
  return holes;
}

void own_blocks(int fd, std::uint64_t bytes, const std::string& path) {
  const std::optional<std::vector<FilePart>> extents = extents_of(fd, bytes);
  if (!extents) {
    // In tmpfs, which would look at every page, the blocks are the pages, and exact. Elsewhere the
    // count may include what describes the file, and is the best there is.
    if (!has_as_many_blocks(fd, bytes)) allocate(fd, 0, {0, bytes}, path);
    return;
  }
  for (const FilePart& hole : holes_between(*extents, bytes)) {
    if (!allocate(fd, 0, hole, path)) return;
  }
}

}  // namespace sp3::pool

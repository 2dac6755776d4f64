// A file system tells a file's extents (FIEMAP), and what lies between them are holes. Extents that
// are reserved and were never written count: they have their blocks.
//
// XFS makes sure of as much free space as fallocate is given bytes, up to 8 GiB at a time, before
// it looks whether they have blocks. So only holes are asked for. Blocks shared with another file
// (a copy by reflink) are copied, by both files, when they are stored to. They are copied at once
// instead, a piece at a time: having copied a piece XFS makes sure of as much free space once more.
// So where space is short, pieces become smaller before it counts as missing.
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
#include <sys/statvfs.h>

#include <fmt/format.h>

#include <sp3/error.h>

#include "pool/file_system.h"

namespace sp3::pool {
namespace {

constexpr std::uint32_t kExtentsAtOnce = 128;
constexpr std::uint64_t kMostUnsharedAtOnce = std::uint64_t{64} << 20;
constexpr std::uint64_t kFewestAtOnce = std::uint64_t{1} << 20;

// Each in the order of offsets. Neighbours are one part.
struct Extents {
  std::vector<FilePart> all;
  std::vector<FilePart> shared;  // with other files
};

void append(std::vector<FilePart>& parts, const FilePart& part) {
  if (!parts.empty() && parts.back().offset + parts.back().bytes == part.offset) {
    parts.back().bytes += part.bytes;
  } else {
    parts.push_back(part);
  }
}

// {} where the file system does not tell.
std::optional<Extents> extents_of(int fd, std::uint64_t bytes) {
  std::vector<std::byte> buffer(sizeof(::fiemap) + kExtentsAtOnce * sizeof(::fiemap_extent));
  Extents extents;
  for (std::uint64_t at = 0; at < bytes;) {
    ::fiemap map;  // ends in an array of no length, for which C++ has no initialiser
    std::memset(&map, 0, sizeof map);
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
      const std::uint64_t begin = std::min<std::uint64_t>(extent.fe_logical, bytes);
      const FilePart part{begin, std::min<std::uint64_t>(extent.fe_length, bytes - begin)};
      append(extents.all, part);
      if ((extent.fe_flags & FIEMAP_EXTENT_SHARED) != 0) append(extents.shared, part);
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

// Not posix_fallocate, which reads and writes each block where the file system cannot do it: that is
// only for what is known to be a hole.
auto allocation(int fd, int mode) {
  return [=](const FilePart& piece) {
    const auto offset = static_cast<::off_t>(piece.offset);
    return ::fallocate(fd, mode, offset, static_cast<::off_t>(piece.bytes)) == 0 ? 0 : errno;
  };
}

bool is_no_space(int error) { return error == ENOSPC || error == EDQUOT; }

// Returns if the file system cannot do it.
void throw_if_failed(int error, const std::string& path) {
  if (is_no_space(error) || error == EIO) throw_system_error(error, "fallocate", path);
}

std::uint64_t free_bytes(int fd) {
  struct statvfs system {};
  if (::fstatvfs(fd, &system) != 0 || system.f_blocks == 0) return ~std::uint64_t{0};  // no limit
  return std::uint64_t{system.f_bavail} * system.f_frsize;
}

// Who is to be refused shall not have filled the file system before.
void require_room(int fd, std::uint64_t bytes, const char* what, const std::string& path) {
  const std::uint64_t left = free_bytes(fd);
  if (bytes <= left) return;
  ErrorFacts facts;
  facts.path = path;
  facts.wanted = fmt::format("{} bytes", bytes);
  facts.found = fmt::format("{} bytes", left);
  throw Error(ErrorCode::no_space, what, std::move(facts));
}

std::uint64_t bytes_of(const std::vector<FilePart>& parts) {
  std::uint64_t bytes = 0;
  for (const FilePart& part : parts) bytes += part.bytes;
  return bytes;
}

// Returns false if the file system cannot do it.
bool fill(int fd, const std::vector<FilePart>& holes, const std::string& path) {
  for (const FilePart& hole : holes) {
    std::uint64_t most = hole.bytes;
    const int error = ask_in_pieces(hole, most, allocation(fd, 0));
    throw_if_failed(error, path);
    if (error != 0) return false;
  }
  return true;
}

// The same by a zero in each block (ext2, ext3). Of what is no hole after all nothing is lost: only
// a byte that is zero is written. REQUIRES: nobody else writes to the file.
void write_to(int fd, const std::vector<FilePart>& holes, const std::string& path) {
  require_room(fd, bytes_of(holes),
               "the file has holes, and its file system has no room to fill them", path);
  for (const FilePart& hole : holes) {
    std::uint64_t most = hole.bytes;
    throw_if_failed(ask_in_pieces(hole, most,
                                  [fd](const FilePart& piece) {
                                    return ::posix_fallocate(fd, static_cast<::off_t>(piece.offset),
                                                             static_cast<::off_t>(piece.bytes));
                                  }),
                    path);
  }
}

// Of parts within the file.
void unshare(int fd, const std::vector<FilePart>& parts, const std::string& path) {
  constexpr int kMode = FALLOC_FL_UNSHARE_RANGE | FALLOC_FL_KEEP_SIZE;
  const std::uint64_t bytes = bytes_of(parts);
  if (bytes == 0) return;
  // Whether the file system can do it at all comes first.
  std::uint64_t most = kFewestAtOnce;
  const FilePart first{parts.front().offset, std::min(most, parts.front().bytes)};
  if (const int error = ask_in_pieces(first, most, allocation(fd, kMode))) {
    throw_if_failed(error, path);
    return;
  }
  require_room(fd, bytes - first.bytes,
               "the file shares blocks with a copy, and its file system has no room to part them",
               path);
  most = kMostUnsharedAtOnce;
  for (const FilePart& part : parts) {
    if (const int error = ask_in_pieces(part, most, allocation(fd, kMode), /*thrifty=*/true)) {
      throw_if_failed(error, path);
      return;
    }
  }
}

}  // namespace

int ask_in_pieces(const FilePart& whole, std::uint64_t& most,
                  const std::function<int(const FilePart& piece)>& ask, bool thrifty) {
  for (std::uint64_t done = 0; done < whole.bytes;) {
    const FilePart piece{whole.offset + done, std::min(most, whole.bytes - done)};
    const int error = ask(piece);
    if (error == 0) {
      done += piece.bytes;
    } else if (error == EINTR || (thrifty && is_no_space(error) && most > kFewestAtOnce)) {
      most = std::max(most / 2 / kFewestAtOnce, std::uint64_t{1}) * kFewestAtOnce;
    } else {
      return error;
    }
  }
  return 0;
}

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
  const std::optional<Extents> extents = extents_of(fd, bytes);
  if (!extents) {
    // In tmpfs, which would look at every page, the blocks are the pages, and exact. Elsewhere the
    // count may include what describes the file, and is the best there is.
    if (!has_as_many_blocks(fd, bytes)) fill(fd, {{0, bytes}}, path);
    return;
  }
  const std::vector<FilePart> holes = holes_between(extents->all, bytes);
  if (!fill(fd, holes, path)) write_to(fd, holes, path);
  unshare(fd, extents->shared, path);
}

void store_in_place(int fd) noexcept {
  int flags = 0;
  if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_NOCOW_FL;
  ::ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

}  // namespace sp3::pool

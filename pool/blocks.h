// Whether all of a file has blocks of its own. A store through a mapping to what has none, or
// shares them with a copy, takes one then; on a full file system it is a signal instead.
//
// Thread safety: functions without state.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sp3::pool {

struct FilePart {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const FilePart&, const FilePart&) = default;
};

// Has ask(piece), which returns 0 or errno, done for all of `whole`; returns 0 or its error. What a
// signal ends may have done nothing (tmpfs takes back all it had reserved, before Linux 6.18), and
// with a timer's next one comes before the end again. So each one halves what is asked for at once.
template <class Ask>
int ask_in_pieces(const FilePart& whole, const Ask& ask) {
  constexpr std::uint64_t kFewest = std::uint64_t{1} << 20;
  std::uint64_t most = whole.bytes;
  for (std::uint64_t done = 0; done < whole.bytes;) {
    const FilePart piece{whole.offset + done, std::min(most, whole.bytes - done)};
    const int error = ask(piece);
    if (error == 0) {
      done += piece.bytes;
    } else if (error == EINTR) {
      most = std::max(most / 2 / kFewest, std::uint64_t{1}) * kFewest;
    } else {
      return error;
    }
  }
  return 0;
}

// What of the first `bytes` bytes none of the extents covers.
// REQUIRES: extents in the order of their offsets.
std::vector<FilePart> holes_between(std::span<const FilePart> extents, std::uint64_t bytes);

// Gives the first `bytes` bytes of the file their blocks: those of a sparse copy's holes, and its
// own instead of those it shares with a copy (`cp` on XFS), which takes as long as copying them.
// Where nothing is missing nothing is asked for: some file systems want as much free space as is
// asked for, whatever of it is there already. Does nothing where the file system cannot do it:
// Btrfs parts no copies. Errors: no_space, io_error.
void own_blocks(int fd, std::uint64_t bytes, const std::string& path);

// Asks for the blocks of a new, still empty file to be stored to where they are, not anew at each
// store (Btrfs; others do so anyway). That costs the file system's checksums and compression of the
// file: the pool has its own checksums, but for homes. Does nothing where the file system cannot do
// it.
void store_in_place(int fd) noexcept;

}  // namespace sp3::pool

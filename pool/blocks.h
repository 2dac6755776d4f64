// Whether all of a file has blocks of its own. A store through a mapping to what has none, or
// shares them with a copy, takes one then; on a full file system it is a signal instead.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace sp3::pool {

struct FilePart {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const FilePart&, const FilePart&) = default;
};

// Has all of `whole` asked for, in pieces of up to `most` bytes. Returns 0 or the error of a piece;
// `ask` returns 0 or errno. A signal that ends a request halves `most`, down to 1 MiB: what it ends
// may have done nothing (tmpfs takes back all it had reserved, before Linux 6.18), and with a
// timer's next one comes before the end again. If `thrifty`, a lack of space does so too, as long as
// more than 1 MiB was asked for.
int ask_in_pieces(const FilePart& whole, std::uint64_t& most,
                  const std::function<int(const FilePart& piece)>& ask, bool thrifty = false);

// What of the first `bytes` bytes none of the extents covers.
// REQUIRES: extents in the order of their offsets.
std::vector<FilePart> holes_between(std::span<const FilePart> extents, std::uint64_t bytes);

// Gives the first `bytes` bytes of the file their blocks: those of a sparse copy's holes, and its
// own instead of those it shares with a copy (`cp` on XFS), which takes as long as copying them.
// Where nothing is missing nothing is asked for: some file systems want as much free space as is
// asked for, whatever of it is there already. Where the file system gives no blocks unwritten,
// zeros are written to holes. Does nothing where it cannot do it: Btrfs parts no copies, and where
// extents are not told (FUSE) nor blocks given, holes stay. Errors: no_space, io_error.
// REQUIRES: nobody else writes to the file.
void own_blocks(int fd, std::uint64_t bytes, const std::string& path);

// Asks for the blocks of a new, still empty file to be stored to where they are, not anew at each
// store (Btrfs; others do so anyway). That costs the file system's checksums and compression of the
// file: the pool has its own checksums, but for homes. Does nothing where the file system cannot do
// it.
void store_in_place(int fd) noexcept;

}  // namespace sp3::pool

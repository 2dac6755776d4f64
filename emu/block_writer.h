// BlockWriter: how blocks of the log get from their image in DRAM to the file.
//
// Where the file system can, past the page cache and through the disk's cache (O_DIRECT, O_DSYNC):
// each write is durable on its own when it returns. Writers do not wait for each other then, nor
// for the dirty pages of homes, which an fdatasync would write as well; flushes of the disk's cache
// that are wanted at the same time are joined by the kernel, which knows better than we do when
// that pays. Elsewhere, and where the file system's blocks are larger than ours, blocks go to the
// page cache, and the next fdatasync makes them durable.
//
// Thread safety: all members by any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sp3::emu {

class BlockWriter {
 public:
  // For the file behind `fd`, which must outlive this. `block`: the unit, and the alignment, of
  // writes; there is one at `offset`, which is read to try. `through`: false never tries.
  BlockWriter(int fd, std::uint64_t offset, std::size_t block, bool through) noexcept;
  ~BlockWriter();
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  // Whether what write() wrote is durable when it returns.
  [[nodiscard]] bool writes_through() const noexcept { return through_ >= 0; }
  // REQUIRES: whole blocks, in memory too, that nobody changes meanwhile. Returns 0 or an errno.
  [[nodiscard]] int write(const std::byte* from, std::uint64_t bytes,
                          std::uint64_t offset) const noexcept;

 private:
  const int fd_;
  int through_ = -1;  // a second description of the same file, with the flags above
};

}  // namespace sp3::emu

// PoolFile: the open, locked, mapped file and what its superblock said.
//
// Thread safety: one thread at a time, but memory() by any.
// Invariants:
//   1. While a read_write PoolFile exists, no other has the same file, in any process (flock on the
//      descriptor, O_CLOEXEC). Read-only ones exclude only a read_write one.
//   2. A child made by fork() may destroy its inherited PoolFile; the parent's lock stays.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <sp3/options.h>
#include <sp3/report.h>

#include "base/process.h"
#include "emu/memory.h"
#include "pool/layout.h"
#include "pool/slab_directory.h"
#include "pool/superblock.h"

namespace sp3::pool {

class PoolFile {
 public:
  enum class Access { read_write, read_only };

  // Creates and formats an empty pool, clean, both copies of everything written and durable. The
  // file appears under its name only when complete (made without one, or under a temporary name
  // where the file system wants one, then linked), all space reserved by posix_fallocate. Errors: as
  // sp3::Pool::create. Nothing is left behind on error.
  static std::unique_ptr<PoolFile> create(const std::filesystem::path& path, std::uint64_t size,
                                          const Options& options);

  // Opens, locks, verifies superblocks and size, maps. Does not read directory, slabs or log and
  // writes nothing. Errors: as sp3::Pool::open, except damaged_metadata and damaged_log.
  static std::unique_ptr<PoolFile> open(const std::filesystem::path& path, const Options& options,
                                        Access access);
  ~PoolFile();  // unmaps and unlocks; writes nothing

  // Of a read_only PoolFile: must not be stored to.
  [[nodiscard]] emu::Memory& memory() noexcept { return *memory_; }
  [[nodiscard]] const emu::Memory& memory() const noexcept { return *memory_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  [[nodiscard]] const SuperblockImage& superblock() const noexcept { return choice_.image; }
  // As of opening: no recovery is needed.
  [[nodiscard]] bool is_clean() const noexcept { return pool::is_clean(superblock().fixed); }
  // The copy the superblock was read from, and whether the other equals it.
  [[nodiscard]] int current_copy() const noexcept { return choice_.copy; }
  [[nodiscard]] bool copies_equal() const noexcept { return choice_.both_equal; }
  // Whether the other superblock vouches for the same metadata, so that what one copy of the
  // directory has lost may be taken from the other.
  [[nodiscard]] bool both_vouch() const noexcept {
    return choice_.other == SuperblockChoice::Other::vouches;
  }
  // Whether a bitmap of the other copy that fits the current record may be taken for a damaged one.
  // Not if the other superblock is older: if it were the record that never got to media, the old
  // bitmap would pass for the truth.
  [[nodiscard]] bool shares_bitmaps() const noexcept {
    return choice_.other != SuperblockChoice::Other::older;
  }
  // The directory to go by: the current copy's, damaged records taken from the other if both vouch.
  // Errors: damaged_metadata.
  [[nodiscard]] SlabDirectory directory() const;
  // The bitmap to go by of a slab that is in use: what that directory's record seals in the current
  // copy or, with shares_bitmaps(), in either. Errors: damaged_metadata.
  [[nodiscard]] Bitmap bitmap(const SlabDirectory& directory, std::uint32_t slab) const;
  [[nodiscard]] SlabDirectory::Identity identity() const {
    return {superblock().fixed.uuid, path_};
  }
  [[nodiscard]] int descriptor() const noexcept { return fd_; }

  // Slab 0 is for objects of this class alone, the nodes of the root directory, and the first of
  // them is its slot 0. Unless somebody says so, and type is 0, it is a slab like the others.
  void expect_roots(const ObjectClass& roots) noexcept { roots_ = roots; }
  [[nodiscard]] const ObjectClass& roots() const noexcept { return roots_; }

  // What inspect() tells, as of opening. Reads the directory for the counts.
  // Errors: damaged_metadata.
  [[nodiscard]] PoolInfo info() const;
  // The same without what only the directory tells: slabs_carved and objects.
  [[nodiscard]] PoolInfo description() const;

 private:
  PoolFile();
  static emu::MemoryOptions memory_options(const Layout& layout, const Options& options);

  base::Process owner_;  // that may unlock
  int fd_ = -1;
  std::string path_;
  Layout layout_;
  SuperblockChoice choice_;
  ObjectClass roots_;
  std::unique_ptr<emu::Memory> memory_;
};

}  // namespace sp3::pool

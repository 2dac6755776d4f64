// Which blocks a file system is asked for. It is one of our own: what it tells of a file is made
// up, and what it is asked for is noted.
#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <vector>

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "pool/blocks.h"
#include "pool/file_system.h"
#include "tests/pool/support.h"

namespace sp3::pool {
namespace {

using test::code_of;
using test::kSmall;
using test::make_small;
using test::open_small;
using test::TempDirectory;
using test::TempPath;

constexpr std::uint64_t kBlock = 4096;
constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;
constexpr int kUnshare = FALLOC_FL_UNSHARE_RANGE | FALLOC_FL_KEEP_SIZE;

struct Allocation {
  int mode;
  std::uint64_t offset;
  std::uint64_t bytes;
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

struct FileSystem {
  bool tells_extents = true;
  std::vector<::fiemap_extent> extents;
  std::uint32_t extents_at_once = 1000;
  std::uint64_t most_bytes = ~std::uint64_t{0};  // of one request, before it fails
  int error = 0;                                 // of a request of more
  int interruptions = 0;                         // of so many calls to come, each ends with EINTR
  bool tells_size = true;
  std::uint64_t free_bytes = std::uint64_t{1} << 40;
  std::vector<Allocation> allocations;
  bool gives_none_unwritten = false;  // so that posix_fallocate writes to them
  std::vector<FilePart> written_holes;
  std::uint64_t size_unit = 1;  // of files
  int file_flags = 0;
  std::vector<std::uint64_t> sizes_at_flags;  // of the files whose flags were set

  void add(std::uint64_t block, std::uint64_t blocks, std::uint32_t flags = 0) {
    ::fiemap_extent extent{};
    extent.fe_logical = block * kBlock;
    extent.fe_length = blocks * kBlock;
    extent.fe_flags = flags;
    extents.push_back(extent);
  }

  bool is_interrupted() {
    if (interruptions == 0) return false;
    --interruptions;
    errno = EINTR;
    return true;
  }

  int tell(::fiemap* map) {
    if (is_interrupted()) return -1;
    if (!tells_extents) {
      errno = EOPNOTSUPP;
      return -1;
    }
    map->fm_mapped_extents = 0;
    for (const ::fiemap_extent& extent : extents) {
      if (extent.fe_logical + extent.fe_length <= map->fm_start) continue;
      if (extent.fe_logical >= map->fm_start + map->fm_length) break;
      if (map->fm_mapped_extents == std::min(map->fm_extent_count, extents_at_once)) break;
      std::memcpy(reinterpret_cast<std::byte*>(map + 1) + map->fm_mapped_extents++ * sizeof extent,
                  &extent, sizeof extent);
    }
    return 0;
  }

  int tell_room(struct statvfs* system) const {
    *system = {};
    system->f_frsize = kBlock;
    system->f_blocks = tells_size ? ~std::uint64_t{0} : 0;
    system->f_bavail = tells_size ? free_bytes / kBlock : 0;
    return 0;
  }

  int set_flags(int fd, int to) {
    sizes_at_flags.push_back(file_size(fd, "file"));
    if (error != 0) {
      errno = error;
      return -1;
    }
    file_flags = to;
    return 0;
  }

  static constexpr std::size_t kMostCalls = 1000;  // who asks for more does not come to an end

  int allocate(const Allocation& allocation) {
    if (is_interrupted()) return -1;
    allocations.push_back(allocation);
    if (allocation.bytes <= most_bytes) return 0;
    errno = allocations.size() < kMostCalls ? error : EIO;
    return -1;
  }
};

// While it is there, that of all files.
FileSystem* in_place = nullptr;

struct InPlace : FileSystem {
  InPlace() { in_place = this; }
  ~InPlace() { in_place = nullptr; }
  InPlace(const InPlace&) = delete;
  InPlace& operator=(const InPlace&) = delete;
};

std::string code_of_owning(std::uint64_t bytes) {
  return code_of([&] {
    own_blocks(0, bytes, "pool");
    return 0;
  });
}

TEST_CASE("holes are what lies between extents, and behind the last, up to the end") {
  using Parts = std::vector<FilePart>;
  const auto holes = [](Parts extents) { return holes_between(extents, 100); };
  CHECK(holes({}) == Parts{{0, 100}});
  CHECK(holes({{0, 100}}).empty());
  CHECK(holes({{0, 128}}).empty());
  CHECK(holes({{0, 50}, {50, 50}}).empty());
  CHECK(holes({{10, 20}, {40, 50}}) == Parts{{0, 10}, {30, 10}, {90, 10}});
  CHECK(holes({{0, 60}, {20, 10}, {70, 10}}) == Parts{{60, 10}, {80, 20}});  // one inside another
  CHECK(holes({{0, 90}, {120, 10}}) == Parts{{90, 10}});
  CHECK(holes({{100, 10}}) == Parts{{0, 100}});
}

TEST_CASE("a file without holes asks for no blocks, written or only reserved") {
  InPlace files;
  files.add(0, 10);
  files.add(10, 80, FIEMAP_EXTENT_UNWRITTEN);
  files.add(90, 10, FIEMAP_EXTENT_LAST);
  files.most_bytes = 0;  // as XFS with no block free
  files.error = ENOSPC;
  own_blocks(0, 100 * kBlock, "pool");
  own_blocks(0, 100 * kBlock - 7, "pool");
  CHECK(files.allocations.empty());
}

TEST_CASE("of a file with holes the holes are asked for, however the extents are told") {
  InPlace files;
  for (std::uint64_t i = 0; i < 300; ++i) files.add(1 + 3 * i, 2);
  files.extents_at_once = GENERATE(1U, 2U, 1000U);
  files.interruptions = GENERATE(0, 2);
  own_blocks(0, 901 * kBlock + 7, "pool");
  REQUIRE(files.allocations.size() == 301);
  for (std::uint64_t i = 0; i < 300; ++i) {
    REQUIRE(files.allocations[i] == Allocation{0, 3 * i * kBlock, kBlock});
  }
  CHECK(files.allocations[300] == Allocation{0, 900 * kBlock, kBlock + 7});
}

TEST_CASE("no room for a hole is no_space, and a file system that cannot fill any is left alone") {
  InPlace files;
  files.add(1, 1);
  files.most_bytes = kBlock;
  files.error = GENERATE(ENOSPC, EDQUOT);
  CHECK(code_of_owning(3 * kBlock) == "no error");
  CHECK(code_of_owning(4 * kBlock) == "no_space");
  files.error = EOPNOTSUPP;
  CHECK(code_of_owning(4 * kBlock) == "no error");
  files.error = EIO;
  CHECK(code_of_owning(4 * kBlock) == "io_error");
}

TEST_CASE("holes are written to where a file system gives no blocks, if there is room for all") {
  InPlace files;
  files.add(1, 1);
  files.add(4, 1);
  files.most_bytes = 0;
  files.error = EOPNOTSUPP;
  files.gives_none_unwritten = true;
  files.free_bytes = 4 * kBlock;
  CHECK(code_of_owning(7 * kBlock) == "no_space");
  CHECK(files.written_holes.empty());
  files.free_bytes += kBlock;
  own_blocks(0, 7 * kBlock, "pool");
  CHECK(files.written_holes ==
        std::vector<FilePart>{{0, kBlock}, {2 * kBlock, 2 * kBlock}, {5 * kBlock, 2 * kBlock}});
  files.tells_extents = false;  // so that nobody knows where they are
  own_blocks(0, 7 * kBlock, "pool");
  CHECK(files.written_holes.size() == 3);
}

TEST_CASE("what is shared with a copy gets blocks of its own, a piece at a time") {
  constexpr std::uint64_t kPiece = std::uint64_t{64} << 20;
  InPlace files;
  files.add(0, 10, FIEMAP_EXTENT_SHARED);
  files.add(10, 10);
  files.add(30, 20, FIEMAP_EXTENT_SHARED);
  files.add(50, 40'000, FIEMAP_EXTENT_SHARED | FIEMAP_EXTENT_LAST);
  files.interruptions = GENERATE(0, 3);
  own_blocks(0, 40'050 * kBlock - 7, "pool");
  CHECK(files.allocations ==
        std::vector<Allocation>{
            {0, 20 * kBlock, 10 * kBlock},
            {kUnshare, 0, 10 * kBlock},  // to see whether it can be done
            {kUnshare, 0, 10 * kBlock},
            {kUnshare, 30 * kBlock, kPiece},
            {kUnshare, 30 * kBlock + kPiece, kPiece},
            {kUnshare, 30 * kBlock + 2 * kPiece, 40'020 * kBlock - 2 * kPiece - 7}});
}

TEST_CASE("where space is short smaller pieces are asked for before that is no_space") {
  InPlace files;
  files.add(0, 32 * kMegabyte / kBlock, FIEMAP_EXTENT_SHARED);
  files.add(64 * kMegabyte / kBlock, 6 * kMegabyte / kBlock, FIEMAP_EXTENT_SHARED);
  files.add(70 * kMegabyte / kBlock, kMegabyte / kBlock, FIEMAP_EXTENT_LAST);
  files.error = ENOSPC;
  files.most_bytes = 0;
  CHECK(code_of_owning(32 * kMegabyte) == "no_space");
  CHECK(files.allocations.back().bytes == kMegabyte);
  files.allocations.clear();
  files.most_bytes = 5 * kMegabyte;
  // Only the hole is too large.
  CHECK(code_of_owning(71 * kMegabyte) == "no_space");
  files.add(32 * kMegabyte / kBlock, 32 * kMegabyte / kBlock);
  std::rotate(files.extents.begin() + 1, files.extents.end() - 1, files.extents.end());
  files.allocations.clear();
  CHECK(code_of_owning(71 * kMegabyte) == "no error");
  std::erase_if(files.allocations, [](const Allocation& a) { return a.bytes > 5 * kMegabyte; });
  REQUIRE(files.allocations.size() == 11);
  for (std::uint64_t i = 0; i < 8; ++i) {
    CHECK(files.allocations[i + 1].offset == i * 4 * kMegabyte);
  }
  CHECK(files.allocations[9].bytes == 4 * kMegabyte);
  CHECK(files.allocations[10].bytes == 2 * kMegabyte);
  // No piece but the first is asked for where all of them do not fit.
  files.allocations.clear();
  files.free_bytes = 36 * kMegabyte;
  CHECK(code_of_owning(71 * kMegabyte) == "no_space");
  CHECK(files.allocations == std::vector<Allocation>{{kUnshare, 0, kMegabyte}});
  // That piece has its room by then.
  files.free_bytes += kMegabyte;
  CHECK(code_of_owning(71 * kMegabyte) == "no error");
}

// Else who opens a pool there would ask for it for ever.
TEST_CASE("where not even the smallest piece fits that is no_space") {
  InPlace files;
  files.add(0, 4, FIEMAP_EXTENT_SHARED);  // there is room for these, and so the rest is asked for
  files.add(4, 2 * kMegabyte / kBlock);
  files.add(4 + 2 * kMegabyte / kBlock, 64 * kMegabyte / kBlock, FIEMAP_EXTENT_SHARED);
  files.most_bytes = 4 * kBlock;
  files.error = ENOSPC;
  CHECK(code_of_owning(66 * kMegabyte + 4 * kBlock) == "no_space");
  CHECK(files.allocations.back().bytes == kMegabyte);
}

// As some do that are not on this machine.
TEST_CASE("a file system that does not tell how large it is counts as one with room") {
  InPlace files;
  files.tells_size = false;
  files.add(0, 2 * kMegabyte / kBlock, FIEMAP_EXTENT_SHARED);
  CHECK(code_of_owning(2 * kMegabyte) == "no error");
}

// As of tmpfs before Linux 6.18, which takes back what it has reserved when a signal comes.
TEST_CASE("where a timer's signals end long requests for blocks shorter ones come to an end") {
  constexpr std::uint64_t kBytes = 70 * kMegabyte + 12'345;
  const TempPath at("timer");
  InPlace files;
  files.tells_extents = GENERATE(false, true);
  files.most_bytes = GENERATE(1U, 5U) * kMegabyte;
  files.error = EINTR;
  if (files.tells_extents) {
    CHECK(code_of_owning(kBytes) == "no error");
  } else {
    CHECK(code_of([&] {
            NewFile(at.path()).reserve(kBytes);
            return 0;
          }) == "no error");
  }
  std::uint64_t reserved = 0;
  for (const Allocation& part : files.allocations) {
    if (part.bytes > files.most_bytes) continue;
    CHECK(part.offset == reserved);
    reserved += part.bytes;
  }
  CHECK(reserved == kBytes);
}

TEST_CASE("no room to part from a copy is no_space, and a file system that cannot is left alone") {
  const TempPath at("shared");
  make_small(at).reset();
  InPlace files;
  files.add(0, kSmall / kBlock, FIEMAP_EXTENT_SHARED | FIEMAP_EXTENT_LAST);
  open_small(at, PoolFile::Access::read_only).reset();
  CHECK(files.allocations.empty());
  files.most_bytes = 0;
  files.error = ENOSPC;
  CHECK(code_of([&] { return open_small(at); }) == "no_space");
  files.error = EOPNOTSUPP;
  open_small(at).reset();
  CHECK(files.allocations.back().bytes == kSmall);
}

// Btrfs takes the flag of an empty file only.
TEST_CASE("a new pool asks to be stored to in place, as long as its file is empty") {
  InPlace files;
  files.file_flags = FS_NOATIME_FL;
  files.error = GENERATE(0, EOPNOTSUPP);
  const TempPath at("in-place");
  make_small(at).reset();
  CHECK(files.file_flags == (files.error == 0 ? FS_NOATIME_FL | FS_NOCOW_FL : FS_NOATIME_FL));
  CHECK(files.sizes_at_flags == std::vector<std::uint64_t>{0});
}

TEST_CASE("a file system that rounds sizes up is refused while nothing is there yet") {
  const TempDirectory directory;
  InPlace files;
  files.size_unit = 2 * kMegabyte;
  const auto error = test::error_of(
      [&] { return PoolFile::create(directory.path() / "pool", kSmall, test::small_options()); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::unsupported);
  CHECK(error->facts().wanted == "262144 bytes");
  CHECK(error->facts().found == "2097152 bytes");
  CHECK(directory.entries() == 0);
}

TEST_CASE("where extents are not told all is asked for, if there are fewer blocks than bytes") {
  const TempPath at("untold");
  make_small(at).reset();
  const Descriptor file = open_regular_file(at.path(), true);
  InPlace files;
  files.tells_extents = false;
  own_blocks(file.get(), kSmall, "pool");
  CHECK(files.allocations.empty());
  REQUIRE(::ftruncate(file.get(), 2 * kSmall) == 0);
  own_blocks(file.get(), 2 * kSmall, "pool");
  CHECK(files.allocations == std::vector<Allocation>{{0, 0, 2 * kSmall}});
}

TEST_CASE("a sound pool is opened on a file system without a free block") {
  const TempPath at("full");
  make_small(at).reset();
  InPlace files;
  files.add(0, kSmall / kBlock, FIEMAP_EXTENT_LAST);
  files.most_bytes = 0;
  files.error = ENOSPC;
  open_small(at).reset();
  CHECK(files.allocations.empty());
  files.extents.pop_back();
  CHECK(code_of([&] { return open_small(at); }) == "no_space");
}

// The real one, in the directory for temporary files: those of the other tests are in memory.
TEST_CASE("holes of a file on a disk are filled") {
  const TempPath in_memory("holes");
  const auto path = std::filesystem::temp_directory_path() / in_memory.path().filename();
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  REQUIRE(file.get() >= 0);
  REQUIRE(::unlink(path.c_str()) == 0);
  const std::vector<char> data(8 * kBlock, 'x');
  REQUIRE(::ftruncate(file.get(), 64 * kBlock) == 0);
  for (const std::uint64_t block : {4U, 24U, 44U}) {
    REQUIRE(::pwrite(file.get(), data.data(), data.size(), static_cast<off_t>(block * kBlock)) ==
            static_cast<ssize_t>(data.size()));
  }
  own_blocks(file.get(), 64 * kBlock, path.string());
  struct stat status {};
  REQUIRE(::fstat(file.get(), &status) == 0);
  if (const auto blocks = status.st_blocks; blocks * 512 < status.st_size) {
    // Then this file system cannot do it.
    (void)::fallocate(file.get(), 0, 0, status.st_size);
    REQUIRE(::fstat(file.get(), &status) == 0);
    CHECK(status.st_blocks == blocks);
  }
  std::vector<char> found(data.size());
  REQUIRE(::pread(file.get(), found.data(), found.size(), 24 * kBlock) ==
          static_cast<ssize_t>(found.size()));
  CHECK(found == data);
}

}  // namespace
}  // namespace sp3::pool

// These stand in front of the C library's.
extern "C" {

int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (sp3::pool::in_place != nullptr && request == FS_IOC_FIEMAP) {
    return sp3::pool::in_place->tell(static_cast<::fiemap*>(argument));
  }
  if (sp3::pool::in_place != nullptr && request == FS_IOC_GETFLAGS) {
    *static_cast<int*>(argument) = sp3::pool::in_place->file_flags;
    return 0;
  }
  if (sp3::pool::in_place != nullptr && request == FS_IOC_SETFLAGS) {
    return sp3::pool::in_place->set_flags(fd, *static_cast<const int*>(argument));
  }
  return static_cast<int>(::syscall(SYS_ioctl, fd, request, argument));
}

int fstatvfs(int /*fd*/, struct statvfs* system) noexcept {
  if (sp3::pool::in_place != nullptr) return sp3::pool::in_place->tell_room(system);
  errno = ENOSYS;  // nobody else asks
  return -1;
}

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  if (sp3::pool::in_place != nullptr) {
    return sp3::pool::in_place->allocate(
        {mode, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(bytes)});
  }
  return static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, bytes));
}

int posix_fallocate(int fd, off_t offset, off_t bytes) {
  if (sp3::pool::in_place != nullptr && sp3::pool::in_place->gives_none_unwritten) {
    sp3::pool::in_place->written_holes.push_back(
        {static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(bytes)});
    return 0;
  }
  if (sp3::pool::in_place != nullptr && fallocate(fd, 0, offset, bytes) != 0) return errno;
  if (sp3::pool::in_place != nullptr) {
    const auto unit = static_cast<off_t>(sp3::pool::in_place->size_unit);
    bytes = (offset + bytes + unit - 1) / unit * unit - offset;
  }
  return ::syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}
}

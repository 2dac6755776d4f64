// What file memory asks of the operating system. Only the power goes to show what was not asked, so
// the calls come by here on their way.
#include "emu/memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "emu/block_writer.h"
#include "tests/emu/scratch_file.h"

using namespace sp3;
using namespace sp3::emu;
using sp3::test::pattern;
using sp3::test::ScratchFile;

namespace {

constexpr std::uint64_t kLog = ScratchFile::kLogOffset;

// The calls, while `watched` is a descriptor.
int watched = -1;
int syncs = 0;
int writes = 0;
int interruptions = 0;   // of so many calls to come, each ends with EINTR
bool cut_short = false;  // each write writes a part
bool stuck = false;      // each write writes nothing
int sync_error = 0;      // the errno of each sync, 0 for none
long file_block = 0;     // of the file system, 0 for what it says

bool is_interrupted() {
  if (interruptions == 0) return false;
  --interruptions;
  errno = EINTR;
  return true;
}

struct Watch {
  explicit Watch(int fd) {
    watched = fd;
    syncs = writes = interruptions = 0;
    cut_short = stuck = false;
    sync_error = 0;
    file_block = 0;
  }
  ~Watch() { watched = -1; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
};

// A word of file memory that was stored and flushed, but not fenced, in a file that is watched.
struct FlushedWord {
  ScratchFile file;
  std::unique_ptr<Memory> memory = file.map(MemoryKind::file);
  FlushCounts counts;
  Watch watch{file.fd()};

  FlushedWord() {
    const std::uint64_t word = 1;
    memory->store(0, &word, sizeof word);
    flush();
  }
  void flush() { memory->flush(0, sizeof(std::uint64_t), counts); }
  IoStatus fence() { return memory->fence(counts); }
};

// Of the mapping through which this process stores to the file, how much is to be written.
long dirty_kilobytes(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  long dirty = 0;
  bool wanted = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ') && line.find(':') > line.find(' ')) {
      wanted = line.find(" rw-s ") != std::string::npos && line.ends_with(path);
    } else if (wanted &&
               (line.starts_with("Shared_Dirty:") || line.starts_with("Private_Dirty:"))) {
      dirty += std::stol(line.substr(line.find(':') + 1));
    }
  }
  return dirty;
}

}  // namespace

// These stand in front of the C library's.
extern "C" {

int fdatasync(int fd) {
  if (fd == watched) {
    ++syncs;
    if (is_interrupted()) return -1;
    if (sync_error != 0) {
      errno = sync_error;
      return -1;
    }
  }
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

int fstatfs(int fd, struct statfs* system) {
  const auto result = static_cast<int>(::syscall(SYS_fstatfs, fd, system));
  if (fd == watched && result == 0 && file_block != 0) system->f_bsize = file_block;
  return result;
}

ssize_t pwrite(int fd, const void* from, std::size_t bytes, off_t offset) {
  if (fd == watched) {
    ++writes;
    if (is_interrupted()) return -1;
    if (stuck) return 0;
    if (cut_short) bytes = std::min<std::size_t>(bytes, kFileBlock);
  }
  return ::syscall(SYS_pwrite64, fd, from, bytes, offset);
}
}

TEST_CASE("file memory: a fence is one fdatasync of the pool's file, however often interrupted") {
  FlushedWord word;
  CHECK(syncs == 0);
  REQUIRE(word.fence().ok());
  CHECK(syncs == 1);
  word.flush();
  interruptions = 2;
  REQUIRE(word.fence().ok());
  CHECK(syncs == 4);
}

TEST_CASE("file memory: what was not synced because of an error stays so") {
  FlushedWord word;
  sync_error = EIO;
  CHECK(word.fence().error == EIO);
  CHECK(word.counts.fences == 0);
  sync_error = 0;
  // Nothing was flushed since: whoever tries again must not be told that it is durable now.
  CHECK(word.fence().error == EIO);
  CHECK(word.counts.fences == 0);
  CHECK(syncs == 1);
}

TEST_CASE("a block writer goes on where a write ended early or was interrupted") {
  const ScratchFile file;
  const auto data = pattern(4 * kFileBlock, 2);
  const BlockWriter writer(file.fd(), kLog, kFileBlock, /*through=*/false);
  const Watch watch(file.fd());
  cut_short = true;
  interruptions = 1;
  CHECK(writer.write(data.data(), data.size(), kLog) == 0);
  CHECK(writes == 5);
  CHECK(file.read(kLog, data.size()) == data);
}

TEST_CASE("a block writer that gets no further gives up") {
  const ScratchFile file;
  const auto data = pattern(kFileBlock, 3);
  const BlockWriter writer(file.fd(), kLog, kFileBlock, /*through=*/false);
  const Watch watch(file.fd());
  stuck = true;
  CHECK(writer.write(data.data(), data.size(), kLog) == EIO);
  CHECK(writes == 1);
}

// A page whose writing failed for an earlier process counts as written, and no sync would write it.
TEST_CASE("file memory: what was found is to be written again, as it is") {
  const ScratchFile file;
  const auto data = pattern(3 * kFileBlock, 4);
  REQUIRE(::pwrite(file.fd(), data.data(), data.size(), kLog) == static_cast<ssize_t>(data.size()));
  REQUIRE(::fsync(file.fd()) == 0);
  const auto memory = file.map(MemoryKind::file);
  FlushCounts counts;
  memory->flush(kLog, data.size(), counts);
  CHECK(dirty_kilobytes(file.path()) == 0);
  memory->flush_found(kLog + 10, 2 * kFileBlock, counts);
  CHECK(dirty_kilobytes(file.path()) >= 12);
  CHECK(std::memcmp(memory->view() + kLog, data.data(), data.size()) == 0);
}

TEST_CASE("a block writer takes the page cache where that holds larger blocks") {
  const ScratchFile file;
  const Watch watch(file.fd());
  const auto writes_through = [&](long block) {
    file_block = block;
    return BlockWriter(file.fd(), kLog, kFileBlock, true).writes_through();
  };
  if (!writes_through(0)) return;  // nothing can be written past this file system's cache
  CHECK(writes_through(kFileBlock));
  CHECK(writes_through(kFileBlock / 4));
  CHECK_FALSE(writes_through(2 * kFileBlock));
  CHECK_FALSE(writes_through(1L << 16));
}

// The file kind: the log's image, how its blocks get to the file, and the shared fdatasync.
#include "emu/memory.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/same_file.h"
#include "emu/block_writer.h"
#include "emu/shared_sync.h"
#include "tests/emu/scratch_file.h"

using namespace sp3;
using namespace sp3::emu;
using sp3::test::pattern;
using sp3::test::ScratchFile;

namespace {
constexpr std::uint64_t kLog = ScratchFile::kLogOffset;
constexpr std::uint64_t kBlock = kFileBlock;
const std::vector<std::byte> kZeroBlock(kBlock);

MemoryOptions file_options(bool write_through) {
  MemoryOptions options;
  options.kind = MemoryKind::file;
  options.write_through = write_through;
  return options;
}

// How many descriptors this process has through which a write to the file is durable at once and
// leaves no copy in the page cache. No program that it starts has them.
int descriptors_that_write_through(const ScratchFile& file) {
  struct stat wanted {};
  REQUIRE(fstat(file.fd(), &wanted) == 0);
  int found = 0;
  for (int fd = 0; fd < 256; ++fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0 || !base::is_same_file(status, wanted)) continue;
    const int flags = fcntl(fd, F_GETFL);
    if ((flags & O_DSYNC) == 0 || (flags & O_DIRECT) == 0) continue;
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    ++found;
  }
  return found;
}
}  // namespace

TEST_CASE("file memory: stored log bytes are in the image only until they are flushed") {
  const ScratchFile file;
  const auto memory = file.map(MemoryKind::file);
  const auto data = pattern(200, 1);
  memory->log_store(kLog, data.data(), data.size(), true);
  CHECK(std::memcmp(memory->log_view(kLog), data.data(), data.size()) == 0);
  CHECK(file.read(kLog, kBlock) == kZeroBlock);
  CHECK(std::memcmp(memory->view() + kLog, kZeroBlock.data(), kBlock) == 0);

  FlushCounts counts;
  REQUIRE(memory->log_flush(kLog, data.size(), true, counts).ok());
  REQUIRE(memory->fence(counts).ok());
  CHECK(file.read(kLog, data.size()) == data);
  CHECK(std::memcmp(memory->view() + kLog, data.data(), data.size()) == 0);
  CHECK(counts.lines == kBlock / 64);
  CHECK(counts.fences == 1);
}

TEST_CASE("file memory: blocks in the page cache become durable by a sync, others need none") {
  const ScratchFile file;
  const bool write_through = GENERATE(false, true);
  auto memory = file.map(file_options(write_through));
  const bool through = descriptors_that_write_through(file) == 1;
  if (!write_through) CHECK_FALSE(through);
  if (write_through && !through) WARN("this file system does not let writes through");
  const auto data = pattern(3 * kBlock, 6);
  memory->log_store(kLog + kBlock, data.data(), data.size(), false);
  FlushCounts counts;
  for (std::uint64_t n = 1; n <= 3; ++n) {
    REQUIRE(memory->log_flush(kLog + n * kBlock, 64, false, counts).ok());
    CHECK(counts.lines == n * kBlock / 64);
    CHECK(counts.fences == (through ? n : n - 1));
    CHECK((counts.pending_lines == 0) == through);
    REQUIRE(memory->fence(counts).ok());
    CHECK(counts.fences == n);
    CHECK(counts.pending_lines == 0);
  }
  CHECK(memory->syncs() == (through ? 0 : 3));
  CHECK(file.read(kLog + kBlock, data.size()) == data);
  CHECK(std::memcmp(memory->view() + kLog + kBlock, data.data(), data.size()) == 0);
  memory.reset();
  CHECK(descriptors_that_write_through(file) == 0);
}

TEST_CASE("file memory: the view and the page cache follow what is written past them") {
  const ScratchFile file;
  const auto memory = file.map(MemoryKind::file);
  FlushCounts counts;
  for (unsigned round = 0; round < 4; ++round) {
    const auto data = pattern(kBlock, round);
    // Both have the block now, as it was.
    const auto before = file.read(kLog, kBlock);
    REQUIRE(std::memcmp(memory->view() + kLog, before.data(), kBlock) == 0);
    memory->log_store(kLog, data.data(), data.size(), false);
    REQUIRE(memory->log_flush(kLog, kBlock, false, counts).ok());
    REQUIRE(memory->fence(counts).ok());
    CHECK(file.read(kLog, kBlock) == data);
    CHECK(std::memcmp(memory->view() + kLog, data.data(), kBlock) == 0);
  }
}

TEST_CASE("a block writer takes the page cache where blocks cannot be read past it") {
  const ScratchFile file;
  const auto data = pattern(kBlock, 7);
  const auto write_by = [&](const BlockWriter& writer) {
    REQUIRE(writer.write(data.data(), data.size(), kLog) == 0);
    CHECK(file.read(kLog, kBlock) == data);
  };
  SECTION("none was asked for") {
    const BlockWriter writer(file.fd(), kLog, kBlock, false);
    CHECK_FALSE(writer.writes_through());
    write_by(writer);
  }
  SECTION("there is no such block") {
    const BlockWriter writer(file.fd(), ScratchFile::kSize, kBlock, true);
    CHECK_FALSE(writer.writes_through());
    write_by(writer);
  }
  SECTION("there is no such file") {
    CHECK_FALSE(BlockWriter(-1, kLog, kBlock, true).writes_through());
  }
  CHECK(descriptors_that_write_through(file) == 0);
}

TEST_CASE("file memory: a flush writes the whole blocks of its range and no others") {
  const ScratchFile file;
  const auto memory = file.map(MemoryKind::file);
  const auto data = pattern(4 * kBlock, 2);
  memory->log_store(kLog, data.data(), data.size(), false);
  FlushCounts counts;
  REQUIRE(memory->log_flush(kLog + kBlock + 100, kBlock, false, counts)
              .ok());  // touches blocks 1 and 2
  REQUIRE(memory->fence(counts).ok());
  CHECK(counts.lines == 2 * kBlock / 64);
  CHECK(file.read(kLog, kBlock) == kZeroBlock);
  CHECK(file.read(kLog + 3 * kBlock, kBlock) == kZeroBlock);
  const auto written = file.read(kLog + kBlock, 2 * kBlock);
  CHECK(std::memcmp(written.data(), data.data() + kBlock, 2 * kBlock) == 0);
  REQUIRE(memory->log_flush(kLog, 0, false, counts).ok());
  CHECK(counts.pending_lines == 0);
}

TEST_CASE("file memory: homes go through the mapping, and a fence makes them durable") {
  const ScratchFile file;
  const auto memory = file.map(MemoryKind::file);
  const auto data = pattern(100, 3);
  memory->store(20, data.data(), data.size());
  FlushCounts counts;
  memory->flush(20, data.size(), counts);
  CHECK(counts.lines == 2);
  REQUIRE(memory->fence(counts).ok());
  CHECK(counts.fences == 1);
  CHECK(memory->syncs() == 1);
  CHECK(file.read(20, data.size()) == data);
  REQUIRE(memory->fence(counts).ok());
  CHECK(memory->syncs() == 1);
}

TEST_CASE("file memory: after reopening, view shows the log and its image starts empty") {
  const ScratchFile file;
  const auto data = pattern(kBlock, 4);
  FlushCounts counts;
  {
    const auto memory = file.map(MemoryKind::file);
    memory->log_store(kLog, data.data(), data.size(), false);
    REQUIRE(memory->log_flush(kLog, data.size(), false, counts).ok());
    REQUIRE(memory->fence(counts).ok());
  }
  const auto memory = file.map(MemoryKind::file);
  CHECK(std::memcmp(memory->view() + kLog, data.data(), data.size()) == 0);
  CHECK(std::memcmp(memory->log_view(kLog), kZeroBlock.data(), kBlock) == 0);
}

TEST_CASE("file memory: discarding frees whole pages of the image and leaves the file alone") {
  const ScratchFile file;
  const auto memory = file.map(MemoryKind::file);
  const auto data = pattern(3 * kBlock, 5);
  memory->log_store(kLog, data.data(), data.size(), false);
  FlushCounts counts;
  REQUIRE(memory->log_flush(kLog, data.size(), false, counts).ok());
  memory->log_discard(kLog + 100, 2 * kBlock);  // only the second page is covered whole
  CHECK(std::memcmp(memory->log_view(kLog), data.data(), kBlock) == 0);
  CHECK(std::memcmp(memory->log_view(kLog + kBlock), kZeroBlock.data(), kBlock) == 0);
  CHECK(std::memcmp(memory->log_view(kLog + 2 * kBlock), data.data() + 2 * kBlock, kBlock) == 0);
  CHECK(file.read(kLog, data.size()) == data);
  memory->log_discard(kLog + 10, 20);
}

TEST_CASE("file memory: a failed write is reported and nothing is counted") {
  const ScratchFile file;
  const int read_only = open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(read_only >= 0);
  MemoryOptions options;
  options.kind = MemoryKind::file;
  options.log_offset = kLog;
  options.log_length = ScratchFile::kLogLength;
  const auto memory = Memory::map(read_only, file.path(), ScratchFile::kSize, options);
  FlushCounts counts;
  CHECK(memory->log_flush(kLog, 64, false, counts).error == EBADF);
  CHECK(counts.lines == 0);
  CHECK(counts.pending_lines == 0);
  close(read_only);
}

TEST_CASE("concurrent waiters share syncs, and each gets one that started after its call") {
  using namespace std::chrono_literals;
  constexpr int kThreads = 8;
  constexpr std::uint64_t kWaits = 25;
  std::atomic<std::uint64_t> written{0};  // what a crash would lose
  std::atomic<std::uint64_t> durable{0};
  SharedSync sync([&] {
    const std::uint64_t seen = written.load();
    std::this_thread::sleep_for(1ms);
    durable.store(seen);
    return 0;
  });
  std::atomic<bool> lost{false};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < kWaits; ++i) {
        const std::uint64_t mine = written.fetch_add(1) + 1;
        if (sync.wait() != 0 || durable.load() < mine) lost = true;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_FALSE(lost);
  CHECK(sync.syncs() >= kWaits);
  CHECK(sync.syncs() < kThreads * kWaits);
}

TEST_CASE("a failed sync is reported to all its waiters and to everyone after it") {
  using namespace std::chrono_literals;
  std::atomic<int> calls{0};
  SharedSync sync([&] {
    const int call = ++calls;
    std::this_thread::sleep_for(2ms);
    return call == 2 ? ENOSPC : 0;
  });
  CHECK(sync.wait() == 0);
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  threads.reserve(6);
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] { failed += sync.wait() == ENOSPC ? 1 : 0; });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failed == 6);
  CHECK(sync.wait() == ENOSPC);
  CHECK(calls == 2);  // nobody tries again
}

// The one who leads meets a cancellation point in the sync, the other one waits for that.
TEST_CASE("threads that are to be cancelled get to the ends of their syncs") {
  using namespace std::chrono_literals;
  std::atomic<bool> goes_on{false};
  SharedSync sync([&] {
    while (!goes_on) ::usleep(100);
    return 0;
  });
  std::atomic<int> waiting{0};
  std::atomic<int> synced{0};
  const auto wait_cancelled = [&] {
    ::pthread_cancel(::pthread_self());
    ++waiting;
    if (sync.wait() == 0) ++synced;
  };
  std::thread one(wait_cancelled);
  std::thread other(wait_cancelled);
  while (waiting < 2) ::usleep(100);
  std::this_thread::sleep_for(50ms);
  goes_on = true;
  one.join();
  other.join();
  CHECK(synced == 2);
}

TEST_CASE("file memory: threads that fence at once are all durable") {
  const ScratchFile file;
  const auto memory = file.map(MemoryKind::file);
  constexpr unsigned kThreads = 4;
  constexpr unsigned kRecords = 4;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      FlushCounts counts;
      for (unsigned r = 0; r < kRecords; ++r) {
        const std::uint64_t at = kLog + (t * kRecords + r) * kBlock;
        const auto data = pattern(kBlock, t * kRecords + r);
        memory->log_store(at, data.data(), data.size(), false);
        if (!memory->log_flush(at, data.size(), false, counts).ok() || !memory->fence(counts).ok())
          ++failures;
      }
      if (counts.fences != kRecords || counts.lines != kRecords * kBlock / 64) ++failures;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(memory->syncs() <= std::uint64_t{kThreads} * kRecords);
  for (unsigned i = 0; i < kThreads * kRecords; ++i) {
    CHECK(file.read(kLog + i * kBlock, kBlock) == pattern(kBlock, i));
  }
}

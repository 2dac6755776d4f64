#include <cerrno>
#include <csignal>
#include <string>
#include <string_view>
#include <utility>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "emu/step.h"
#include "pool/check.h"
#include "pool/file_system.h"
#include "tests/pool/support.h"
#include "tests/support/skip.h"

namespace sp3::pool {
namespace {

// What is synced while a file is awaited, and whether that had its name by then.
struct Synced {
  bool is_directory;
  bool is_named;
  friend bool operator==(const Synced&, const Synced&) = default;
};
std::filesystem::path awaited;
std::vector<Synced> synced;
int directory_error = 0;  // what syncing a directory fails with, if it does

// In front of the C library's, below.
int sync_noted(int fd) {
  struct stat status {};
  if (!awaited.empty() && ::fstat(fd, &status) == 0) {
    synced.push_back({S_ISDIR(status.st_mode), std::filesystem::exists(awaited)});
    if (S_ISDIR(status.st_mode) && directory_error != 0) {
      errno = directory_error;
      return -1;
    }
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

using test::code_of;
using test::error_of;
using test::in_child;
using test::kSmall;
using test::mounts_small;
using test::small_options;
using test::TempDirectory;

TEST_CASE("a new pool is clean, empty and described by its options") {
  const TempDirectory directory;
  const auto path = directory.path() / "pool";
  PoolInfo created;
  {
    const auto pool = PoolFile::create(path, kSmall, small_options());
    created = pool->info();
    CHECK(pool->copies_equal());
    CHECK(pool->layout().size == kSmall);
  }
  CHECK(directory.entries() == 1);
  const PoolInfo info = PoolFile::open(path, small_options(), PoolFile::Access::read_only)->info();
  CHECK(info.path == path.string());
  CHECK(info.uuid == created.uuid);
  CHECK(info.format_version == 1);
  CHECK(info.size == kSmall);
  CHECK(info.geometry.log_size == 65536);
  CHECK(info.geometry.segment_size == 4096);
  CHECK(info.geometry.slab_size == 4096);
  CHECK(info.geometry.max_sessions == 7);
  CHECK(info.generation == 1);
  CHECK(info.checkpoint_number == 0);
  CHECK(info.checkpoint_floor == 0);
  CHECK(info.clean);
  CHECK(info.slabs_total > 30);
  CHECK(info.slabs_carved == 0);
  CHECK(info.objects == 0);
}

TEST_CASE("what create returns is what open would return") {
  const test::TempPath temp("same");
  SuperblockImage image;
  {
    const auto pool = test::make_small(temp);
    image = pool->superblock();
    CHECK(pool->current_copy() == 1);
    CHECK(pool->copies_equal());
    CHECK(pool->both_vouch());
  }
  const auto pool = test::open_small(temp);
  const SuperblockImage& again = pool->superblock();
  CHECK(again.heads == image.heads);
  CHECK(again.heads == std::vector<base::Lsn>(8, 1));
  CHECK(again.fixed.number == 1);
  CHECK(again.fixed.uuid == image.fixed.uuid);
  CHECK(pool->current_copy() == 1);
  CHECK(pool->copies_equal());
  CHECK(pool->both_vouch());
}

TEST_CASE("a new pool is none that is expected") {
  const TempDirectory directory;
  Options options = small_options();
  options.expect_uuid.emplace();
  CHECK(code_of([&] { return PoolFile::create(directory.path() / "pool", kSmall, options); }) ==
        "invalid_argument");
  CHECK(directory.entries() == 0);
}

TEST_CASE("two pools have different UUIDs") {
  const test::TempPath one("uuid");
  const test::TempPath two("uuid");
  CHECK(test::make_small(one)->identity().uuid != test::make_small(two)->identity().uuid);
}

// So that other programs take it for what it is.
TEST_CASE("a pool's UUID is one of random numbers, by RFC 9562") {
  for (int i = 0; i < 20; ++i) {
    const test::TempPath at("uuid");
    const std::string uuid = format_uuid(test::make_small(at)->identity().uuid);
    INFO(uuid);
    CHECK(uuid[14] == '4');
    CHECK(std::string_view("89ab").find(uuid[19]) != std::string_view::npos);
  }
}

TEST_CASE("a pool file is for its owner only and has all its space") {
  const TempDirectory directory;
  const ::mode_t umask = ::umask(0);
  for (const MemoryKind kind : {MemoryKind::emulated, MemoryKind::file}) {
    const auto path = directory.path() / to_string(kind);
    Options options = small_options();
    options.memory = kind;
    PoolFile::create(path, kSmall + 100, options);
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0600);
    CHECK(status.st_size == kSmall + 100);
    CHECK(status.st_blocks * 512 >= status.st_size);
  }
  ::umask(0777);
  const auto path = directory.path() / "umask";
  PoolFile::create(path, kSmall, small_options());
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  ::umask(umask);
}

TEST_CASE("a pool may be named without a directory") {
  const TempDirectory directory;
  CHECK(in_child([&] {
          if (::chdir(directory.path().c_str()) != 0) return 1;
          PoolFile::create("pool", kSmall, small_options());
          return test::check_file("pool").sound() ? 0 : 2;
        }) == 0);
  CHECK(directory.entries() == 1);
}

TEST_CASE("create refuses impossible places and leaves nothing behind") {
  const TempDirectory directory;
  const auto code = [](const std::filesystem::path& path) {
    return code_of([&] { return PoolFile::create(path, kSmall, small_options()); });
  };
  namespace fs = std::filesystem;
  const fs::path& base = directory.path();
  fs::create_directory(base / "directory");
  fs::create_symlink("loop", base / "loop");
  fs::create_symlink("nowhere", base / "dangling");
  fs::create_directory_symlink("directory", base / "to_directory");
  REQUIRE(::mkfifo((base / "fifo").c_str(), 0600) == 0);
  test::write_file(base / "file", {});
  const std::size_t entries = directory.entries();

  CHECK(code(base / "file") == "already_exists");
  CHECK(code(base / "fifo") == "already_exists");
  CHECK(code(base / "loop") == "already_exists");
  CHECK(code(base / "dangling") == "already_exists");
  CHECK(code(base / "directory") == "is_a_directory");
  CHECK(code(base / "to_directory") == "is_a_directory");
  CHECK(code(base / "new" / "") == "is_a_directory");
  CHECK(code(base / ".") == "is_a_directory");
  CHECK(code("/") == "is_a_directory");
  CHECK(code("") == "invalid_argument");
  CHECK(code(base / "missing" / "pool") == "not_found");
  CHECK(code(base / "file" / "pool") == "not_found");
  CHECK(code(base / "loop" / "pool") == "not_found");
  CHECK(code(base / std::string(300, 'x')) == "invalid_argument");
  CHECK(code(base / std::string("nul\0l", 5)) == "invalid_argument");
  CHECK(directory.entries() == entries);
  CHECK(fs::file_size(base / "file") == 0);
  CHECK(code(base / std::string(255, 'x')) == "no error");
  CHECK(directory.entries() == entries + 1);
}

TEST_CASE("create refuses impossible options before it touches the directory") {
  const TempDirectory directory;
  const auto path = directory.path() / "pool";
  CHECK(code_of([&] { return PoolFile::create(path, 0, {}); }) == "invalid_argument");
  CHECK(error_of([&] { return PoolFile::create(path, 0, {}); })->facts().path == path);
  CHECK(code_of([&] { return PoolFile::create(path, ~std::uint64_t{0}, {}); }) ==
        "invalid_argument");
  Options options = small_options();
  options.geometry.slab_size = 5000;
  CHECK(code_of([&] { return PoolFile::create(path, kSmall, options); }) == "invalid_argument");
  options = small_options();
  options.memory = MemoryKind::file;
  options.latency.nanoseconds = 100;
  CHECK(code_of([&] { return PoolFile::create(path, kSmall, options); }) == "unsupported");
  CHECK(directory.entries() == 0);
}

TEST_CASE("a file size limit is no_space and leaves nothing behind") {
  const TempDirectory directory;
  const int code = in_child([&] {
    const ::rlimit limit{kSmall / 2, kSmall / 2};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    const auto path = directory.path() / "pool";
    return code_of([&] { return PoolFile::create(path, kSmall, small_options()); }) == "no_space"
               ? 0
               : 2;
  });
  CHECK(code == 0);
  CHECK(directory.entries() == 0);
}

TEST_CASE("a full file system is no_space and leaves nothing behind") {
  const TempDirectory directory;
  const int code = in_child([&] {
    // Needs privileges; without them the file size limit above is all that can be tested.
    if (!mounts_small(directory.path(), "size=200k")) return 77;
    const auto path = directory.path() / "pool";
    const auto found = error_of([&] { return PoolFile::create(path, kSmall, small_options()); });
    if (!found || found->code() != ErrorCode::no_space) return 1;
    if (found->facts().wanted != std::to_string(kSmall) + " bytes") return 4;
    if (directory.entries() != 0) return 2;
    Options options = small_options();
    options.geometry.log_size = 16384;
    options.geometry.max_sessions = 3;
    PoolFile::create(path, kSmall / 2, options);
    return directory.entries() == 1 ? 0 : 3;
  });
  if (code == 77) SP3_SKIP("not privileged to mount a file system");
  CHECK(code == 0);
}

TEST_CASE("create needs to write to the directory") {
  const TempDirectory directory;
  REQUIRE(::chmod(directory.path().c_str(), 0555) == 0);
  const int code = in_child([&] {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return 1;
    const auto path = directory.path() / "pool";
    return code_of([&] { return PoolFile::create(path, kSmall, small_options()); }) ==
                   "permission_denied"
               ? 0
               : 2;
  });
  CHECK(code == 0);
  CHECK(directory.entries() == 0);
}

TEST_CASE("a crash while a pool is created leaves nothing or a whole pool") {
  for (std::uint64_t step = 1; step <= 5; ++step) {
    const TempDirectory directory;
    const auto path = directory.path() / "pool";
    const int code = in_child([&] {
      emu::arm_kill(emu::Step::pool_create, step);
      PoolFile::create(path, kSmall, small_options());
      return 0;
    });
    CAPTURE(step);
    CHECK(code == (step <= 4 ? 128 + SIGKILL : 0));
    const bool linked = step >= 4;
    CHECK(directory.entries() == (linked ? 1 : 0));
    if (linked) CHECK(test::check_file(path).sound());
  }
}

TEST_CASE("a new file appears whole under its name, by either naming") {
  for (const auto naming : {NewFile::Naming::unnamed, NewFile::Naming::temporary}) {
    const TempDirectory directory;
    const auto path = directory.path() / "file";
    {
      NewFile abandoned(path, naming);
      abandoned.reserve(10000);
    }
    CHECK(directory.entries() == 0);
    {
      NewFile file(path, naming);
      file.reserve(10000);
      CHECK_FALSE(std::filesystem::exists(path));
      file.publish();
      CHECK(std::filesystem::file_size(path) == 10000);
      // Its creator still holds it.
      const Descriptor other = open_regular_file(path, true);
      CHECK(code_of([&] {
              lock_file(other.get(), false, path);
              return 0;
            }) == "pool_in_use");
    }
    CHECK(directory.entries() == 1);
  }
}

TEST_CASE("a new file is durable before it has its name, and then the name, by either naming") {
  const TempDirectory directory;
  const auto naming = GENERATE(NewFile::Naming::unnamed, NewFile::Naming::temporary);
  awaited = directory.path() / "file";
  synced.clear();
  NewFile file(awaited, naming);
  file.reserve(4096);
  file.publish();
  awaited.clear();
  CHECK(synced == std::vector<Synced>{{false, false}, {true, true}});
}

TEST_CASE("a new file whose name may not be durable is gone, unless directories cannot be synced") {
  const TempDirectory directory;
  awaited = directory.path() / "file";
  directory_error = GENERATE(EIO, EINVAL);
  const auto code = code_of([] {
    PoolFile::create(awaited, kSmall, small_options());
    return 0;
  });
  const bool can_sync = std::exchange(directory_error, 0) == EIO;
  awaited.clear();
  CHECK(code == (can_sync ? "io_error" : "no error"));
  CHECK(directory.entries() == (can_sync ? 0 : 1));
}

TEST_CASE("of two that create the same file one wins and the other's is gone, by either naming") {
  for (const auto naming : {NewFile::Naming::unnamed, NewFile::Naming::temporary}) {
    const TempDirectory directory;
    const auto path = directory.path() / "file";
    {
      NewFile loser(path, naming);
      NewFile winner(path, naming);
      winner.reserve(5000);
      loser.reserve(6000);
      winner.publish();
      CHECK(code_of([&] {
              loser.publish();
              return 0;
            }) == "already_exists");
    }
    CHECK(directory.entries() == 1);
    CHECK(std::filesystem::file_size(path) == 5000);
  }
}

}  // namespace
}  // namespace sp3::pool

extern "C" int fsync(int fd) { return sp3::pool::sync_noted(fd); }

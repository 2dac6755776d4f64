#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <catch2/catch.hpp>

#include "pool/file_system.h"
#include "tests/pool/support.h"
#include "tests/support/skip.h"

namespace sp3::pool {
namespace {

using test::code_of;
using test::edit_superblocks;
using test::error_of;
using test::in_child;
using test::kSmall;
using test::make_small;
using test::mounts_small;
using test::open_small;
using test::read_file;
using test::small_options;
using test::TempDirectory;
using test::TempPath;
using Access = PoolFile::Access;

std::string code_at(const std::filesystem::path& path, Access access = Access::read_write) {
  return code_of([&] { return PoolFile::open(path, small_options(), access); });
}

// As a daemon, and whatever a library prints in it.
TEST_CASE("where standard streams are closed nothing that is printed gets into a pool") {
  const auto kind = GENERATE(MemoryKind::emulated, MemoryKind::file);
  const TempPath at("streams");
  CHECK(in_child([&] {
          Options options = small_options();
          options.memory = kind;
          for (const int stream : {0, 1, 2}) ::close(stream);
          const auto is_written = [] {
            return ::write(0, "x", 1) > 0 || ::write(1, "x", 1) > 0 || ::write(2, "x", 1) > 0;
          };
          {
            const auto made = PoolFile::create(at.path(), kSmall, options);
            if (is_written()) return 1;
          }
          const auto opened = PoolFile::open(at.path(), options, Access::read_write);
          return is_written() ? 2 : 0;
        }) == 0);
  CHECK(test::check_file(at.path()).sound());
}

TEST_CASE("what is not a regular file is refused, whatever it is") {
  namespace fs = std::filesystem;
  const TempDirectory directory;
  const fs::path& base = directory.path();
  fs::create_symlink("loop", base / "loop");
  fs::create_symlink("nowhere", base / "dangling");
  test::write_file(base / "file", {});
  REQUIRE(::mkfifo((base / "fifo").c_str(), 0600) == 0);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (base / "socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(listener, reinterpret_cast<::sockaddr*>(&address), sizeof address) == 0);

  for (const Access access : {Access::read_write, Access::read_only}) {
    CHECK(code_at(base, access) == "is_a_directory");
    CHECK(code_at("/", access) == "is_a_directory");
    CHECK(code_at(base / "fifo", access) == "is_a_directory");
    CHECK(code_at(base / "socket", access) == "is_a_directory");
    CHECK(code_at("/dev/null", access) == "is_a_directory");
    CHECK(code_at("/dev/zero", access) == "is_a_directory");
    CHECK(code_at(base / "loop", access) == "not_found");
    CHECK(code_at(base / "dangling", access) == "not_found");
    CHECK(code_at(base / "missing", access) == "not_found");
    CHECK(code_at(base / "file" / "pool", access) == "not_found");
    CHECK(code_at("", access) == "invalid_argument");
    CHECK(code_at(base / std::string(300, 'x'), access) == "invalid_argument");
    CHECK(code_at(base / std::string("file\0x", 6), access) == "invalid_argument");
    CHECK(code_at(base / "file", access) == "not_a_pool");
  }
  ::close(listener);
}

TEST_CASE("an error of opening names the path") {
  const auto error =
      error_of([] { return PoolFile::open("/missing/pool", {}, Access::read_only); });
  REQUIRE(error);
  CHECK(error->facts().path == "/missing/pool");
  CHECK_THAT(error->what(), Catch::Contains("/missing/pool"));
}

TEST_CASE("a pool that may not be read or written is permission_denied") {
  const TempPath temp("permission");
  make_small(temp);
  const auto as_other = [&temp](::mode_t mode, Access access) {
    REQUIRE(::chmod(temp.path().c_str(), mode) == 0);
    return in_child([&] {
      if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return 1;
      const std::string code = code_at(temp.path(), access);
      return code == "permission_denied" ? 2 : code == "no error" ? 3 : 4;
    });
  };
  CHECK(as_other(0, Access::read_write) == 2);
  CHECK(as_other(0, Access::read_only) == 2);
  CHECK(as_other(0444, Access::read_write) == 2);
  CHECK(as_other(0444, Access::read_only) == 3);
}

// What a sparse copy leaves out: nothing but zeros.
bool punch_log(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const bool punched =
      ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kSmall / 4, kSmall / 8) == 0;
  ::close(fd);
  return punched;
}

std::uint64_t allocated(const std::filesystem::path& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST_CASE("opening for writing gives a sparse copy all its space, reading does not") {
  const TempPath at("sparse");
  make_small(at).reset();
  if (!punch_log(at.path())) SP3_SKIP("no file system for sparse files");
  const std::uint64_t sparse = allocated(at.path());
  REQUIRE(sparse < kSmall);
  open_small(at, Access::read_only).reset();
  CHECK(allocated(at.path()) == sparse);
  open_small(at, Access::read_write).reset();
  CHECK(allocated(at.path()) >= kSmall);
}

TEST_CASE("a sparse copy on a full file system is no_space and not touched") {
  const TempDirectory directory;
  const int code = in_child([&] {
    if (!mounts_small(directory.path(), "size=300k")) return 77;
    const auto path = directory.path() / "pool";
    PoolFile::create(path, kSmall, small_options()).reset();
    if (!punch_log(path)) return 77;
    const std::vector<std::byte> before = read_file(path);
    const int fd = ::open((directory.path() / "rest").c_str(), O_WRONLY | O_CREAT, 0600);
    while (::write(fd, before.data(), 4096) > 0) {
    }
    ::close(fd);
    const std::string found =
        code_of([&] { return PoolFile::open(path, small_options(), Access::read_write); });
    if (found != "no_space") return 1;
    // Reading a hole takes a page as well.
    if (code_of([&] { return PoolFile::open(path, small_options(), Access::read_only); }) !=
        "no_space") {
      return 3;
    }
    return read_file(path) == before ? 0 : 2;
  });
  if (code == 77) SP3_SKIP("not privileged to mount a file system");
  CHECK(code == 0);
}

// As file servers do, for as long as a client keeps what it has read or written to itself.
TEST_CASE("a pool of which another process has a lease is in use") {
  const TempPath at("leased");
  make_small(at).reset();
  const int code = in_child([&] {
    ::signal(SIGIO, SIG_IGN);  // which asks the holder for it
    const Descriptor holder(::open(at.path().c_str(), O_RDWR | O_CLOEXEC));
    if (::fcntl(holder.get(), F_SETLEASE, F_WRLCK) != 0) return 77;
    for (const Access access : {Access::read_only, Access::read_write}) {
      if (code_of([&] { return open_small(at, access); }) != "pool_in_use") return 1;
    }
    return 0;
  });
  if (code == 77) SP3_SKIP("no file system for leases");
  CHECK(code == 0);
  open_small(at, Access::read_write).reset();
}

// A write behind the limit is a signal, in the middle of a commit.
TEST_CASE("a pool beyond the file size limit is not opened to be written by blocks") {
  const TempPath at("limited");
  make_small(at).reset();
  const int code = in_child([&] {
    const ::rlimit limit{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    // What is stored through a mapping knows no limit.
    PoolFile::open(at.path(), small_options(), Access::read_write).reset();
    Options options = small_options();
    options.memory = MemoryKind::file;
    PoolFile::open(at.path(), options, Access::read_only).reset();
    return code_of([&] { return PoolFile::open(at.path(), options, Access::read_write); }) ==
                   "no_space"
               ? 0
               : 2;
  });
  CHECK(code == 0);
}

TEST_CASE("an open pool is in use for everyone else, in this process and others") {
  const TempPath temp("in-use");
  auto pool = make_small(temp);
  CHECK(code_at(temp.path()) == "pool_in_use");
  CHECK(code_at(temp.path(), Access::read_only) == "pool_in_use");
  CHECK(in_child([&] { return code_at(temp.path()) == "pool_in_use" ? 0 : 1; }) == 0);
  pool.reset();
  CHECK(in_child([&] { return code_at(temp.path()) == "no error" ? 0 : 1; }) == 0);
  pool = open_small(temp);
  CHECK(code_at(temp.path()) == "pool_in_use");
  // By another name, too.
  const TempPath link("link");
  std::filesystem::create_symlink(temp.path(), link.path());
  CHECK(code_at(link.path()) == "pool_in_use");
  const TempPath second("second");
  std::filesystem::create_hard_link(temp.path(), second.path());
  CHECK(code_at(second.path()) == "pool_in_use");
}

TEST_CASE("readers share a pool and exclude a writer") {
  const TempPath temp("readers");
  make_small(temp);
  const auto one = open_small(temp, Access::read_only);
  auto two = open_small(temp, Access::read_only);
  CHECK(code_at(temp.path()) == "pool_in_use");
  two.reset();
  CHECK(code_at(temp.path()) == "pool_in_use");
  CHECK(one->info().clean);
}

TEST_CASE("a writer waits for a reader that is soon done") {
  const TempPath temp("soon");
  make_small(temp);
  auto reader = open_small(temp, Access::read_only);
  std::thread waits([&] { CHECK(code_at(temp.path()) == "no error"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  reader.reset();
  waits.join();
}

TEST_CASE("a child that destroys its inherited pool leaves the parent's lock") {
  const TempPath temp("fork");
  auto pool = make_small(temp);
  CHECK(in_child([&] {
          pool.reset();
          return 0;
        }) == 0);
  CHECK(code_at(temp.path()) == "pool_in_use");
  CHECK(pool->memory().view()[0] == std::byte{'S'});
}

// The mapping is not inherited, and so its place is free.
TEST_CASE("a child that destroys its inherited pool leaves alone what it has there itself") {
  const TempPath temp("fork");
  auto pool = make_small(temp);
  CHECK(in_child([&] {
          auto* const place = const_cast<std::byte*>(pool->memory().view());
          void* const mine = ::mmap(place, kSmall, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
          if (mine != place) return 1;
          place[kSmall - 1] = std::byte{7};
          pool.reset();
          return place[kSmall - 1] == std::byte{7} ? 0 : 2;
        }) == 0);
}

TEST_CASE("a pool closed by its owner is free though a child still lives") {
  const TempPath temp("fork");
  auto pool = make_small(temp);
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(ends[1]);
    char nothing = 0;
    ::_exit(::read(ends[0], &nothing, 1) == 0 ? 0 : 1);  // until the parent closes its end
  }
  ::close(ends[0]);
  pool.reset();
  CHECK(code_at(temp.path()) == "no error");
  ::close(ends[1]);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
}

TEST_CASE("opening and reading writes nothing") {
  const TempPath temp("untouched");
  make_small(temp);
  const auto before = test::read_file(temp.path());
  open_small(temp);
  CHECK(open_small(temp, Access::read_only)->info().clean);
  CHECK(test::read_file(temp.path()) == before);
}

TEST_CASE("a pool is opened only if it is the one expected") {
  const TempPath temp("uuid");
  Options options = small_options();
  const auto uuid = make_small(temp)->identity().uuid;
  options.expect_uuid = uuid;
  CHECK(code_of([&] { return PoolFile::open(temp.path(), options, Access::read_write); }) ==
        "no error");
  ++(*options.expect_uuid)[15];
  const auto error =
      error_of([&] { return PoolFile::open(temp.path(), options, Access::read_write); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::wrong_uuid);
  CHECK(error->facts().wanted == format_uuid(*options.expect_uuid));
  CHECK(error->facts().found == format_uuid(uuid));
}

TEST_CASE("unknown features are treated as their kind demands") {
  const TempPath temp("features");
  make_small(temp);
  edit_superblocks(temp, [](Superblock& s) { s.compat = 0x80; });
  CHECK(code_at(temp.path()) == "no error");
  CHECK(open_small(temp, Access::read_only)->info().compat_features == 0x80);

  edit_superblocks(temp, [](Superblock& s) { s.ro_compat = 0x40; });
  CHECK(code_at(temp.path(), Access::read_only) == "no error");
  const auto error = error_of([&] { return open_small(temp); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::wrong_version);
  CHECK_THAT(error->what(), Catch::Contains("0x40"));
  CHECK(error->facts().offset.has_value());

  edit_superblocks(temp, [](Superblock& s) { s.incompat = 0x20; });
  CHECK(code_at(temp.path()) == "wrong_version");
  CHECK(code_at(temp.path(), Access::read_only) == "wrong_version");
  edit_superblocks(temp, [](Superblock& s) { s.version = 2; });
  CHECK(code_at(temp.path()) == "wrong_version");
}

TEST_CASE("a truncated or extended pool is of wrong size") {
  const TempPath temp("size");
  make_small(temp);
  for (const std::uint64_t size :
       {kSmall + 1, kSmall * 2, kSmall - 1, kSmall / 2, std::uint64_t{8192}, std::uint64_t{5000},
        std::uint64_t{100}, std::uint64_t{8}}) {
    std::filesystem::resize_file(temp.path(), size);
    CAPTURE(size);
    for (const Access access : {Access::read_write, Access::read_only}) {
      CHECK(code_at(temp.path(), access) == "wrong_size");
    }
  }
  std::filesystem::resize_file(temp.path(), 0);
  CHECK(code_at(temp.path()) == "not_a_pool");
}

TEST_CASE("text and zeros are not a pool") {
  const TempPath temp("text");
  std::vector<std::byte> bytes(kSmall);
  test::write_file(temp.path(), bytes);
  CHECK(code_at(temp.path()) == "not_a_pool");
  std::fill(bytes.begin(), bytes.end(), std::byte{'a'});
  test::write_file(temp.path(), bytes);
  const auto error = error_of([&] { return open_small(temp); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::not_a_pool);
  CHECK(error->facts().found == "0x6161616161616161");
}

}  // namespace
}  // namespace sp3::pool

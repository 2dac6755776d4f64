// What file systems do not have, or do in parts.
#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "pool/file_system.h"
#include "tests/pool/support.h"

namespace sp3::pool {
namespace {

// In front of the C library's, below.
struct Lacks {
  int unnamed_files = 0;  // what O_TMPFILE fails with, if it does
  int kept_names = 0;     // and RENAME_NOREPLACE
  int locks = 0;          // and flock
  std::function<void()> before_lock{};
  int locks_first = 0;  // that come before that one
  int interrupted_opens = 0;
  std::size_t most_bytes_read = ~std::size_t{0};
  int interrupted_reads = 0;
  int reads = 0;  // what all fail with that come after the interrupted ones, if they do
};
Lacks lacks;

struct WithLacks {
  explicit WithLacks(const Lacks& those) { lacks = those; }
  ~WithLacks() { lacks = {}; }
  WithLacks(const WithLacks&) = delete;
  WithLacks& operator=(const WithLacks&) = delete;
};

using test::code_of;
using test::kSmall;
using test::small_options;
using test::TempDirectory;

TEST_CASE("pools are made, and no file replaced, where files must have names and links") {
  const int unnamed_files = GENERATE(EOPNOTSUPP, EISDIR, EINVAL);
  const int kept_names = GENERATE(0, EINVAL, ENOSYS);
  CAPTURE(unnamed_files, kept_names);
  const TempDirectory directory;
  const WithLacks without({.unnamed_files = unnamed_files, .kept_names = kept_names});
  const auto path = directory.path() / "pool";
  { const auto pool = PoolFile::create(path, kSmall, small_options()); }
  CHECK(directory.entries() == 1);
  CHECK(test::check_file(path).sound());

  const auto other = directory.path() / "other";
  {
    NewFile late(other);
    late.reserve(4096);
    std::ofstream(other) << "somebody else's";
    CHECK(code_of([&] {
            late.publish();
            return 0;
          }) == "already_exists");
  }
  CHECK(directory.entries() == 2);
  CHECK(std::filesystem::file_size(other) == std::string_view("somebody else's").size());
}

TEST_CASE("a name that cannot be given is an error, and nothing is left") {
  const TempDirectory directory;
  const WithLacks without({.unnamed_files = EOPNOTSUPP, .kept_names = EACCES});
  CHECK(code_of([&] {
          PoolFile::create(directory.path() / "pool", kSmall, small_options());
          return 0;
        }) == "permission_denied");
  CHECK(directory.entries() == 0);
}

// As NFS, whose locks are another service's.
TEST_CASE("a new file that cannot be locked is an error, and nothing is left") {
  const TempDirectory directory;
  const WithLacks without({.unnamed_files = GENERATE(0, EOPNOTSUPP), .locks = ENOLCK});
  CHECK(code_of([&] {
          PoolFile::create(directory.path() / "pool", kSmall, small_options());
          return 0;
        }) == "io_error");
  CHECK(directory.entries() == 0);
}

TEST_CASE("a file is removed by a name that is still its own") {
  const TempDirectory directory;
  const auto path = directory.path() / "file";
  const auto make = [&] {
    NewFile file(path);
    file.publish();
    return file.release();
  };
  const Descriptor first = make();
  std::filesystem::rename(path, directory.path() / "elsewhere");
  const Descriptor second = make();
  remove_file(path, first.get());
  CHECK(std::filesystem::exists(path));
  remove_file(path, second.get());
  CHECK_FALSE(std::filesystem::exists(path));
  remove_file(path, second.get());
  CHECK(std::filesystem::exists(directory.path() / "elsewhere"));
}

TEST_CASE("a file that loses its name before it is locked is not the one that is opened") {
  const TempDirectory directory;
  const auto path = directory.path() / "pool";
  const auto other = directory.path() / "other";
  PoolFile::create(path, kSmall, small_options());
  PoolFile::create(other, kSmall, small_options());
  const auto uuid = [](const auto& file) {
    return PoolFile::open(file, small_options(), PoolFile::Access::read_only)
        ->superblock()
        .fixed.uuid;
  };
  const auto wanted = uuid(other);
  {
    const WithLacks replaced({.before_lock = [&] { std::filesystem::rename(other, path); }});
    const auto pool = PoolFile::open(path, small_options(), PoolFile::Access::read_write);
    CHECK(pool->superblock().fixed.uuid == wanted);
    CHECK(code_of([&] {
            return PoolFile::open(path, small_options(), PoolFile::Access::read_write);
          }) == "pool_in_use");
  }
  const WithLacks removed({.before_lock = [&] { std::filesystem::remove(path); }});
  CHECK(code_of([&] {
          return PoolFile::open(path, small_options(), PoolFile::Access::read_write);
        }) == "not_found");
}

// It shares their lock for an instant, to find out that they are only that. Two who kept it would
// keep each other out for ever.
TEST_CASE("who waits for those that look at a pool leaves its lock to others meanwhile") {
  const TempDirectory directory;
  const auto path = directory.path() / "pool";
  PoolFile::create(path, kSmall, small_options());
  Descriptor reader = open_regular_file(path, false);
  lock_file(reader.get(), false, path.string());
  bool had = false;
  const auto meanwhile = [&] {
    reader = Descriptor();
    const Descriptor other = open_regular_file(path, true);
    had = ::flock(other.get(), LOCK_EX | LOCK_NB) == 0;
  };
  // Alone, shared, and again.
  const WithLacks no_lock({.before_lock = meanwhile, .locks_first = 2});
  const Descriptor opened = open_locked(path, true);
  CHECK(had);
  CHECK(opened.get() >= 0);
}

TEST_CASE("an opening that is interrupted is begun again") {
  const TempDirectory directory;
  const auto path = directory.path() / "pool";
  PoolFile::create(path, kSmall, small_options());
  const WithLacks slow({.interrupted_opens = 2});
  PoolFile::open(path, small_options(), PoolFile::Access::read_write);
  CHECK(lacks.interrupted_opens == 0);
}

TEST_CASE("what is read in parts, with interruptions, is read whole") {
  const TempDirectory directory;
  const auto path = directory.path() / "file";
  std::string written(1000, 'x');
  for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<char>('a' + i % 23);
  std::ofstream(path) << written;
  const Descriptor file = open_regular_file(path, false);
  const WithLacks in_parts({.most_bytes_read = 7, .interrupted_reads = 5});
  std::string read(written.size(), ' ');
  read_prefix(file.get(), read.data(), read.size(), path);
  CHECK(read == written);
  CHECK(lacks.interrupted_reads == 0);

  read.resize(written.size() + 1);
  const auto error = test::error_of([&] {
    read_prefix(file.get(), read.data(), read.size(), path);
    return 0;
  });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::wrong_size);
  CHECK(error->facts().wanted == "1001 bytes");
  CHECK(error->facts().found == "1000 bytes");
}

TEST_CASE("what the system says is told as the code that says what to do about it") {
  const std::pair<int, ErrorCode> codes[] = {{ENOENT, ErrorCode::not_found},
                                             {ENOTDIR, ErrorCode::not_found},
                                             {ELOOP, ErrorCode::not_found},
                                             {EEXIST, ErrorCode::already_exists},
                                             {EISDIR, ErrorCode::is_a_directory},
                                             {EACCES, ErrorCode::permission_denied},
                                             {EPERM, ErrorCode::permission_denied},
                                             {EROFS, ErrorCode::permission_denied},
                                             {ETXTBSY, ErrorCode::permission_denied},
                                             {ENOSPC, ErrorCode::no_space},
                                             {EDQUOT, ErrorCode::no_space},
                                             {EFBIG, ErrorCode::no_space},
                                             {ENAMETOOLONG, ErrorCode::invalid_argument},
                                             {EWOULDBLOCK, ErrorCode::pool_in_use},
                                             {EIO, ErrorCode::io_error},
                                             {EBADF, ErrorCode::io_error}};
  for (const auto& [error, code] : codes) {
    CAPTURE(error);
    CHECK(code_of([error = error] {
            throw_system_error(error, "call", "path");
            return 0;
          }) == to_string(code));
  }
}

// A signal, or an endless wait, if the superblocks were mapped or asked for again.
TEST_CASE("a superblock that the disk does not give is an error") {
  const TempDirectory directory;
  const auto path = directory.path() / "pool";
  PoolFile::create(path, kSmall, small_options());
  const WithLacks unreadable({.interrupted_reads = 1, .reads = EIO});
  CHECK(test::in_child([&] {
          const auto code = code_of(
              [&] { return PoolFile::open(path, small_options(), PoolFile::Access::read_only); });
          return code == "io_error" ? 0 : 1;
        }) == 0);
}

}  // namespace
}  // namespace sp3::pool

extern "C" {
int openat(int directory, const char* name, int flags, ...) {
  ::mode_t mode = 0;
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, ::mode_t);
    va_end(arguments);
  }
  if ((flags & O_TMPFILE) == O_TMPFILE && sp3::pool::lacks.unnamed_files != 0) {
    errno = sp3::pool::lacks.unnamed_files;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_openat, directory, name, flags, mode));
}

int renameat2(int from, const char* old_name, int to, const char* name, unsigned flags) noexcept {
  if (sp3::pool::lacks.kept_names != 0) {
    errno = sp3::pool::lacks.kept_names;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_renameat2, from, old_name, to, name, flags));
}

int open(const char* name, int flags, ...) {
  ::mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, ::mode_t);
    va_end(arguments);
  }
  if (sp3::pool::lacks.interrupted_opens > 0) {
    --sp3::pool::lacks.interrupted_opens;
    errno = EINTR;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, name, flags, mode));
}

int flock(int file, int operation) noexcept {
  if (operation != LOCK_UN && sp3::pool::lacks.locks_first-- == 0) {
    if (const auto act = std::exchange(sp3::pool::lacks.before_lock, nullptr)) act();
  }
  if (sp3::pool::lacks.locks != 0) {
    errno = sp3::pool::lacks.locks;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_flock, file, operation));
}

ssize_t pread(int file, void* to, std::size_t bytes, off_t offset) {
  if (sp3::pool::lacks.interrupted_reads > 0) {
    --sp3::pool::lacks.interrupted_reads;
    errno = EINTR;
    return -1;
  }
  if (sp3::pool::lacks.reads != 0) {
    errno = sp3::pool::lacks.reads;
    return -1;
  }
  const std::size_t part = std::min(bytes, sp3::pool::lacks.most_bytes_read);
  return ::syscall(SYS_pread64, file, to, part, offset);
}
}

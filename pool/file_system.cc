// Errors by errno, and how a pool file comes into being.
//
//   directory:   (nothing)    (nothing)          pool
//   file:        unnamed      unnamed, complete  complete
//                      fsync(file)   linkat        fsync(directory)
//
// A crash before linkat leaves nothing, since the file system reclaims unnamed files. Where the
// file system has no O_TMPFILE, or /proc is not there to link from, a temporary name takes its
// place.
#include "pool/file_system.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include <sp3/error.h>

#include "base/same_file.h"
#include "emu/above_standard.h"
#include "emu/step.h"
#include "pool/blocks.h"

namespace sp3::pool {
namespace {

// How long an opener waits for those that only look at the pool.
constexpr std::chrono::seconds kPatience{1};

// False if another lock excludes it.
bool try_lock(int fd, int kind, const std::string& path) {
  while (::flock(fd, kind | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) throw_system_error(errno, "flock", path);
  }
  return true;
}

constexpr ::mode_t kMode = 0600;

ErrorCode code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
      return ErrorCode::not_found;
    case EEXIST:
      return ErrorCode::already_exists;
    case EISDIR:
    case ENXIO:   // a fifo or a socket
    case ENODEV:  // a device without a driver
      return ErrorCode::is_a_directory;
    case EACCES:
    case EPERM:
    case EROFS:
    case ETXTBSY:
      return ErrorCode::permission_denied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return ErrorCode::no_space;
    case ENAMETOOLONG:
    case EILSEQ:
      return ErrorCode::invalid_argument;
    case EWOULDBLOCK:
      return ErrorCode::pool_in_use;
    default:
      return ErrorCode::io_error;
  }
}

const char* kind_of(::mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a fifo";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  return "no regular file";
}

void require_regular(const struct stat& status, const std::string& path) {
  if (S_ISREG(status.st_mode)) return;
  ErrorFacts facts;
  facts.path = path;
  facts.wanted = "a regular file";
  facts.found = kind_of(status.st_mode);
  throw Error(ErrorCode::is_a_directory, "a pool is a regular file", std::move(facts));
}

// The operating system would silently stop at a NUL and use another file.
void require_possible(const std::filesystem::path& path) {
  ErrorFacts facts;
  if (path.empty()) {
    facts.wanted = "a path";
    facts.found = "an empty one";
    throw Error(ErrorCode::invalid_argument, "impossible path", std::move(facts));
  }
  if (path.native().find('\0') == std::string::npos) return;
  facts.path = path.native().substr(0, path.native().find('\0'));
  facts.wanted = "a path without NUL characters";
  throw Error(ErrorCode::invalid_argument, "impossible path", std::move(facts));
}

// Whether the name, in a directory or AT_FDCWD, is one of the open file's.
bool leads_to(int directory, const char* name, int flags, int fd) noexcept {
  struct stat named {};
  struct stat opened {};
  return ::fstatat(directory, name, &named, flags) == 0 && ::fstat(fd, &opened) == 0 &&
         base::is_same_file(named, opened);
}

// Removes the name if it is still one of the open file's.
void remove_name(int directory, const char* name, int fd) noexcept {
  if (leads_to(directory, name, AT_SYMLINK_NOFOLLOW, fd)) ::unlinkat(directory, name, 0);
}

int open_file(const char* name, int flags) {
  int fd = -1;
  do {
    fd = ::open(name, flags);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

// 0 or errno.
int sync_file(int fd) {
  while (::fsync(fd) != 0) {
    if (errno == EINTR) continue;
    // Some file systems cannot sync directories; then there is nothing to wait for either.
    return errno == EINVAL ? 0 : errno;
  }
  return 0;
}

std::string random_name() {
  std::uint64_t number = 0;
  random_bytes(&number, sizeof number, ".");
  return fmt::format(".sp3-{:016x}.tmp", number);
}

// Bytes of the file that have no page yet, if it is in memory: there the blocks are the pages.
std::uint64_t missing_pages(int fd, std::uint64_t bytes, struct statfs& system) {
  struct stat status {};
  constexpr std::uint64_t kUnit = 512;  // of st_blocks
  if (::fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC || ::fstat(fd, &status) != 0) {
    return bytes;
  }
  const std::uint64_t there = static_cast<std::uint64_t>(status.st_blocks) * kUnit;
  return bytes - std::min(bytes, there);
}

std::string self_link(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

}  // namespace

void throw_system_error(int error, const char* call, const std::string& path) {
  ErrorFacts facts;
  facts.path = path;
  facts.found = fmt::format("errno {}", error);
  throw Error(code_of(error), fmt::format("{}: {}", call, std::strerror(error)), std::move(facts));
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor open_regular_file(const std::filesystem::path& path, bool writable) {
  require_possible(path);
  const std::string name = path.string();
  struct stat status {};
  // Looked at before it is opened, because opening alone rewinds some devices.
  if (::stat(name.c_str(), &status) != 0) throw_system_error(errno, "stat", name);
  require_regular(status, name);
  const int flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  Descriptor file(emu::above_standard(open_file(name.c_str(), flags)));
  if (file.get() < 0) throw_system_error(errno, "open", name);
  // And again: the name may have come to mean another thing in between.
  if (::fstat(file.get(), &status) != 0) throw_system_error(errno, "fstat", name);
  require_regular(status, name);
  return file;
}

Descriptor open_locked(const std::filesystem::path& path, bool writable) {
  for (;;) {
    Descriptor file = open_regular_file(path, writable);
    lock_file(file.get(), writable, path.string());
    // Else it was removed or replaced before it was locked, and what were written to it would be
    // gone.
    if (leads_to(AT_FDCWD, path.c_str(), 0, file.get())) return file;
  }
}

void lock_file(int fd, bool exclusive, const std::string& path) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + kPatience;
  while (!try_lock(fd, exclusive ? LOCK_EX : LOCK_SH, path)) {
    // Who only looks at the pool shares its lock, and is soon done.
    const bool is_shared = exclusive && try_lock(fd, LOCK_SH, path);
    if (is_shared) unlock_file(fd);
    if (is_shared && Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    ErrorFacts facts;
    facts.path = path;
    facts.wanted = "a file that no pool has locked";
    facts.found = is_shared ? "locks of those that look at it, for a second"
                            : "a lock, of this process or another";
    throw Error(ErrorCode::pool_in_use,
                is_shared ? "the pool is looked at" : "the pool is open already", std::move(facts));
  }
}

void unlock_file(int fd) noexcept { ::flock(fd, LOCK_UN); }

std::uint64_t file_size(int fd, const std::string& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw_system_error(errno, "fstat", path);
  return static_cast<std::uint64_t>(status.st_size);
}

void read_prefix(int fd, void* to, std::uint64_t bytes, const std::string& path) {
  auto* at = static_cast<std::byte*>(to);
  for (std::uint64_t done = 0; done < bytes;) {
    const ::ssize_t n = ::pread(fd, at + done, bytes - done, static_cast<::off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_system_error(errno, "pread", path);
    if (n == 0) {
      ErrorFacts facts;
      facts.path = path;
      facts.wanted = fmt::format("{} bytes", bytes);
      facts.found = fmt::format("{} bytes", done);
      throw Error(ErrorCode::wrong_size, "the file became shorter while it was read",
                  std::move(facts));
    }
    done += static_cast<std::uint64_t>(n);
  }
}

void require_readable_holes(int fd, std::uint64_t bytes, const std::string& path) {
  struct statfs system {};
  const std::uint64_t missing = missing_pages(fd, bytes, system);
  if (system.f_type != TMPFS_MAGIC || system.f_blocks == 0) return;  // f_blocks 0: no limit
  const std::uint64_t left = system.f_bavail * static_cast<std::uint64_t>(system.f_bsize);
  if (missing <= left) return;
  ErrorFacts facts;
  facts.path = path;
  facts.wanted = fmt::format("{} bytes", missing);
  facts.found = fmt::format("{} bytes", left);
  throw Error(ErrorCode::no_space, "the file has holes, and its file system no room to read them",
              std::move(facts));
}

void require_size_allowed(std::uint64_t bytes, const std::string& path) {
  struct ::rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes) return;
  ErrorFacts facts;
  facts.path = path;
  facts.wanted = fmt::format("{} bytes", bytes);
  facts.found = fmt::format("{} bytes", limit.rlim_cur);
  throw Error(ErrorCode::no_space, "the pool is larger than this process may make a file",
              std::move(facts));
}

void read_ahead(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  ::posix_fadvise(fd, static_cast<::off_t>(offset), static_cast<::off_t>(bytes),
                  POSIX_FADV_WILLNEED);
}

void write_zeros(int fd, std::uint64_t offset, std::uint64_t bytes, const std::string& path) {
  const std::vector<std::byte> zeros(std::min<std::uint64_t>(bytes, 1 << 20));
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t part = std::min<std::uint64_t>(zeros.size(), bytes - done);
    const ::ssize_t n = ::pwrite(fd, zeros.data(), part, static_cast<::off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_system_error(n < 0 ? errno : EIO, "pwrite", path);
    done += static_cast<std::uint64_t>(n);
  }
}

void remove_file(const std::filesystem::path& path) noexcept { ::unlink(path.c_str()); }

void remove_file(const std::filesystem::path& path, int fd) noexcept {
  remove_name(AT_FDCWD, path.c_str(), fd);
}

void random_bytes(void* to, std::size_t bytes, const std::string& path) {
  // Requests this small are answered whole once the kernel has its entropy.
  while (::getrandom(to, bytes, 0) != static_cast<::ssize_t>(bytes)) {
    if (errno != EINTR) throw_system_error(errno, "getrandom", path);
  }
}

NewFile::NewFile(const std::filesystem::path& path, Naming naming)
    : path_(path.string()), name_(path.filename().string()) {
  require_possible(path);
  if (name_.empty() || name_ == "." || name_ == "..") throw_system_error(EISDIR, "create", path_);
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  // Readable, because its new entry has to be synced.
  directory_ = Descriptor(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory_.get() < 0) throw_system_error(errno, "open", parent);

  struct stat status {};
  if (::fstatat(directory_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    struct stat target {};
    const bool exists = ::fstatat(directory_.get(), name_.c_str(), &target, 0) == 0;
    const bool is_directory = exists && S_ISDIR(target.st_mode);
    throw_system_error(is_directory ? EISDIR : EEXIST, "create", path_);
  }
  if (errno != ENOENT) throw_system_error(errno, "stat", path_);

  if (naming == Naming::unnamed) {
    file_ = Descriptor(emu::above_standard(
        ::openat(directory_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, kMode)));
    if (file_.get() >= 0 && ::access(self_link(file_.get()).c_str(), F_OK) != 0) {
      file_ = Descriptor();
    }
  }
  try {
    if (file_.get() < 0) open_temporary();
    // Whatever the umask took away.
    if (::fchmod(file_.get(), kMode) != 0) throw_system_error(errno, "fchmod", path_);
    lock_file(file_.get(), true, path_);
  } catch (...) {
    remove_temporary();  // what is not constructed has no destructor
    throw;
  }
}

NewFile::~NewFile() { remove_temporary(); }

void NewFile::remove_temporary() noexcept {
  if (!temporary_.empty()) ::unlinkat(directory_.get(), temporary_.c_str(), 0);
}

void NewFile::open_temporary() {
  const std::string name = random_name();
  const int flags = O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  const int created = ::openat(directory_.get(), name.c_str(), flags, kMode);
  if (created < 0) throw_system_error(errno, "create", path_);
  temporary_ = name;
  file_ = Descriptor(emu::above_standard(created));
  if (file_.get() < 0) throw_system_error(errno, "fcntl", path_);
}

void NewFile::reserve(std::uint64_t size) {
  emu::step(emu::Step::pool_create);
  require_size_allowed(size, path_);
  store_in_place(file_.get());
  std::uint64_t most = size;
  const int error = ask_in_pieces({0, size}, most, [this](const FilePart& piece) {
    return ::posix_fallocate(file_.get(), static_cast<::off_t>(piece.offset),
                             static_cast<::off_t>(piece.bytes));
  });
  if (error != 0) {
    throw Error(code_of(error), fmt::format("posix_fallocate: {}", std::strerror(error)),
                {.path = path_,
                 .wanted = fmt::format("{} bytes", size),
                 .found = fmt::format("errno {}", error)});
  }
  if (const std::uint64_t found = file_size(file_.get(), path_); found != size) {
    throw Error(ErrorCode::unsupported, "the file system gives files other sizes",  // hugetlbfs
                {.path = path_,
                 .wanted = fmt::format("{} bytes", size),
                 .found = fmt::format("{} bytes", found)});
  }
}

int NewFile::link_name() noexcept {
  const int directory = directory_.get();
  if (temporary_.empty()) {
    const std::string self = self_link(file_.get());
    const int linked =
        ::linkat(AT_FDCWD, self.c_str(), directory, name_.c_str(), AT_SYMLINK_FOLLOW);
    return linked == 0 ? 0 : errno;
  }
  if (::renameat2(directory, temporary_.c_str(), directory, name_.c_str(), RENAME_NOREPLACE) == 0) {
    temporary_.clear();
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // A file system without RENAME_NOREPLACE; the temporary name goes in the destructor.
  return ::linkat(directory, temporary_.c_str(), directory, name_.c_str(), 0) == 0 ? 0 : errno;
}

void NewFile::publish() {
  emu::step(emu::Step::pool_create);
  if (const int error = sync_file(file_.get())) throw_system_error(error, "fsync", path_);
  emu::step(emu::Step::pool_create);
  if (const int error = link_name()) throw_system_error(error, "link", path_);
  emu::step(emu::Step::pool_create);
  if (const int error = sync_file(directory_.get())) {
    remove_name(directory_.get(), name_.c_str(), file_.get());
    throw_system_error(error, "fsync of the directory", path_);
  }
}

}  // namespace sp3::pool

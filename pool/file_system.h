// What a pool needs of the file system: typed errors, locked descriptors, files that appear
// complete.
//
// Thread safety: none of the classes is shared.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace sp3::pool {

// Throws the Error for the errno of a failed system call on `path`.
[[noreturn]] void throw_system_error(int error, const char* call, const std::string& path);

// An owned file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Opens an existing regular file. Never blocks on a fifo, never disturbs a device.
// Errors: not_found, is_a_directory (anything else than a regular file), permission_denied,
// invalid_argument (no such name can exist), io_error.
Descriptor open_regular_file(const std::filesystem::path& path, bool writable);

// The same, locked, exclusively if writable: the file that the name leads to once it is locked.
// Errors: of both.
Descriptor open_locked(const std::filesystem::path& path, bool writable);

// Errors: pool_in_use if anyone else has the file locked (shared locks exclude exclusive ones
// only, which wait for a second until those have gone).
void lock_file(int fd, bool exclusive, const std::string& path);

// Lets others in, even while a child made by fork() still has the file open.
void unlock_file(int fd) noexcept;

std::uint64_t file_size(int fd, const std::string& path);

// Reads exactly `bytes` bytes from the start of the file.
void read_prefix(int fd, void* to, std::uint64_t bytes, const std::string& path);

// Whether this process may write to all of a file of that size: whoever goes beyond the limit is
// sent a signal. Errors: no_space.
void require_size_allowed(std::uint64_t bytes, const std::string& path);

// Reading a hole of a file in memory takes a page: that there are enough. Errors: no_space.
void require_readable_holes(int fd, std::uint64_t bytes, const std::string& path);

// Has the bytes read from a disk meanwhile. Advice: it cannot fail.
void read_ahead(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept;

// Writes zeros. Errors: no_space, io_error.
void write_zeros(int fd, std::uint64_t offset, std::uint64_t bytes, const std::string& path);

// Removes the name if it is there.
void remove_file(const std::filesystem::path& path) noexcept;

// Removes the name if it is still one of the open file's.
void remove_file(const std::filesystem::path& path, int fd) noexcept;

// Bytes nobody can foresee. `path` is for messages. Errors: io_error.
void random_bytes(void* to, std::size_t bytes, const std::string& path);

// A file that has no name, or a temporary one, until publish() gives it its own. Locked from the
// start, so that nobody can open it before its creator is done with it.
class NewFile {
 public:
  enum class Naming {
    unnamed,  // O_TMPFILE where the file system has it: even a crash leaves nothing behind
    // .sp3-<random>.tmp in the same directory; as an argument for tests only, otherwise chosen
    // where unnamed cannot be
    temporary,
  };

  // Errors: already_exists, is_a_directory, not_found (the directory), permission_denied, no_space,
  // invalid_argument, io_error.
  explicit NewFile(const std::filesystem::path& path, Naming naming = Naming::unnamed);
  ~NewFile();  // an unpublished file is gone
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  // Makes the file `size` bytes long with all blocks allocated. Errors: no_space, io_error,
  // unsupported where files have other sizes.
  void reserve(std::uint64_t size);
  // Makes contents and name durable. Errors: already_exists (appeared meanwhile), no_space,
  // io_error; the name is gone again then.
  void publish();
  // The descriptor is the caller's from now on.
  [[nodiscard]] Descriptor release() noexcept { return std::move(file_); }

 private:
  void open_temporary();
  void remove_temporary() noexcept;
  [[nodiscard]] int link_name() noexcept;  // 0 or errno

  std::string path_;
  std::string name_;       // in the directory
  std::string temporary_;  // name until published; empty if there is none
  Descriptor directory_;
  Descriptor file_;
};

}  // namespace sp3::pool

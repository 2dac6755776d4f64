// pool/file_system.h on the simulated machine, whose only files are its own and whose only failures
// are a name that is missing, taken or locked.
#include "pool/file_system.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <sp3/error.h>

#include "emu/sim/file.h"
#include "emu/sim/machine.h"
#include "emu/step.h"
#include "pool/blocks.h"

namespace sp3::pool {
namespace {

emu::sim::FileSystem& files() { return emu::sim::machine().files(); }

}  // namespace

void throw_system_error(int error, const char* call, const std::string& path) {
  const ErrorCode code = error == ENOENT   ? ErrorCode::not_found
                         : error == EEXIST ? ErrorCode::already_exists
                                           : ErrorCode::io_error;
  throw Error(code, fmt::format("{}: {}", call, std::strerror(error)),
              {.path = path, .found = fmt::format("errno {}", error)});
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) files().close(fd_);
}

Descriptor open_regular_file(const std::filesystem::path& path, bool writable) {
  Descriptor file(files().open(path.string(), writable));
  if (file.get() < 0) throw_system_error(ENOENT, "open", path.string());
  return file;
}

Descriptor open_locked(const std::filesystem::path& path, bool writable) {
  Descriptor file = open_regular_file(path, writable);
  lock_file(file.get(), writable, path.string());
  return file;
}

void lock_file(int fd, bool exclusive, const std::string& path) {
  if (files().lock(fd, exclusive)) return;
  throw Error(ErrorCode::pool_in_use, "the pool is open already",
              {.path = path, .wanted = "a file that no pool has locked", .found = "a lock"});
}

void unlock_file(int fd) noexcept { files().unlock(fd); }

std::uint64_t file_size(int fd, const std::string& /*path*/) { return files().at(fd).media.size(); }

void read_prefix(int fd, void* to, std::uint64_t bytes, const std::string& path) {
  const emu::sim::Media& media = files().at(fd).media;
  if (media.size() < bytes) throw_system_error(EIO, "pread", path);
  std::memcpy(to, media.now(), bytes);
}

void own_blocks(int /*fd*/, std::uint64_t /*bytes*/, const std::string& /*path*/) {}
void require_readable_holes(int /*fd*/, std::uint64_t /*bytes*/, const std::string& /*path*/) {}
void require_size_allowed(std::uint64_t /*bytes*/, const std::string& /*path*/) {}
void read_ahead(int /*fd*/, std::uint64_t /*offset*/, std::uint64_t /*bytes*/) noexcept {}

void write_zeros(int fd, std::uint64_t offset, std::uint64_t bytes, const std::string& /*path*/) {
  emu::sim::Machine& machine = emu::sim::machine();
  machine.event(emu::sim::Event::flush, offset, machine.costs().file_write);
  files().at(fd).media.fill_zero(machine.core(), offset, bytes);
}

void remove_file(const std::filesystem::path& path) noexcept { files().remove(path.string()); }
void remove_file(const std::filesystem::path& /*path*/, int fd) noexcept {
  files().remove_name_of(fd);
}

void random_bytes(void* to, std::size_t bytes, const std::string& /*path*/) {
  auto* at = static_cast<unsigned char*>(to);
  for (std::size_t i = 0; i < bytes; ++i) {
    at[i] = static_cast<unsigned char>(emu::sim::machine().random().below(256));
  }
}

NewFile::NewFile(const std::filesystem::path& path, Naming /*naming*/)
    : path_(path.string()), name_(path.string()) {
  if (files().exists(name_)) throw_system_error(EEXIST, "create", path_);
  file_ = Descriptor(files().create_unnamed());
  lock_file(file_.get(), true, path_);
}

NewFile::~NewFile() = default;

void NewFile::reserve(std::uint64_t size) {
  emu::step(emu::Step::pool_create);
  files().resize(file_.get(), size);
}

void NewFile::publish() {
  emu::step(emu::Step::pool_create);
  files().sync(file_.get());
  emu::step(emu::Step::pool_create);
  if (files().exists(name_)) throw_system_error(EEXIST, "link", path_);
  files().give_name(file_.get(), name_);
  emu::step(emu::Step::pool_create);
  files().sync_directory();
}

}  // namespace sp3::pool

#include "emu/mapping.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <libpmem.h>
#include <sys/mman.h>

#include <sp3/error.h>

namespace sp3::emu {
namespace {

[[noreturn]] void mapping_failed(int error, const std::string& path, std::uint64_t bytes) {
  const ErrorCode code = error == EACCES || error == EPERM || error == EROFS
                             ? ErrorCode::permission_denied
                             : ErrorCode::io_error;
  ErrorFacts facts;
  facts.path = path;
  facts.wanted = std::to_string(bytes) + " bytes of address space";
  facts.found = "errno " + std::to_string(error);
  throw Error(code, std::string("mmap failed: ") + std::strerror(error), std::move(facts));
}

}  // namespace

Mapping::Mapping(std::byte* data, std::uint64_t size, Owner owner) noexcept
    : data_(data), size_(size), owner_(owner) {
  // A failure here leaves the child with the mapping, as without the call; it is not worth an
  // error.
  (void)madvise(data_, size_, MADV_DONTFORK);
}

Mapping::~Mapping() { release(); }

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      owner_(std::exchange(other.owner_, Owner::nobody)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    owner_ = std::exchange(other.owner_, Owner::nobody);
  }
  return *this;
}

void Mapping::release() noexcept {
  if (owner_ == Owner::mmap) (void)munmap(data_, size_);
  if (owner_ == Owner::libpmem) (void)pmem_unmap(data_, size_);
  owner_ = Owner::nobody;
}

Mapping Mapping::of_file(int fd, const std::string& path, std::uint64_t bytes, bool writable) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const data = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) mapping_failed(errno, path, bytes);
  return {static_cast<std::byte*>(data), bytes, Owner::mmap};
}

Mapping Mapping::of_zeros(const std::string& path, std::uint64_t bytes) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) mapping_failed(errno, path, bytes);
  return {static_cast<std::byte*>(data), bytes, Owner::mmap};
}

std::optional<Mapping> Mapping::of_persistent(int fd, std::uint64_t bytes, std::string& failure) {
  // libpmem maps by name only. The name of the open descriptor leads to the very file, even if its
  // path has changed since, or if it has none yet.
  const std::string name = "/proc/self/fd/" + std::to_string(fd);
  std::size_t mapped = 0;
  int is_pmem = 0;
  void* const data = pmem_map_file(name.c_str(), 0, 0, 0, &mapped, &is_pmem);
  if (data == nullptr) {
    failure = pmem_errormsg();
    return std::nullopt;
  }
  Mapping mapping(static_cast<std::byte*>(data), mapped, Owner::libpmem);
  if (mapped < bytes) failure = "mapped " + std::to_string(mapped) + " bytes";
  if (is_pmem == 0 || mapped < bytes) return std::nullopt;
  return mapping;
}

bool platform_flushes_caches() noexcept { return pmem_has_auto_flush() == 1; }

}  // namespace sp3::emu

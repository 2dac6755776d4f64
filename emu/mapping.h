// Mapping: an owned range of mapped memory.
//
// Children made by fork() do not get it (MADV_DONTFORK): a child that flushed or stored through an
// inherited mapping would write into its parent's pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace sp3::emu {

class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // The first `bytes` bytes of the file, shared. Errors: io_error, permission_denied.
  static Mapping of_file(int fd, const std::string& path, std::uint64_t bytes, bool writable);
  // Zeroed DRAM, allocated page by page when touched. Errors: io_error.
  static Mapping of_zeros(const std::string& path, std::uint64_t bytes);
  // A shared, writable mapping of the file if libpmem says that it is persistent memory which
  // flushes and fences alone make durable. Sets `failure` if it could not be mapped, which says
  // nothing of what memory it is.
  static std::optional<Mapping> of_persistent(int fd, std::uint64_t bytes, std::string& failure);

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  enum class Owner : std::uint8_t { nobody, mmap, libpmem };
  Mapping(std::byte* data, std::uint64_t size, Owner owner) noexcept;
  void release() noexcept;

  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  Owner owner_ = Owner::nobody;
};

// Whether the caches of this platform are flushed by a power loss (eADR), so that persistent memory
// needs fences only.
bool platform_flushes_caches() noexcept;

}  // namespace sp3::emu

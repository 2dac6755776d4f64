// scratch_directory: where pools that are made and removed go, if they are to be in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

namespace sp3::workloads {

inline bool is_in_memory(const struct ::statfs& system) noexcept {
  return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}
inline bool is_in_memory(const std::filesystem::path& directory) noexcept {
  struct ::statfs system {};
  return ::statfs(directory.c_str(), &system) == 0 && is_in_memory(system);
}

// Of memory, without a limit: such a file system says that it has 0 blocks.
inline bool is_unlimited(const std::filesystem::path& directory) noexcept {
  struct ::statfs system {};
  return ::statfs(directory.c_str(), &system) == 0 && system.f_blocks == 0 && is_in_memory(system);
}

// Bytes that the directory's file system has left. Errors: std::filesystem::filesystem_error.
inline std::uint64_t left_in(const std::filesystem::path& directory) {
  return is_unlimited(directory) ? ~std::uint64_t{0} : std::filesystem::space(directory).available;
}

// Bytes of files that can be made there; 0 where none can.
inline std::uint64_t room_in(const std::filesystem::path& directory) noexcept {
  if (::access(directory.c_str(), W_OK | X_OK) != 0) return 0;
  if (is_unlimited(directory)) return ~std::uint64_t{0};
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  return error ? 0 : space.available;
}

// The first that has so many bytes to spare; if none has, the first of those with most.
// REQUIRES: there is one.
inline std::filesystem::path directory_with_room(
    const std::vector<std::filesystem::path>& directories, std::uint64_t enough) {
  const auto first =
      std::ranges::find_if(directories, [&](const auto& each) { return room_in(each) >= enough; });
  return first != directories.end() ? *first : *std::ranges::max_element(directories, {}, room_in);
}

// What the pools of a command or of a test want by default, in bytes.
inline constexpr std::uint64_t kUsualRoom = std::uint64_t{1} << 30;

// In memory if there is enough room: containers often have a /dev/shm of 64 MiB.
// tests/tools/command_line.py knows the rule too.
inline std::filesystem::path scratch_directory(std::uint64_t enough = kUsualRoom) {
  std::error_code none;
  return directory_with_room({"/dev/shm", std::filesystem::temp_directory_path(none), "."}, enough);
}

}  // namespace sp3::workloads

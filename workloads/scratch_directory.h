// scratch_directory: where pools that are made and removed go, if they are to be in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace sp3::workloads {

// Bytes of files that can be made there; 0 where none can.
inline std::uint64_t room_in(const std::filesystem::path& directory) noexcept {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  return error || ::access(directory.c_str(), W_OK | X_OK) != 0 ? 0 : space.available;
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

// is_taken, unused_path: names for files that are made and removed.
#pragma once

#include <filesystem>
#include <string_view>

namespace sp3::workloads {

// Whether something has that name: a link that leads nowhere has, too.
bool is_taken(const std::filesystem::path& path);

// `directory`/`stem`-PID`ending`, or, where a process that was killed has left that behind,
// -PID-1, -PID-2 and so on: process numbers come round. The same until something has that name.
// Throws std::filesystem::filesystem_error where the directory cannot be searched.
std::filesystem::path unused_path(const std::filesystem::path& directory, std::string_view stem,
                                  std::string_view ending = ".pool");

}  // namespace sp3::workloads

// Which disk a file is on: results of different ones cannot be compared.
#pragma once

#include <filesystem>
#include <string>

namespace sp3::tools {

// "ext4 on /dev/vda1": the kind of file system that holds the path, and what that is mounted from.
// "unknown" if the system does not say. REQUIRES: the path is canonical.
std::string file_system_of(const std::filesystem::path& path);

}  // namespace sp3::tools

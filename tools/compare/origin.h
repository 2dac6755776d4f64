// What a comparison must have in common with one that goes on with it, and that no argument tells:
// the disk that files are on, and the program itself.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace sp3::tools {

// The directory's one name: absolute, without symbolic links. Throws UsageError if there is none.
std::filesystem::path canonical_directory(const std::string& option,
                                          const std::filesystem::path& path);

// CRC-32C of the file's contents, as eight hexadecimal digits. Throws std::runtime_error.
std::string checksum_of(const std::filesystem::path& file);

// This program: `sp3`, the checksum of its own file, `libraries`, one over those that it was linked
// to when it was started, `build_type` and `sanitizers`. A commit does not tell two builds apart.
nlohmann::json describe_program();

}  // namespace sp3::tools

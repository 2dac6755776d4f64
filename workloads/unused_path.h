// is_taken, unused_path: names for files that are made and removed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace sp3::workloads {

// Whether something has that name: a link that leads nowhere has, too.
bool is_taken(const std::filesystem::path& path);

// 16 hexadecimal digits that nobody else comes to, other than by a wonder.
std::string unforeseen_digits();

// `directory`/`stem`-PID-DIGITS`ending`, or, where something has that name, -PID-DIGITS-1, -2 and
// so on. The digits are drawn once for each process: containers that share a directory have
// processes of the same number. The same until something has that name.
// Throws std::filesystem::filesystem_error where the directory cannot be searched.
std::filesystem::path unused_path(const std::filesystem::path& directory, std::string_view stem,
                                  std::string_view ending = ".pool");

}  // namespace sp3::workloads

#include "workloads/unused_path.h"

#include <string>

#include <fmt/format.h>
#include <unistd.h>

namespace sp3::workloads {

bool is_taken(const std::filesystem::path& path) {
  return std::filesystem::exists(std::filesystem::symlink_status(path));
}

std::filesystem::path unused_path(const std::filesystem::path& directory, std::string_view stem,
                                  std::string_view ending) {
  const std::string ours = fmt::format("{}-{}", stem, ::getpid());
  std::filesystem::path path = directory / fmt::format("{}{}", ours, ending);
  for (int number = 1; is_taken(path); ++number) {
    path = directory / fmt::format("{}-{}{}", ours, number, ending);
  }
  return path;
}

}  // namespace sp3::workloads

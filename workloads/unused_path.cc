#include "workloads/unused_path.h"

#include <string>

#include <fmt/format.h>
#include <unistd.h>

namespace sp3::workloads {

std::filesystem::path unused_path(const std::filesystem::path& directory, std::string_view stem,
                                  std::string_view ending) {
  const auto numbered = [&](int number) {
    const std::string suffix = number == 0 ? "" : fmt::format("-{}", number);
    return directory / fmt::format("{}-{}{}{}", stem, ::getpid(), suffix, ending);
  };
  int number = 0;
  // A link that leads nowhere is there too.
  while (std::filesystem::exists(std::filesystem::symlink_status(numbered(number)))) ++number;
  return numbered(number);
}

}  // namespace sp3::workloads

#include "workloads/unused_path.h"

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

namespace sp3::workloads {

bool is_taken(const std::filesystem::path& path) {
  return std::filesystem::exists(std::filesystem::symlink_status(path));
}

// Not by pool::random_bytes(), which is the simulated machine's in sp3-sim.
std::string unforeseen_digits() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) {
    throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  return fmt::format("{:016x}", number);
}

std::filesystem::path unused_path(const std::filesystem::path& directory, std::string_view stem,
                                  std::string_view ending) {
  static const std::string digits = unforeseen_digits();
  const std::string ours = fmt::format("{}-{}-{}", stem, ::getpid(), digits);
  std::filesystem::path path = directory / fmt::format("{}{}", ours, ending);
  for (int number = 1; is_taken(path); ++number) {
    path = directory / fmt::format("{}-{}{}", ours, number, ending);
  }
  return path;
}

}  // namespace sp3::workloads

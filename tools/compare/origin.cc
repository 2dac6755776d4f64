#include "tools/compare/origin.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <link.h>
#include <nlohmann/json.hpp>

#include "base/crc32c.h"
#include "tools/command.h"
#include "tools/start_program.h"

namespace sp3::tools {

namespace {

std::uint32_t checksum(std::uint32_t seed, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> part(1 << 20);
  while (file) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    seed = base::crc32c(seed, part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.eof()) return seed;
  throw std::runtime_error(
      fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno)));
}

// Without the program itself, which has no name there, and what the kernel brings, which is no
// file.
std::vector<std::string> loaded_libraries() {
  std::vector<std::string> names;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        const std::string name = info->dlpi_name;
        if (name.starts_with('/')) static_cast<std::vector<std::string>*>(to)->push_back(name);
        return 0;
      },
      &names);
  std::ranges::sort(names);
  return names;
}

std::string hexadecimal(std::uint32_t checksum) { return fmt::format("{:08x}", checksum); }

}  // namespace

std::filesystem::path canonical_directory(const std::string& option,
                                          const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path found = std::filesystem::canonical(path, error);
  if (error) throw UsageError(fmt::format("{}: {}: {}", option, path.string(), error.message()));
  if (std::filesystem::is_directory(found, error)) return found;
  throw UsageError(fmt::format("{}: {}: is no directory", option, path.string()));
}

std::string checksum_of(const std::filesystem::path& file) {
  return hexadecimal(checksum(0, file));
}

nlohmann::json describe_program() {
  std::uint32_t libraries = 0;
  for (const std::string& library : loaded_libraries()) libraries = checksum(libraries, library);
  return {{"sp3", checksum_of(kThisProgram)},
          {"libraries", hexadecimal(libraries)},
          {"build_type", SP3_BUILD_TYPE},
          {"sanitizers", SP3_SANITIZERS}};
}

}  // namespace sp3::tools

#include "tools/command.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <sp3/error.h>

namespace sp3::tools {
namespace {

int fail(int code, const char* what) {
  fmt::print(stderr, "sp3: {}\n", what);
  return code;
}

}  // namespace

int run_app(CLI::App& app, int argc, char** argv, int& exit_code) noexcept {
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("sp3: {} (see --help)\n", error.what());
  });
  try {
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& error) {
    // Help and version arrive here too, with exit code 0.
    return app.exit(error) == 0 ? kOk : kUsage;
  } catch (const UsageError& error) {
    return fail(kUsage, error.what());
  } catch (const std::invalid_argument& error) {
    return fail(kUsage, error.what());
  } catch (const Error& error) {
    return fail(error.code() == ErrorCode::invalid_argument ? kUsage : kError, error.what());
  } catch (const std::exception& error) {
    return fail(kError, error.what());
  }
}

std::uint64_t parse_size(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string unit(rest, end);
  unsigned shift = 0;
  if (!unit.empty()) {
    const std::size_t place = std::string("KMGT").find(unit[0]);
    if (place != std::string::npos) shift = 10 * (static_cast<unsigned>(place) + 1);
  }
  const bool known = unit.empty() || (shift != 0 && (unit.size() == 1 || unit.substr(1) == "iB"));
  if (error != std::errc() || !known ||
      number > std::numeric_limits<std::uint64_t>::max() >> shift) {
    throw UsageError(
        fmt::format("'{}' is not a size: wanted a number with K, M, G, T or nothing", text));
  }
  return number << shift;
}

std::string format_size(std::uint64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.4g} {}", value, units[unit]);
}

std::vector<std::string> split_list(const std::string& option, const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (comma > at) parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  if (parts.empty()) throw UsageError(option + ": wanted at least one value");
  return parts;
}

unsigned parse_threads(const std::string& text, const std::string& option) {
  try {
    std::size_t used = 0;
    const unsigned long value = std::stoul(text, &used);
    if (used == text.size() && value >= 1 && value <= 1024) return static_cast<unsigned>(value);
  } catch (const std::logic_error&) {
  }
  throw UsageError(fmt::format("{}: wanted numbers from 1 to 1024, found '{}'", option, text));
}

std::string default_directory(MemoryKind memory) {
  std::error_code ignored;
  if (memory == MemoryKind::emulated && std::filesystem::is_directory("/dev/shm", ignored)) {
    return "/dev/shm";
  }
  // A temporary directory is often in memory too; where a disk is meant, the current one is safer.
  return ".";
}

void write_output(const std::string& file, const std::string& text) {
  if (file == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return;
  }
  std::ofstream out(file, std::ios::trunc);
  out << text;
  out.close();
  if (!out)
    throw std::runtime_error(fmt::format("{}: cannot be written: {}", file, std::strerror(errno)));
}

}  // namespace sp3::tools

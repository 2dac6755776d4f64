#include "tools/command.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sp3/error.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "pool/format.h"
#include "tools/print_to.h"
#include "tools/replace_file.h"
#include "workloads/scratch_directory.h"
#include "workloads/workload.h"

namespace sp3::tools {
namespace {

bool is_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// To CLI11 010, as `seq -w` counts, is eight, and 08 is no number.
std::string without_leading_zeros(std::string text) {
  if (is_digits(text)) text.erase(0, std::min(text.find_first_not_of('0'), text.size() - 1));
  return text;
}

// Of the largest unsigned type, CLI11 wraps negative numbers around and cuts large ones off.
std::string unsigned_problem(const std::string& text) {
  if (text.empty()) return "wanted a number, found nothing";
  if (text.starts_with('-')) return "wanted no negative number, found " + text;
  if (!is_digits(text)) return "wanted a number, found " + text;
  if (whole_number(text)) return {};
  return fmt::format("wanted at most {}, found {}", std::numeric_limits<std::uint64_t>::max(),
                     text);
}

// Nothing at all, as a script's variable without a value, would be 0.
std::string float_problem(const std::string& text) {
  return text.empty() ? "wanted a number, found nothing" : std::string();
}

// And it would be the default where that is another rule than a text.
std::string text_problem(const std::string& text) {
  return text.empty() ? "wanted some text, found nothing" : std::string();
}

// Whole numbers are digits, and count in tens.
void refuse_impossible_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.starts_with("UINT")) {
      option->transform(without_leading_zeros)->check(unsigned_problem);
    }
    if (type.starts_with("FLOAT")) option->check(float_problem);
    if (type.starts_with("TEXT")) option->check(text_problem);
  }
  for (CLI::App* command : app.get_subcommands(nullptr)) refuse_impossible_values(*command);
}

// Whether a superblock copy is, or was, there. Where copy B begins copy A says; if that is damaged,
// any block may be the one.
bool is_pool(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  for (std::uint64_t at = 0; at <= pool::superblock_bytes(pool::kMaxSessions); at += pool::kBlock) {
    std::uint64_t magic = 0;
    file.seekg(static_cast<std::streamoff>(at));
    if (!file.read(reinterpret_cast<char*>(&magic), sizeof magic)) return false;
    if (magic == pool::kMagic) return true;
  }
  return false;
}

// The directory in which a file would be made under this name, which may be a link to nothing yet.
// REQUIRES: links do not go round.
std::filesystem::path directory_of(const std::filesystem::path& path) {
  const std::filesystem::path target = target_of(path);
  return target.has_parent_path() ? target.parent_path() : ".";
}

// What stands in the way of writing to this file; nothing if it can be written.
std::string output_problem(const std::string& file) {
  if (file == "-") return {};
  if (file.empty()) return "wanted a file's name or -, found nothing";
  const auto cannot_be_written = [&] {
    return fmt::format("{}: cannot be written: {}", file, std::strerror(errno));
  };
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) {
    if (errno != ENOENT) return cannot_be_written();
    const bool can_be_made = ::access(directory_of(file).c_str(), W_OK | X_OK) == 0;
    return can_be_made ? std::string() : cannot_be_written();
  }
  if (S_ISDIR(found.st_mode)) return file + ": is a directory";
  if (::access(file.c_str(), W_OK) != 0) return cannot_be_written();
  return S_ISREG(found.st_mode) && is_pool(file) ? file + ": is a pool, and would be overwritten"
                                                 : std::string();
}

// A pool opened as one that is closed would be printed over. What is opened for reading only takes
// nothing, so that whoever prints notices the loss.
void keep_standard_descriptors() {
  int descriptor = 0;
  do {
    descriptor = ::open("/dev/null", O_RDONLY);
  } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

// Whether the last command that was named, or the program itself, needs a subcommand.
bool lacks_command(const CLI::App& app) {
  const std::vector<CLI::App*> named = app.get_subcommands();
  return named.empty() ? app.get_require_subcommand_min() > 0 : lacks_command(*named.back());
}

// What a file or the command line holds is quoted, and may have line ends.
std::string one_line(std::string text) {
  const auto breaks = [](unsigned char c) { return c < ' ' || c == 0x7F; };
  std::ranges::replace_if(text, breaks, '?');
  return text;
}

int fail(int code, const char* what) {
  print_to(stderr, "sp3: {}\n", one_line(what));
  return code;
}

// What the libraries refuse they call by the member's name ("entry size: wanted ..."): here it is
// the option's, where there is one.
std::string with_option(const CLI::App& app, const std::string& text) {
  const std::vector<CLI::App*> named = app.get_subcommands();
  if (!named.empty()) return with_option(*named.back(), text);
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return text;
  std::string option = "--" + text.substr(0, colon);
  std::ranges::replace(option, ' ', '-');
  return app.get_option_no_throw(option) == nullptr ? text : option + text.substr(colon);
}

// What is not a number, or more than the option's type holds, CLI11 "could not convert".
std::string message_of(const CLI::Error& error) {
  std::string text = error.what();
  const std::size_t equals = text.find(" = ");
  const std::string_view start = "Could not convert: ";
  if (!text.starts_with(start) || equals == std::string::npos) return text;
  const std::string option = text.substr(start.size(), equals - start.size());
  const std::string found = text.substr(equals + 3);
  // Those of 64 bits have been looked at by now (unsigned_problem).
  return is_digits(found) ? fmt::format("{}: wanted at most {}, found {}", option,
                                        std::numeric_limits<std::uint32_t>::max(), found)
                          : fmt::format("{}: wanted a number, found {}", option, found);
}

int exit_code_of(ErrorCode code) {
  if (code == ErrorCode::invalid_argument) return kUsage;
  return is_damage(code) ? kFound : kError;
}

int parse_and_run(CLI::App& app, int argc, char** argv, const int& exit_code) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    app.exit(success);  // prints the help or the version
    return kOk;
  }
  return exit_code;
}

}  // namespace

int run_app(CLI::App& app, int argc, char** argv, int& exit_code) noexcept {
  keep_standard_descriptors();
  // Who writes more than a file may have (ulimit -f) gets an error instead, which tells of it and
  // removes on its way out. What we start inherits that: it is refused too, rather than killed.
  std::signal(SIGXFSZ, SIG_IGN);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("sp3: {} (see --help)\n", one_line(message_of(error)));
  });
  try {
    refuse_impossible_values(app);
    const int code = parse_and_run(app, argc, argv, exit_code);
    require_output();
    return code;
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> unknown = app.remaining(true);
    if (!unknown.empty() && lacks_command(app))
      return fail(kUsage, fmt::format("there is no command '{}' (see --help)", unknown[0]).c_str());
    app.exit(error);
    return kUsage;
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return kUsage;
  } catch (const UsageError& error) {
    return fail(kUsage, error.what());
  } catch (const std::invalid_argument& error) {
    return fail(kUsage, with_option(app, error.what()).c_str());
  } catch (const Error& error) {
    return fail(exit_code_of(error.code()), error.what());
  } catch (const std::exception& error) {
    return fail(kError, error.what());
  }
}

void require_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw std::runtime_error("standard output could not be written");
}

bool is_damage(ErrorCode code) noexcept {
  return code == ErrorCode::wrong_size || code == ErrorCode::damaged_superblock ||
         code == ErrorCode::damaged_metadata || code == ErrorCode::damaged_log;
}

void print_damage(std::FILE* to, const std::string& before, const std::vector<Damage>& damage,
                  std::uint64_t more_damage) {
  for (const Damage& d : damage) print_to(to, "{}at {}: {}\n", before, d.offset, d.what);
  if (more_damage != 0) print_to(to, "{}... and {} more\n", before, more_damage);
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

std::vector<std::string> split_list(const std::string& option, const std::string& text,
                                    const std::vector<std::string>& all) {
  std::vector<std::string> parts;
  const auto add = [&](const std::string& part) {
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
  };
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    if (part.empty()) {
      throw UsageError(
          fmt::format("{}: wanted a value on both sides of a comma, found '{}'", option, text));
    }
    if (part == "all" && !all.empty()) {
      std::ranges::for_each(all, add);
    } else {
      add(part);
    }
    at = comma + 1;
  }
  return parts;
}

UsageError means_nothing(const std::string& option, const std::vector<std::string>& chosen,
                         const char* but) {
  return UsageError(fmt::format("{} means nothing to {}{}", option, fmt::join(chosen, ", "), but));
}

std::optional<std::uint64_t> whole_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

unsigned parse_threads(const std::string& text, const std::string& option) {
  const std::optional<std::uint64_t> number = whole_number(text);
  if (number && *number >= 1 && *number <= workloads::kMostThreads)
    return static_cast<unsigned>(*number);
  throw UsageError(fmt::format("{}: wanted numbers from 1 to {}, found '{}'", option,
                               workloads::kMostThreads, text));
}

std::vector<unsigned> parse_thread_list(const std::string& text, const std::string& option) {
  std::vector<unsigned> numbers;
  for (const std::string& part : split_list(option, text)) {
    const unsigned number = parse_threads(part, option);
    if (std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(number);
  }
  return numbers;
}

std::string default_directory(MemoryKind memory, std::uint64_t room) {
  if (memory == MemoryKind::emulated) {
    return workloads::scratch_directory(std::max(room, workloads::kUsualRoom));
  }
  // A temporary directory is often in memory too; where a disk is meant, the current one is safer.
  return ".";
}

void require_room(const char* what, const std::filesystem::path& directory, std::uint64_t wanted,
                  std::uint64_t found) {
  if (found >= wanted) return;
  throw Error(
      ErrorCode::no_space, what,
      {.path = directory.string(), .wanted = format_size(wanted), .found = format_size(found)});
}

CLI::Option* add_output_option(CLI::App& app, const std::string& name, std::string& file,
                               const std::string& description) {
  return app.add_option(name, file, description)->check(output_problem);
}

const CLI::Validator& at_least_one() {
  static const CLI::Validator validator(
      [](const std::string& text) {
        return text.find_first_not_of('0') == std::string::npos ? "wanted at least 1, found " + text
                                                                : std::string();
      },
      "");
  return validator;
}

std::string to_text(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

void write_output(const std::string& file, const std::string& text) {
  if (file == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return;
  }
  if (const auto target = replaceable(file)) {
    replace_file(*target, text);
    return;
  }
  std::ofstream out(file, std::ios::trunc);
  out << text;
  out.close();
  if (!out)
    throw std::runtime_error(fmt::format("{}: cannot be written: {}", file, std::strerror(errno)));
}

}  // namespace sp3::tools

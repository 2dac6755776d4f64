// What the subcommands of `sp3` share: exit codes, options with units, and clear errors.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <sp3/error.h>
#include <sp3/options.h>
#include <sp3/report.h>
#include <nlohmann/json_fwd.hpp>

#include "tools/cli_fwd.h"

namespace sp3::tools {

// Exit codes.
inline constexpr int kOk = 0;
inline constexpr int kFound = 1;  // damage, or a violation
inline constexpr int kUsage = 2;
inline constexpr int kError = 3;

// A mistake on the command line that CLI11 cannot see; ends with kUsage and one line.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Each adds its subcommand. When chosen, the callback sets `exit_code`; errors leave as exceptions.
void add_pool_command(CLI::App& app, int& exit_code);
void add_log_command(CLI::App& app, int& exit_code);
void add_bench_command(CLI::App& app, int& exit_code);
void add_compare_command(CLI::App& app, int& exit_code);
void add_micro_command(CLI::App& app, int& exit_code);
void add_crash_command(CLI::App& app, int& exit_code);
void add_lockbench_command(CLI::App& app, int& exit_code);
void add_recovery_command(CLI::App& app, int& exit_code);
void add_report_command(CLI::App& app, int& exit_code);
void add_sim_command(CLI::App& app, int& exit_code);

// Parses and runs; what is thrown becomes one line on standard error and an exit code. An option's
// empty value, of a script's variable perhaps, is refused.
int run_app(CLI::App& app, int argc, char** argv, int& exit_code) noexcept;

// Whether an error of this code says that a pool's file is not as it was left; ends with kFound.
bool is_damage(ErrorCode code) noexcept;

// A line for each place, with `before` in front.
void print_damage(std::FILE* to, const std::string& before, const std::vector<Damage>& damage,
                  std::uint64_t more_damage);

// Throws if something that was printed did not get to where standard output leads.
void require_output();

// "64M" and the like: a number of bytes with an optional K, M, G or T (powers of 1024).
// Throws UsageError.
std::uint64_t parse_size(const std::string& text);
std::string format_size(std::uint64_t bytes);

// `text` split at commas, each part once: whoever names a thing twice wants one row of it. The part
// "all" stands for `all`, if there are any. Throws UsageError if a part is empty.
std::vector<std::string> split_list(const std::string& option, const std::string& text,
                                    const std::vector<std::string>& all = {});

// What to throw if none of those that were chosen looks at the option; `but` may say when they
// would.
UsageError means_nothing(const std::string& option, const std::vector<std::string>& chosen,
                         const char* but = "");

// The number that `text` is, digits alone; none if it is no such, or beyond 64 bits.
std::optional<std::uint64_t> whole_number(const std::string& text);

// A number of threads, 1 to 1024. Throws UsageError.
unsigned parse_threads(const std::string& text, const std::string& option = "--threads");
// A list of them, each once.
std::vector<unsigned> parse_thread_list(const std::string& text,
                                        const std::string& option = "--threads");

// The value that to_string() calls `name`, of those from 0 to `last`. Throws UsageError that lists
// them.
template <class Enum>
Enum parse_enum(const std::string& option, const std::string& name, Enum last) {
  std::string names;
  for (unsigned i = 0; i <= static_cast<unsigned>(last); ++i) {
    const auto value = static_cast<Enum>(i);
    if (name == to_string(value)) return value;
    names += (i == 0 ? "" : ", ") + std::string(to_string(value));
  }
  throw UsageError(option + ": wanted one of " + names + ", found '" + name + "'");
}

inline MemoryKind parse_memory(const std::string& name) {
  return parse_enum("--memory", name, MemoryKind::emulated);
}
inline RecoveryStrategy parse_strategy(const std::string& name) {
  return parse_enum("--strategy", name, RecoveryStrategy::dag);
}

// Where a pool of this kind goes unless the user says: memory for emulated, if that has the usual
// room and so many bytes at least, and a disk for the others.
std::string default_directory(MemoryKind memory, std::uint64_t room = 0);

// Errors: no_space, saying `what`, if fewer bytes were found than are wanted for what goes there.
void require_room(const char* what, const std::filesystem::path& directory, std::uint64_t wanted,
                  std::uint64_t found);

// An option that names a file to write to, or - for stdout. A file that cannot be written, or is a
// pool, is refused before anything is done.
CLI::Option* add_output_option(CLI::App& app, const std::string& name, std::string& file,
                               const std::string& description);

// For options whose default is another rule than a number: 0 is not one either.
const CLI::Validator& at_least_one();

// As all JSON is written. Bytes that are no text, as a path or what is mounted may hold, become
// replacement characters.
std::string to_text(const nlohmann::json& json, int indent = 2);

// Writes `text` to the file, or to stdout for "-". Where it cannot be written, a file that can be
// replaced stays as it was (tools/replace_file.h). Throws std::runtime_error.
void write_output(const std::string& file, const std::string& text);

}  // namespace sp3::tools

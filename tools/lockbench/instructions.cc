// Counting instructions: this program runs `lockbench --pairs` under callgrind, which counts inside
// the loop (run.cc, run_pairs) only. What the lock `none` costs is the loop, and is taken off.
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/lockbench/run.h"
#include "tools/telling_program.h"

namespace sp3::tools {

namespace {

constexpr std::uint64_t kPairs = 20'000;
constexpr std::uint64_t kPairsOfList = 50;  // each of which walks all held ranges

struct Ended {
  int status;        // as of waitpid(2)
  std::string said;  // all of it
};

// The shell only joins its two outputs: it sees the arguments as words,
// which may be paths that hold anything.
Ended run_valgrind(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"-c", R"(exec "$0" "$@" 2>&1)", "valgrind"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const TellingProgram valgrind = start_telling("/bin/sh", words, STDOUT_FILENO);
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t bytes = ::read(valgrind.pipe.get(), buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
  return {wait_for(valgrind.pid), std::move(text)};
}

std::string in_one_line(std::string_view said) {
  while (said.ends_with('\n')) said.remove_suffix(1);
  std::string line;
  for (const char c : said) line += c == '\n' ? "; " : std::string(1, c);
  return line;
}

double instructions_per_pair(const LockRun& run) {
  const std::uint64_t pairs = run.lock == "list" && run.held > 1024 ? kPairsOfList : kPairs;
  std::vector<std::string> arguments = {"--tool=callgrind",
                                        "--callgrind-out-file=/dev/null",
                                        "--collect-atstart=no",
                                        "--toggle-collect=*run_pairs*",
                                        std::filesystem::read_symlink(kThisProgram).string(),
                                        "lockbench",
                                        "--workload",
                                        "uncontended",
                                        "--lock",
                                        run.lock,
                                        "--held",
                                        fmt::to_string(run.held),
                                        "--pairs",
                                        fmt::to_string(pairs),
                                        "--repeat",
                                        "1",
                                        "--seed",
                                        fmt::to_string(run.seed),
                                        "--slots",
                                        fmt::to_string(run.slots)};
  if (has_buckets(run.lock)) {
    arguments.insert(arguments.end(), {"--buckets", fmt::to_string(run.options.buckets)});
  }
  if (has_towers(run.lock)) {
    arguments.insert(arguments.end(), {"--max-height", fmt::to_string(run.options.max_height)});
  }
  const auto [status, text] = run_valgrind(arguments);
  // What a lock cannot hold is refused as a mistake is: the rest of the line was ours.
  if (WIFEXITED(status) && WEXITSTATUS(status) == kUsage) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (status != 0) {
    throw std::runtime_error(fmt::format("'sp3 lockbench --lock {}' under valgrind {}: {}",
                                         run.lock, how_it_ended(status), in_one_line(text)));
  }
  constexpr std::string_view kLabel = "Collected :";
  const std::size_t label = text.find(kLabel);
  if (label == std::string::npos) {
    throw std::runtime_error("valgrind printed no instruction count: " + in_one_line(text));
  }
  return std::stod(text.substr(label + kLabel.size())) / static_cast<double>(pairs);
}

}  // namespace

std::vector<double> count_instructions(const std::vector<LockRun>& runs) {
  if (runs.empty()) return {};
  if (!run_valgrind({"--version"}).said.starts_with("valgrind-")) {
    throw std::runtime_error("valgrind is not installed; instructions cannot be counted");
  }
  LockRun loop = runs.front();
  loop.lock = "none";
  loop.held = 0;
  const double base = instructions_per_pair(loop);
  std::vector<double> counts;
  counts.reserve(runs.size());
  for (const LockRun& run : runs) counts.push_back(instructions_per_pair(run) - base);
  return counts;
}

}  // namespace sp3::tools

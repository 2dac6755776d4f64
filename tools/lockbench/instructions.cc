// Counting instructions: this program runs `lockbench --pairs` under callgrind, which counts inside
// the loop (run.cc, run_pairs) only. What the lock `none` costs is the loop, and is taken off.
#include <array>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "tools/lockbench/run.h"

namespace sp3::tools {

namespace {

constexpr std::uint64_t kPairs = 20'000;
constexpr std::uint64_t kPairsOfList = 50;  // each of which walks all held ranges

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("a shell could not be started: " + command);
  std::array<char, 4096> buffer;
  for (std::size_t bytes; (bytes = std::fread(buffer.data(), 1, buffer.size(), pipe)) != 0;) {
    text.append(buffer.data(), bytes);
  }
  ::pclose(pipe);
  return text;
}

double instructions_per_pair(const LockRun& run) {
  const std::uint64_t pairs = run.lock == "list" && run.held > 1024 ? kPairsOfList : kPairs;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string text = output_of(fmt::format(
      "valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no "
      "--toggle-collect='*run_pairs*' '{}' lockbench --workload uncontended --lock {} --held {} "
      "--pairs {} --repeat 1 --seed {} --slots {} --buckets {} --max-height {} 2>&1",
      program, run.lock, run.held, pairs, run.seed, run.slots, run.options.buckets,
      run.options.max_height));
  constexpr std::string_view kLabel = "Collected :";
  const std::size_t label = text.find(kLabel);
  if (label == std::string::npos) {
    throw std::runtime_error("valgrind printed no instruction count:\n" + text);
  }
  const double count = std::stod(text.substr(label + kLabel.size()));
  if (count == 0) {  // it did not get that far
    return std::numeric_limits<double>::quiet_NaN();
  }
  return count / static_cast<double>(pairs);
}

}  // namespace

std::vector<double> count_instructions(const std::vector<LockRun>& runs) {
  if (runs.empty()) return {};
  if (output_of("valgrind --version 2>&1").rfind("valgrind-", 0) != 0) {
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

// ProgressBar: how far a command is. On a terminal a bar on the last line of standard error;
// elsewhere, as in a log, a line now and then, and nothing of what is over sooner.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace sp3::tools {

class ProgressBar {
 public:
  using Clock = std::chrono::steady_clock;

  // `between_lines`: where `to` is no terminal.
  explicit ProgressBar(std::FILE* to = stderr,
                       Clock::duration between_lines = std::chrono::seconds(30));
  // Leaves the line empty.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws at most ten times a second, and always when the label changes or all is done.
  void show(std::string_view label, std::uint64_t done, std::uint64_t total);
  void clear();

 private:
  void draw(std::string_view label, double share);
  void tell(std::string_view label, double share);

  std::FILE* const to_;
  const bool terminal_;
  const Clock::duration between_lines_;
  bool drawn_ = false;
  std::string label_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace sp3::tools

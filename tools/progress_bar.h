// ProgressBar: a bar on the terminal's last line; silent where standard error is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace sp3::tools {

class ProgressBar {
 public:
  ProgressBar();
  // Leaves the line empty.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws at most ten times a second, and always when the label changes or all is done.
  void show(std::string_view label, std::uint64_t done, std::uint64_t total);
  void clear();

 private:
  bool terminal_;
  bool drawn_ = false;
  std::string label_;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace sp3::tools

#include "tools/progress_bar.h"

#include <algorithm>
#include <cstdio>

#include <unistd.h>

#include "tools/print_to.h"

namespace sp3::tools {

ProgressBar::ProgressBar() : terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::show(std::string_view label, std::uint64_t done, std::uint64_t total) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && label == label_ && done < total && now - last_ < std::chrono::milliseconds(100))
    return;
  last_ = now;
  label_ = label;
  drawn_ = true;
  constexpr std::size_t kWidth = 30;
  const double share =
      total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto full = static_cast<std::size_t>(share * kWidth);
  print_to(stderr, "\r\033[K{:<28} [{:#<{}}{:<{}}] {:3.0f} %", label, "", full, "", kWidth - full,
           share * 100);
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (!drawn_) return;
  print_to(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace sp3::tools

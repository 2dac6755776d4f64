#include "tools/progress_bar.h"

#include <algorithm>

#include <unistd.h>

#include "tools/print_to.h"

namespace sp3::tools {

ProgressBar::ProgressBar(std::FILE* to, Clock::duration between_lines)
    : to_(to), terminal_(::isatty(::fileno(to)) == 1), between_lines_(between_lines) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::show(std::string_view label, std::uint64_t done, std::uint64_t total) {
  const double share =
      total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  if (terminal_) {
    draw(label, share);
  } else {
    tell(label, share);
  }
}

void ProgressBar::draw(std::string_view label, double share) {
  constexpr std::chrono::milliseconds kBetweenDrawings{100};
  const auto now = Clock::now();
  if (drawn_ && label == label_ && share < 1 && now - last_ < kBetweenDrawings) return;
  last_ = now;
  label_ = label;
  drawn_ = true;
  constexpr std::size_t kWidth = 30;
  const auto full = static_cast<std::size_t>(share * kWidth);
  print_to(to_, "\r\033[K{:<28} [{:#<{}}{:<{}}] {:3.0f} %", label, "", full, "", kWidth - full,
           share * 100);
  std::fflush(to_);
}

void ProgressBar::tell(std::string_view label, double share) {
  const auto now = Clock::now();
  if (now - last_ < between_lines_) return;
  last_ = now;
  print_to(to_, "{:3.0f} %: {}\n", share * 100, label);
  std::fflush(to_);
}

void ProgressBar::clear() {
  if (!drawn_) return;
  print_to(to_, "\r\033[K");
  std::fflush(to_);
  drawn_ = false;
}

}  // namespace sp3::tools

#include "tools/sim/on_abort.h"

#include <csignal>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

namespace sp3::tools {
namespace {

char seed_line[64] = "";
const std::string* printed = nullptr;

// Only what a signal handler may do.
void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// abort() ends the process when this returns.
void on_abort(int /*signal*/) {
  if (printed != nullptr) write_all(STDOUT_FILENO, *printed);
  write_all(STDERR_FILENO, seed_line);
}

}  // namespace

NameSeedOnAbort::NameSeedOnAbort(std::uint64_t seed) {
  constexpr std::size_t kRoom = sizeof seed_line - 1;
  *fmt::format_to_n(seed_line, kRoom, "sp3: while running seed {}\n", seed).out = '\0';
  std::signal(SIGABRT, on_abort);
}

NameSeedOnAbort::~NameSeedOnAbort() { std::signal(SIGABRT, SIG_DFL); }

PrintOnAbort::PrintOnAbort(const std::string& text) { printed = &text; }

PrintOnAbort::~PrintOnAbort() { printed = nullptr; }

}  // namespace sp3::tools

// What the process does about signals.
#pragma once

#include <csignal>

namespace sp3::base {

// Whether a signal is ignored. Such a one is to stay so: shells have what runs in the background
// outlive theirs.
inline bool is_ignored(int signal) noexcept {
  struct sigaction found {};
  return ::sigaction(signal, nullptr, &found) == 0 && found.sa_handler == SIG_IGN;
}

}  // namespace sp3::base

// Errors as values, and children that report by exit code.
#pragma once

#include <csignal>
#include <functional>
#include <optional>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <sp3/error.h>

namespace sp3::test {

template <class Function>
std::optional<Error> error_of(Function&& function) {
  try {
    static_cast<void>(function());
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// The name of the code that `function` fails with, for readable comparisons.
template <class Function>
std::string code_of(Function&& function) {
  const auto error = error_of(function);
  return error ? to_string(error->code()) : "no error";
}

// The exit code of a child, or 128 + the signal that ended it. After `seconds` it is killed and
// 1000 returned: it hung.
inline int wait_for(pid_t child, int seconds = 60) {
  int status = 0;
  for (int waited_ms = 0; ::waitpid(child, &status, WNOHANG) == 0; ++waited_ms) {
    if (waited_ms > seconds * 1000) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return 1000;
    }
    ::usleep(1000);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Runs `body` in a child, and waits for it. REQUIRES in sanitized builds: no other thread runs.
inline int in_child(const std::function<int()>& body, int seconds = 60) {
  const pid_t child = ::fork();
  if (child == 0) {
    // Not the test framework's handlers: it is the parent that reports.
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS}) ::signal(number, SIG_DFL);
    int code = 99;
    try {
      code = body();
    } catch (...) {
      // 99 says that something unforeseen was thrown.
    }
    ::_exit(code);
  }
  return wait_for(child, seconds);
}

}  // namespace sp3::test

#include "tests/sim/suspect.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sp3::test {
namespace {

constexpr rlim_t kMostCpuSeconds = 30;  // a fault may loop where there is no event

[[noreturn]] void fail(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

// In the child: what it finds goes to `to`, as does what an assertion says.
[[noreturn]] void run_mutant(base::Mutant mutant, const Trial& trial, int to) {
  ::dup2(to, STDERR_FILENO);
  std::signal(SIGABRT, SIG_DFL);  // Catch's would report it as the parent's
  std::signal(SIGSEGV, SIG_DFL);
  const rlimit cpu{kMostCpuSeconds, kMostCpuSeconds};
  ::setrlimit(RLIMIT_CPU, &cpu);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  base::switch_on(mutant);
  if (const auto violation = run(trial)) {
    fmt::print(stderr, "{}\n  {}\n", violation->what, violation->where);
  }
  ::_exit(0);
}

std::string read_all(int from) {
  std::string text;
  std::array<char, 4096> part{};
  while (true) {
    const ssize_t bytes = ::read(from, part.data(), part.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) fail("read");
    if (bytes == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(bytes));
  }
}

}  // namespace

Verdict try_mutant(base::Mutant mutant, const Trial& trial) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) fail("pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    ::close(ends[0]);
    run_mutant(mutant, trial, ends[1]);
  }
  ::close(ends[1]);
  Verdict verdict{false, read_all(ends[0])};
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail("waitpid");
  }
  if (WIFEXITED(status)) {
    verdict.caught = !verdict.what.empty();
  } else {
    // An assertion of the library, or one of the containers' own, which unoptimised builds have.
    verdict.caught = verdict.what.find("invariant violated") != std::string::npos ||
                     verdict.what.find("Assertion `") != std::string::npos;
    if (!verdict.caught) verdict.what += fmt::format("ended by signal {}", WTERMSIG(status));
  }
  return verdict;
}

}  // namespace sp3::test

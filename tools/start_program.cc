// fork and exec, because posix_spawn has no word for what happens when the parent dies. Between the
// two only system calls are made: other threads may hold any lock at the moment of the fork.
#include "tools/start_program.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/signals.h"

namespace sp3::tools {

namespace {

// As execv(3) wants it.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::vector<std::string>& arguments)
      : words_{program} {
    words_.insert(words_.end(), arguments.begin(), arguments.end());
    pointers_.reserve(words_.size() + 1);
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  char* const* argv() const noexcept { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;  // into words_, and the null at the end
};

sigset_t all_signals() noexcept {
  sigset_t all;
  sigfillset(&all);
  return all;
}

// As fork(); the child begins with all signals blocked.
pid_t fork_blocked() noexcept {
  const sigset_t all = all_signals();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  const pid_t child = ::fork();
  const int error = errno;
  if (child != 0) ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return child;
}

// 0 or errno. What the group that it leaves was sent since the fork was not for this process, and is
// forgotten.
int leave_group() noexcept {
  if (::setpgid(0, 0) != 0) return errno;
  const sigset_t all = all_signals();
  constexpr timespec kNow{};
  while (::sigtimedwait(&all, nullptr, &kNow) > 0) {
  }
  return 0;
}

// What came meanwhile is delivered, and does what it would do to the program: our handlers are not
// there.
void unblock_signals() noexcept {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (!base::is_ignored(signal)) ::sigaction(signal, &by_default, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

// Never returns, unless with an error. All signals are blocked.
int become(const char* program, char* const* argv,
           const std::vector<std::pair<int, int>>& descriptors, ProcessGroup group,
           pid_t parent) noexcept {
  if (group == ProcessGroup::its_own) {
    if (const int error = leave_group(); error != 0) return error;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);     // after the group's signals were forgotten
  if (::getppid() != parent) ::_exit(1);  // it died before the line above
  for (const auto& [ours, theirs] : descriptors) {
    // Onto itself it would keep close-on-exec.
    const int done = ours == theirs ? ::fcntl(ours, F_SETFD, 0) : ::dup2(ours, theirs);
    if (done < 0) return errno;
  }
  unblock_signals();
  ::execv(program, argv);
  return errno;
}

[[noreturn]] void fail(int error, const std::string& program) {
  throw std::system_error(error, std::generic_category(),
                          fmt::format("{} cannot be started", program));
}

}  // namespace

std::filesystem::path program_beside(const std::string& name) {
  return std::filesystem::read_symlink(kThisProgram).parent_path() / name;
}

void hand_over(const std::filesystem::path& program, const std::vector<std::string>& arguments,
               const std::string& wanted) {
  CommandLine line(program.string(), arguments);
  ::execvp(program.c_str(), line.argv());
  throw std::runtime_error(
      fmt::format("{}: {}: {}", program.string(), std::strerror(errno), wanted));
}

pid_t start_program(const std::string& program, const std::vector<std::string>& arguments,
                    const std::vector<std::pair<int, int>>& descriptors, ProcessGroup group) {
  CommandLine line(program, arguments);
  // Closed by a successful exec; otherwise it brings the error.
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(errno, program);
  const pid_t parent = ::getpid();
  const pid_t child = fork_blocked();
  if (child == 0) {
    // Out of the way of the numbers that are asked for.
    const int tell = ::fcntl(ends[1], F_DUPFD_CLOEXEC, 64);
    const int error = become(program.c_str(), line.argv(), descriptors, group, parent);
    static_cast<void>(!::write(tell, &error, sizeof error));
    ::_exit(127);
  }
  int error = child < 0 ? errno : 0;
  ::close(ends[1]);
  while (child > 0 && ::read(ends[0], &error, sizeof error) < 0 && errno == EINTR) {
  }
  ::close(ends[0]);
  if (error != 0) {
    if (child > 0) wait_for(child);
    fail(error, program);
  }
  return child;
}

int wait_for(pid_t child) noexcept {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string how_it_ended(int status) {
  return WIFSIGNALED(status) ? fmt::format("was ended by signal {}", WTERMSIG(status))
                             : fmt::format("ended with {}", WEXITSTATUS(status));
}

}  // namespace sp3::tools

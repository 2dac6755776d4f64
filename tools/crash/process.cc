#include "tools/crash/process.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace sp3::tools::crash {

namespace {

constexpr int kVictimFd = 3;

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

pid_t spawn(const std::vector<std::string>& arguments, int write_end) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // If the pipe is number 3 already, dup2 onto itself clears close-on-exec.
  posix_spawn_file_actions_adddup2(&actions, write_end, kVictimFd);
  std::string program = "/proc/self/exe";
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv = {program.data()};
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(error, "posix_spawn of /proc/self/exe");
  return pid;
}

}  // namespace

VictimProcess::VictimProcess(VictimOptions options) : buffer_(1 << 16) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(errno, "pipe2");
  options.fd = kVictimFd;
  try {
    pid_ = spawn(options.arguments(), ends[1]);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  fd_ = ends[0];
  // Room for what is acknowledged while this process is not running; smaller also works.
  static_cast<void>(::fcntl(fd_, F_SETPIPE_SZ, 1 << 20));
}

VictimProcess::~VictimProcess() {
  kill();
  wait();
  ::close(fd_);
}

VictimProcess::Event VictimProcess::next(Message& message, Clock::time_point deadline) {
  while (end_ - begin_ < sizeof(Message)) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd poll_for{fd_, POLLIN, 0};
    const int ready = ::poll(&poll_for, 1, static_cast<int>(std::clamp<long>(left, 0, 1 << 30)));
    if (ready == 0) return Event::timeout;
    if (ready < 0 && errno != EINTR) fail(errno, "poll");
    if (ready < 0) continue;
    const ssize_t n = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
    if (n == 0) return Event::end;
    if (n < 0 && errno != EINTR) fail(errno, "read from the victim");
    if (n > 0) end_ += static_cast<std::size_t>(n);
  }
  std::memcpy(&message, buffer_.data() + begin_, sizeof message);
  begin_ += sizeof message;
  return Event::message;
}

void VictimProcess::kill() noexcept {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

int VictimProcess::wait() noexcept {
  int status = 0;
  if (pid_ <= 0) return status;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

}  // namespace sp3::tools::crash

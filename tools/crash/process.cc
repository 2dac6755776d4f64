#include "tools/crash/process.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "tools/start_program.h"

extern char** environ;

namespace sp3::tools::crash {

namespace {

constexpr int kVictimFd = 3;

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

VictimProcess::VictimProcess(VictimOptions options) : buffer_(1 << 16) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(errno, "pipe2");
  options.fd = kVictimFd;
  try {
    pid_ = start_program(kThisProgram, options.arguments(), {{ends[1], kVictimFd}});
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
  if (pid_ <= 0) return 0;
  const int status = wait_for(pid_);
  pid_ = -1;
  return status;
}

}  // namespace sp3::tools::crash

#include "tools/crash/process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/telling_program.h"

namespace sp3::tools::crash {

namespace {

constexpr int kVictimFd = 3;

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

VictimProcess::VictimProcess(const VictimOptions& options)
    : buffer_(1 << 16), maker_([&] { return start(options); }) {
  // Room for what is acknowledged while this process is not running; smaller also works.
  static_cast<void>(::fcntl(pipe_.get(), F_SETPIPE_SZ, 1 << 20));
}

pid_t VictimProcess::start(VictimOptions options) {
  options.fd = kVictimFd;
  // Interrupted from the terminal with us, it would be dead, which is a violation, before our pools
  // are gone.
  TellingProgram victim =
      start_telling(kThisProgram, options.arguments(), kVictimFd, {}, ProcessGroup::its_own);
  pid_ = victim.pid;
  pipe_ = std::move(victim.pipe);
  return pid_;
}

VictimProcess::~VictimProcess() {
  kill();
  wait();
}

VictimProcess::Event VictimProcess::next(Message& message, Clock::time_point deadline) {
  while (end_ - begin_ < sizeof(Message)) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd poll_for{pipe_.get(), POLLIN, 0};
    const int ready = ::poll(&poll_for, 1, static_cast<int>(std::clamp<long>(left, 0, 1 << 30)));
    if (ready == 0) return Event::timeout;
    if (ready < 0 && errno != EINTR) fail(errno, "poll");
    if (ready < 0) continue;
    const ssize_t n = ::read(pipe_.get(), buffer_.data() + end_, buffer_.size() - end_);
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

std::optional<int> VictimProcess::wait_until(Clock::time_point deadline) noexcept {
  // Nearly always it is gone at the first look, or about to be.
  while (pid_ > 0) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) > 0) {
      pid_ = -1;
      return status;
    }
    if (Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 0;
}

int VictimProcess::wait() noexcept {
  if (pid_ <= 0) return 0;
  const int status = wait_for(pid_);
  pid_ = -1;
  return status;
}

}  // namespace sp3::tools::crash

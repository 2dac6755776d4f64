// A signal handler may do little: it may not walk a directory. So the signals are blocked in every
// thread, and one that does nothing else waits for them; it is an ordinary thread and may do
// anything.
#include "workloads/pool_remover.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/signals.h"

namespace sp3::workloads {

namespace {

// By their numbers: Debian 12 declares the functions in a header that is not for C++.
pool::Descriptor process_descriptor(pid_t process) noexcept {
  return pool::Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}
void kill_process(int descriptor) noexcept {
  ::syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, nullptr, 0);
}

class Registry {
 public:
  // Never destroyed: its thread outlives main().
  static Registry& instance() {
    static Registry& registry = *new Registry();
    return registry;
  }

  void add(const std::filesystem::path& path) {
    const std::lock_guard lock(mutex_);
    paths_.push_back(path);
  }
  void forget(const std::filesystem::path& path) {
    const std::lock_guard lock(mutex_);
    paths_.erase(std::ranges::find(paths_, path));
  }
  pool::Descriptor start_maker(const std::function<pid_t()>& start) {
    const std::lock_guard lock(mutex_);
    pool::Descriptor process = process_descriptor(start());
    if (process.get() >= 0) makers_.push_back(process.get());
    return process;
  }
  void forget_maker(int process) {
    const std::lock_guard lock(mutex_);
    makers_.erase(std::ranges::find(makers_, process));
  }

 private:
  Registry() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      // Blocked ones are delivered even if ignored, as nohup wants SIGHUP to be.
      if (!base::is_ignored(signal)) sigaddset(&signals, signal);
    }
    sigset_t blocked = signals;
    sigaddset(&blocked, SIGPIPE);
    sigset_t before;
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
    try {
      std::thread([this, signals] { await(signals); }).detach();
    } catch (const std::system_error& error) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw std::system_error(error.code(), "the thread that waits for signals cannot be started");
    }
  }

  void await(sigset_t signals) {
    int signal = 0;
    while (::sigwait(&signals, &signal) != 0) {
    }
    // Kept locked: a pool that comes now would stay.
    mutex_.lock();
    kill_makers();
    // The other threads go on: they may make a file anew, or add one to a directory that is being
    // emptied.
    for (int attempt = 0; attempt < 100 && remove_some(); ++attempt) {
    }
    std::signal(signal, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal);
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    ::raise(signal);
  }

  void kill_makers() const {
    for (const int process : makers_) kill_process(process);
    for (const int process : makers_) {
      pollfd ended{process, POLLIN, 0};
      while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
      }
    }
  }

  // Whether anything was there.
  [[nodiscard]] bool remove_some() const {
    bool found = false;
    for (const std::filesystem::path& path : paths_) {
      std::error_code failed;
      if (std::filesystem::remove_all(path, failed) != 0) found = true;
    }
    return found;
  }

  std::mutex mutex_;
  std::vector<std::filesystem::path> paths_;
  std::vector<int> makers_;  // pidfds
};

}  // namespace

PoolRemover::PoolRemover(std::filesystem::path path) : path_(std::move(path)) {
  // Where that cannot be found out nothing can be made either, and whoever tries tells why.
  std::error_code unknown;
  if (std::filesystem::exists(std::filesystem::symlink_status(path_, unknown))) {
    throw Error(ErrorCode::already_exists, "another has made this meanwhile",
                {.path = path_.string()});
  }
  Registry::instance().add(path_);
}

PoolRemover::~PoolRemover() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  Registry::instance().forget(path_);
}

void PoolRemover::keep() noexcept {
  if (path_.empty()) return;
  Registry::instance().forget(path_);
  path_.clear();
}

PoolMaker::PoolMaker(const std::function<pid_t()>& start)
    : process_(Registry::instance().start_maker(start)) {}

PoolMaker::~PoolMaker() {
  if (process_.get() >= 0) Registry::instance().forget_maker(process_.get());
}

}  // namespace sp3::workloads

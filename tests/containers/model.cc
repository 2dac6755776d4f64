#include "tests/containers/model.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

namespace sp3::test {

std::uint64_t seed() {
  const char* text = std::getenv("SP3_TEST_SEED");
  return text == nullptr ? 20260101 : std::strtoull(text, nullptr, 10);
}

Shape tiny_shape() {
  Shape shape{"tiny", {}, 4 << 20};
  shape.options.memory = MemoryKind::emulated;
  shape.options.geometry.log_size = 64 << 10;
  shape.options.geometry.segment_size = 4096;
  shape.options.geometry.slab_size = 4096;
  shape.options.geometry.max_sessions = 4;
  return shape;
}

Shape default_shape() {
  Shape shape{"default", {}, 64 << 20};
  shape.options.memory = MemoryKind::emulated;
  return shape;
}

namespace {

// Counts the bytes that arrive until the writer is gone. The writer is killed some time after the
// first byte, or when none comes for a minute.
std::uint64_t count_reports(int fd, pid_t writer, std::uint64_t microseconds) {
  using Clock = std::chrono::steady_clock;
  std::uint64_t reports = 0;
  bool killed = false;
  Clock::time_point deadline = Clock::now() + std::chrono::minutes(1);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (!killed && left.count() <= 0) {
      ::kill(writer, SIGKILL);
      killed = true;
    }
    pollfd wait{fd, POLLIN, 0};
    const int ready = ::poll(&wait, 1, killed ? -1 : static_cast<int>(left.count()));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    std::array<char, 4096> buffer;
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size <= 0) return reports;
    if (reports == 0) deadline = Clock::now() + std::chrono::microseconds(microseconds);
    reports += static_cast<std::uint64_t>(size);
  }
}

}  // namespace

std::uint64_t run_and_kill(const std::function<void(const std::function<void()>&)>& work,
                           std::uint64_t microseconds) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    ::close(ends[0]);
    try {
      work([&] {
        const char byte = 1;
        if (::write(ends[1], &byte, 1) != 1) ::_exit(3);
      });
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in the child: %s\n", error.what());
      ::_exit(2);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  const std::uint64_t reports = count_reports(ends[0], child, microseconds);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  const bool as_planned = (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
                          (WIFEXITED(status) && WEXITSTATUS(status) == 0);
  if (!as_planned) {
    throw std::runtime_error("the child failed with status " + std::to_string(status));
  }
  return reports;
}

void run_two_threads(World& world, const std::function<void(Session&)>& first,
                     const std::function<void(Session&)>& second) {
  std::array<std::exception_ptr, 2> thrown;
  std::atomic<int> waiting{2};
  const auto work = [&](const std::function<void(Session&)>& body, std::exception_ptr& error) {
    // Starts both at once, or one would be done before the other begins. Relaxed: nothing but the
    // count is passed on.
    waiting.fetch_sub(1, std::memory_order_relaxed);
    while (waiting.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
    try {
      Session session = world.new_session();
      body(session);
      session.close();
    } catch (...) {
      error = std::current_exception();
    }
  };
  std::thread other([&] { work(second, thrown[1]); });
  work(first, thrown[0]);
  other.join();
  for (const std::exception_ptr& error : thrown) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace sp3::test

// What a program that was started is sent, and what it is not.
#include <csignal>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "tools/start_program.h"

namespace sp3::tools {
namespace {

// Sent to each child at its first moment, when it is in our group still. (Not to the group: the
// tests are in it.)
volatile std::sig_atomic_t sent_to_children = 0;

void interrupt_child() {
  if (sent_to_children != 0) ::kill(::getpid(), sent_to_children);
}

class ChildrenSent {
 public:
  explicit ChildrenSent(int signal) {
    static const int registered = ::pthread_atfork(nullptr, nullptr, interrupt_child);
    REQUIRE(registered == 0);
    sent_to_children = signal;
  }
  ~ChildrenSent() { sent_to_children = 0; }
  ChildrenSent(const ChildrenSent&) = delete;
  ChildrenSent& operator=(const ChildrenSent&) = delete;
};

TEST_CASE("A program in a group of its own is not sent what ours was while it started") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1);
  CAPTURE(signal);
  const ChildrenSent sent(signal);
  const int theirs = wait_for(start_program("/bin/true", {}, {}, ProcessGroup::its_own));
  CHECK(how_it_ended(theirs) == "ended with 0");
}

TEST_CASE("A program in our group is sent what the group was while it started") {
  const ChildrenSent sent(SIGTERM);
  const int ours = wait_for(start_program("/bin/true", {}, {}, ProcessGroup::ours));
  CHECK(how_it_ended(ours) == "was ended by signal 15");
}

TEST_CASE("Starting a program leaves the signals that this thread has blocked") {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  sigset_t before;
  REQUIRE(::pthread_sigmask(SIG_SETMASK, &blocked, &before) == 0);
  wait_for(start_program("/bin/true", {}, {}));
  CHECK_THROWS_WITH(
      start_program("/nonexistent/program", {}, {}),
      Catch::Matchers::StartsWith("/nonexistent/program cannot be started: No such file"));
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, &before, &after);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    CAPTURE(signal);
    CHECK(sigismember(&after, signal) == (signal == SIGUSR2 ? 1 : 0));
  }
}

}  // namespace
}  // namespace sp3::tools

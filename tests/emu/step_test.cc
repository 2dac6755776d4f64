#include "emu/step.h"

#include <csignal>
#include <set>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace sp3::emu;

TEST_CASE("every step has a name of its own, and nothing else has one") {
  std::set<std::string> names;
  for (int i = 0; i < static_cast<int>(Step::count_); ++i) {
    const auto step = static_cast<Step>(i);
    CHECK_FALSE(step_name(step).empty());
    names.emplace(step_name(step));
  }
  CHECK(names.size() == static_cast<std::size_t>(Step::count_));
  CHECK(step_name(Step::commit_publish) == "commit_publish");
  CHECK(step_name(Step::log_store) == "log_store");
  CHECK(step_name(Step::checkpoint_recycle) == "checkpoint_recycle");
  CHECK(step_name(Step::recovery_superblock_b) == "recovery_superblock_b");
  CHECK(step_name(Step::pool_close) == "pool_close");
  CHECK(step_name(Step::count_).empty());
}

namespace {

// Reaches log_fence `reaches` times with a kill armed for the `countdown`-th; returns how the child
// ended.
int status_after(std::uint64_t countdown, int reaches) {
  const pid_t child = fork();
  if (child == 0) {
    arm_kill(Step::log_fence, countdown);
    for (int i = 0; i < reaches; ++i) {
      step(Step::log_flush);
      step(Step::none);
      step(Step::log_fence);
    }
    _exit(42);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

bool killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }
bool survived(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 42; }

}  // namespace

TEST_CASE("an armed step kills the process when it is reached for the n-th time") {
  CHECK(killed(status_after(1, 1)));
  CHECK(killed(status_after(3, 3)));
  CHECK(survived(status_after(3, 2)));
}

TEST_CASE("a disarmed step does nothing") {
  arm_kill(Step::log_store, 1);
  arm_kill(Step::none, 1);
  step(Step::log_store);
  step(Step::none);
  SUCCEED();
}

// A child process that tells its parent what was acknowledged to it, until it is killed or done.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace sp3::test {

// Runs work(pipe) in a child, which ends with what it returns and writes whole Reports to the pipe;
// told(report) is called for each. Returns how the child ended: its exit code, 128 and the number
// of the signal that killed it, or -1 if there was no pipe. REQUIRES: sizeof(Report) <= PIPE_BUF.
template <class Report, class Work, class Told>
int run_reporting_child(Work&& work, Told&& told) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::_exit(work(ends[1]));
  }
  ::close(ends[1]);
  Report report{};
  while (::read(ends[0], &report, sizeof report) == static_cast<ssize_t>(sizeof report)) {
    told(report);
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace sp3::test

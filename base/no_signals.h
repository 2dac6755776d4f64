// NoSignals: while one lives its thread, and those it starts, for good, take no signals of the
// process, which are for the program's own threads: a program that has blocked one after it opened
// a pool, to wait for it (sigwait, signalfd), would be ended by it otherwise, and a handler would
// run on a thread that the program knows nothing of. Not blocked are signals that a thread is sent
// for what it does itself, which cannot wait, and a profiler's.
//
// It costs two system calls.
#pragma once

#include <csignal>

namespace sp3::base {

class [[nodiscard]] NoSignals {
 public:
  NoSignals() noexcept {
    ::sigset_t blocked;
    ::sigfillset(&blocked);
    for (const int own : {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP, SIGPROF}) {
      ::sigdelset(&blocked, own);
    }
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  ::sigset_t before_{};
};

}  // namespace sp3::base

// PoolRemover: the pool of a benchmark goes when the benchmark ends, however it ends. PoolMaker: so
// does one that a child process makes.
#pragma once

#include <filesystem>
#include <functional>

#include <sp3/error.h>
#include <sys/types.h>

#include "pool/file_system.h"

namespace sp3::workloads {

// Removes a file, or a directory with all that is in it, when it is destroyed. It comes before what
// it names: what is there already is another's, and stays.
//
// From the first one on, SIGINT, SIGTERM and SIGHUP (those that are not ignored) remove what all of
// them name and then end the process as they would have. SIGKILL cannot be helped. SIGPIPE is
// blocked: who prints to nobody gets an error instead, which removes on its way out.
// REQUIRES: the first one is made before any other thread is started, so that all have these
// signals blocked. A child made by fork() has them blocked too, and must leave by _exit() or a
// signal.
// Thread safety: any thread.
class PoolRemover {
 public:
  // Errors: already_exists; std::system_error if the thread that waits for signals cannot be
  // started.
  explicit PoolRemover(std::filesystem::path path);
  ~PoolRemover();
  PoolRemover(const PoolRemover&) = delete;
  PoolRemover& operator=(const PoolRemover&) = delete;

  // What it names stays.
  void keep() noexcept;

  // What `make` returns, which makes what this names. If it finds that another did meanwhile
  // (already_exists), that stays.
  template <class Make>
  auto making(const Make& make) {
    try {
      return make();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::already_exists) keep();
      throw;
    }
  }

 private:
  std::filesystem::path path_;
};

// A child process that makes what a PoolRemover names. Where a signal has that removed, this child
// is killed before, or it might make it afterwards, until it learns that we are gone. (That is left
// undone where no descriptor can be had for it.)
// Thread safety: any thread.
class PoolMaker {
 public:
  // `start` starts it and returns its number; no signal removes anything meanwhile.
  // Errors: those of `start`.
  explicit PoolMaker(const std::function<pid_t()>& start);
  ~PoolMaker();
  PoolMaker(const PoolMaker&) = delete;
  PoolMaker& operator=(const PoolMaker&) = delete;

 private:
  pool::Descriptor process_;  // means this child even when its number is another's
};

}  // namespace sp3::workloads

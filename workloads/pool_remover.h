// PoolRemover: the pool of a benchmark goes when the benchmark ends, however it ends.
#pragma once

#include <filesystem>

#include <sp3/error.h>

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

}  // namespace sp3::workloads

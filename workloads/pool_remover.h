// PoolRemover: the pool of a benchmark goes when the benchmark ends, however it ends.
#pragma once

#include <filesystem>

namespace sp3::workloads {

// Removes a file, or a directory with all that is in it, when it is destroyed.
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
  explicit PoolRemover(std::filesystem::path path);
  ~PoolRemover();
  PoolRemover(const PoolRemover&) = delete;
  PoolRemover& operator=(const PoolRemover&) = delete;

  // What it names stays.
  void keep() noexcept;

 private:
  std::filesystem::path path_;
};

}  // namespace sp3::workloads

// TempPath: a file name that nobody else uses, for one test.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include <unistd.h>

#include "workloads/scratch_directory.h"

namespace sp3::test {

// Names a file that does not exist yet, in memory where that has room for the tests' pools. The
// file or directory, if the test made it, is removed at destruction.
class TempPath {
 public:
  explicit TempPath(const std::string& name = "test") {
    // Process numbers come round, and a test that was killed leaves its files.
    do {
      path_ = workloads::scratch_directory() / unique(name);
    } while (std::filesystem::exists(std::filesystem::symlink_status(path_)));
  }
  ~TempPath() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempPath(const TempPath&) = delete;
  TempPath& operator=(const TempPath&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::string string() const { return path_.string(); }

 private:
  static std::string unique(const std::string& name) {
    // relaxed: only uniqueness matters.
    static std::atomic<std::uint64_t> next{0};
    return "sp3-" + name + "-" + std::to_string(getpid()) + "-" +
           std::to_string(next.fetch_add(1, std::memory_order_relaxed));
  }

  std::filesystem::path path_;
};

}  // namespace sp3::test

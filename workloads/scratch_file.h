// ScratchFile: a file that is needed for a while, beside one that a user named.
#pragma once

#include <filesystem>

#include "pool/file_system.h"
#include "workloads/pool_remover.h"

namespace sp3::workloads {

// Empty at first, under a name that nobody has, and gone at the end, as in
// workloads/pool_remover.h.
class ScratchFile {
 public:
  // In the directory of `path`, whose name it starts with. Errors: those of sp3::Error, as making a
  // pool there has.
  explicit ScratchFile(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }

 private:
  std::filesystem::path path_;
  PoolRemover remover_;  // first: where there can be none, there shall be no file either
  pool::Descriptor file_;
};

}  // namespace sp3::workloads

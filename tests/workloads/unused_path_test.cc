#include <fstream>
#include <string>

#include <unistd.h>
#include <catch2/catch.hpp>

#include "tests/support/temp_path.h"
#include "workloads/unused_path.h"

namespace sp3::workloads {

// Else a benchmark whose process has the number of one that was killed would be refused.
TEST_CASE("What a killed process has left under a name is not taken for ours") {
  const test::TempPath directory("unused");
  std::filesystem::create_directory(directory.path());
  const std::string name = unused_path(directory.path(), "sp3-some").stem();
  CHECK(name.starts_with("sp3-some-" + std::to_string(::getpid()) + "-"));
  CHECK(unused_path(directory.path(), "sp3-some") == directory.path() / (name + ".pool"));
  std::ofstream(directory.path() / (name + ".pool")) << "left";
  CHECK(unused_path(directory.path(), "sp3-some") == directory.path() / (name + "-1.pool"));
  std::filesystem::create_symlink("nowhere", directory.path() / (name + "-1.pool"));
  CHECK(unused_path(directory.path(), "sp3-some") == directory.path() / (name + "-2.pool"));
  CHECK(unused_path(directory.path(), "sp3-some", "") == directory.path() / name);
}

}  // namespace sp3::workloads

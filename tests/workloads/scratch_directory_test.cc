#include "workloads/scratch_directory.h"

#include <filesystem>
#include <limits>

#include <catch2/catch.hpp>

#include "tests/support/temp_path.h"

namespace sp3::workloads {

// A container's /dev/shm of 64 MiB, without which there is still a temporary directory.
TEST_CASE("Pools go to the first directory that has room for them, or to one that has most") {
  const test::TempPath some("some");
  const test::TempPath other("other");
  const test::TempPath missing("missing");
  std::filesystem::create_directory(some.path());
  std::filesystem::create_directory(other.path());
  constexpr std::uint64_t kMuch = std::numeric_limits<std::uint64_t>::max();

  CHECK(directory_with_room({some.path(), other.path()}, 1) == some.path());
  CHECK(directory_with_room({missing.path(), other.path()}, 1) == other.path());
  CHECK(directory_with_room({missing.path(), "/proc", other.path(), "/proc"}, kMuch) ==
        other.path());
  CHECK(directory_with_room({missing.path()}, 1) == missing.path());
  CHECK(room_in(missing.path()) == 0);
  CHECK(room_in(some.path()) > 0);
}

}  // namespace sp3::workloads

#include <filesystem>
#include <fstream>

#include <sp3/error.h>
#include <catch2/catch.hpp>

#include "tests/support/temp_path.h"
#include "workloads/pool_remover.h"

namespace sp3::workloads {

namespace {

void make(const std::filesystem::path& path) { std::ofstream(path) << "made"; }

// Whether a file is still there once what was to make it has made it, and failed so.
bool stays_after(ErrorCode failure) {
  const test::TempPath path("remover");
  const auto create = [&] {
    make(path.path());
    throw Error(failure, "create", {});
  };
  CHECK_THROWS_AS(PoolRemover(path.path()).making(create), Error);
  return std::filesystem::exists(path.path());
}

}  // namespace

TEST_CASE("What a remover names goes with it") {
  const test::TempPath path("remover");
  {
    PoolRemover remover(path.path());
    remover.making([&] { make(path.path()); });
    CHECK(std::filesystem::exists(path.path()));
  }
  CHECK_FALSE(std::filesystem::exists(path.path()));
}

TEST_CASE("What was there before a remover stays") {
  const test::TempPath path("remover");
  make(path.path());
  CHECK_THROWS_AS(PoolRemover(path.path()), Error);
  CHECK(std::filesystem::exists(path.path()));
}

TEST_CASE("What another makes after a remover looked stays") {
  CHECK(stays_after(ErrorCode::already_exists));
}

TEST_CASE("What could be made in part only goes") { CHECK_FALSE(stays_after(ErrorCode::no_space)); }

}  // namespace sp3::workloads

// Pools that earlier versions wrote are opened, recovered and used.
#include <filesystem>
#include <vector>

#include <catch2/catch.hpp>

#include <sp3/report.h>
#include <sp3/sp3.h>

#include "tests/format/kept_pool.h"
#include "tests/support/pools.h"
#include "tests/support/skip.h"
#include "tests/support/temp_path.h"

namespace sp3::test {
namespace {

const std::filesystem::path kKept = SP3_KEPT_POOLS;

// Nodes of containers are named as the compiler spells them (sp3/type.h).
#ifdef __clang__
constexpr bool kSpellsAlike = false;
#else
constexpr bool kSpellsAlike = true;
#endif

// Whoever opens the pool finds it as it should be; so does the next, who finds it closed.
void expect_twice(const TempPath& path, const Options& options, Stage stage) {
  for (int times = 0; times < 2; ++times) {
    Pool pool = Pool::open(path.path(), options);
    expect_objects(pool, stage);
    pool.close();
  }
  CHECK(Pool::check(path.path()).sound());
}

}  // namespace

TEST_CASE("a pool that was kept closed is opened") {
  if (!kSpellsAlike) SP3_SKIP("kept by a compiler that spells types otherwise");
  const TempPath path;
  write_bytes(path.path(), load_image(kKept / "closed.pool.txt"));
  const auto memory = GENERATE(MemoryKind::emulated, MemoryKind::file);
  expect_twice(path, quiet_options(memory), Stage::filled);
}

TEST_CASE("a pool that was kept as a crash had left it is recovered") {
  if (!kSpellsAlike) SP3_SKIP("kept by a compiler that spells types otherwise");
  const TempPath path;
  write_bytes(path.path(), load_image(kKept / "crashed.pool.txt"));
  Options options = quiet_options(GENERATE(MemoryKind::emulated, MemoryKind::file));
  options.recovery.strategy = GENERATE(RecoveryStrategy::stamp, RecoveryStrategy::dag);
  {
    const Pool pool = Pool::open(path.path(), options);
    const RecoveryReport& report = pool.recovery_report();
    CHECK(report.replayed == 5);
    CHECK(report.dropped == 1);
    CHECK(report.damage.empty());
  }
  expect_twice(path, options, Stage::changed);
}

// For a new version of the format, beside those of the old one: writes them where it is run.
TEST_CASE("pools are made to be kept", "[.keep]") {
  const TempPath path;
  {
    Pool pool = Pool::create(path.path(), kTinyPool, kept_options());
    fill(pool);
    pool.close();
  }
  save_image("closed.pool.txt", read_bytes(path.path()));
  Pool pool = Pool::open(path.path(), kept_options());
  save_image("crashed.pool.txt", change(pool, path.path()));
}

}  // namespace sp3::test

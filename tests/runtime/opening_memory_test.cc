// A pool that is created, opened, recovered or closed by a process that runs out of memory. A
// program of its own, because it replaces the allocation functions of the whole program.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/errors.h"
#include "tests/support/failing_allocations.h"
#include "tests/support/pools.h"

bool sp3::test::is_refused(std::size_t) { return has_run_out(); }
bool sp3::test::is_refused_aligned(std::size_t) { return has_run_out(); }

namespace sp3::test {
namespace {

struct Cell {
  std::uint64_t value = 0;
};
constexpr std::uint64_t kCells = 150;
struct All {
  Ptr<Cell> cells[kCells]{};
};

Options options_of(RecoveryStrategy strategy, MemoryKind memory) {
  Options options = quiet_options();
  options.memory = memory;
  options.geometry = {};
  options.recovery.strategy = strategy;
  options.recovery.threads = 2;
  return options;
}

// Cells of which every third is destroyed and the others are changed, by sessions that depend on each other.
void fill(Pool& pool) {
  Session one = pool.session();
  Session other = pool.session();
  one.run([](Transaction& tx) {
    const auto all = tx.make<All>();
    tx.set_root("all", all);
    All& cells = tx.write(all);
    for (std::uint64_t i = 0; i < kCells; ++i) cells.cells[i] = tx.make<Cell>(Cell{i});
  });
  for (std::uint64_t i = 0; i < kCells; ++i) {
    Session& session = i % 2 == 0 ? one : other;
    session.run([&](Transaction& tx) {
      const auto all = tx.root<All>("all");
      const Ptr<Cell> cell = tx.read(all).cells[i];
      if (i % 3 == 0) {
        tx.destroy(cell);
        tx.write(all).cells[i] = {};
      } else {
        tx.write(cell).value += 1000;
      }
    });
  }
}

bool is_filled(Pool& pool) {
  Session session = pool.session();
  return session.run([](Transaction& tx) {
    const All& all = tx.read(tx.root<All>("all"));
    bool good = true;
    for (std::uint64_t i = 0; i < kCells; ++i) {
      good = good && static_cast<bool>(all.cells[i]) == (i % 3 != 0) &&
             (!all.cells[i] || tx.read(all.cells[i]).value == i + 1000);
    }
    return good;
  });
}

// Calls try_once(allocations), which says whether it had memory for all, until it had.
template <class Try>
void with_ever_more(Try&& try_once) {
  long allocations = 0;
  while (!try_once(allocations)) ++allocations;
  CHECK(allocations > 20);
}

// Whether the call, of which one allocation is refused, had memory for all.
template <class Call>
bool had_memory(long allocations, Call&& call) {
  allocations_left = allocations;
  try {
    call();
  } catch (const std::bad_alloc&) {
    REQUIRE(allocations_left == kPlenty);
    return false;
  }
  return std::exchange(allocations_left, kPlenty) != kPlenty;
}

}  // namespace

TEST_CASE("whatever allocation of creating a pool fails, no file is left") {
  const Options options = options_of(RecoveryStrategy::stamp, MemoryKind::emulated);
  with_ever_more([&](long allocations) {
    TempPath path;
    std::optional<Pool> pool;
    const bool had = had_memory(
        allocations, [&] { pool.emplace(Pool::create(path.path(), kTinyPool, options)); });
    // Without memory for what only makes things faster there may be a pool all the same.
    REQUIRE(std::filesystem::exists(path.path()) == pool.has_value());
    if (!pool) pool.emplace(Pool::create(path.path(), kTinyPool, options));
    fill(*pool);
    REQUIRE(is_filled(*pool));
    return had;
  });
}

TEST_CASE("whatever allocation of a recovery fails, the next one finds everything") {
  for (const RecoveryStrategy strategy : {RecoveryStrategy::stamp, RecoveryStrategy::dag}) {
    for (const MemoryKind memory : {MemoryKind::emulated, MemoryKind::file}) {
      const Options options = options_of(strategy, memory);
      TempPath killed;
      REQUIRE(in_child([&] {
                fill(*new Pool(Pool::create(killed.path(), std::uint64_t{1} << 20, options)));
                return 0;
              }) == 0);
      with_ever_more([&](long allocations) {
        TempPath path;
        std::filesystem::copy_file(killed.path(), path.path());
        std::optional<Pool> pool;
        const bool had =
            had_memory(allocations, [&] { pool.emplace(Pool::open(path.path(), options)); });
        if (!pool) pool.emplace(Pool::open(path.path(), options));
        REQUIRE(is_filled(*pool));
        pool->close();
        REQUIRE(Pool::check(path.path()).sound());
        return had;
      });
    }
  }
}

TEST_CASE("whatever allocation of closing a pool fails, the next opening finds everything") {
  const Options options = options_of(RecoveryStrategy::stamp, MemoryKind::emulated);
  with_ever_more([&](long allocations) {
    TempPath path;
    Pool pool = Pool::create(path.path(), std::uint64_t{1} << 20, options);
    fill(pool);
    const bool had = had_memory(allocations, [&] { pool.close(); });
    REQUIRE_FALSE(pool.is_open());
    pool = Pool::open(path.path(), options);
    REQUIRE(is_filled(pool));
    return had;
  });
}

}  // namespace sp3::test

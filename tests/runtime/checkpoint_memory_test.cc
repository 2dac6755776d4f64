// A checkpoint that runs out of memory. A program of its own, because it replaces the allocation
// functions of the whole program.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <new>

#include <malloc.h>

#include <catch2/catch.hpp>

#include "base/hash.h"
#include "tests/support/failing_allocations.h"
#include "tests/support/pools.h"

bool sp3::test::is_refused(std::size_t) { return has_run_out(); }
bool sp3::test::is_refused_aligned(std::size_t) { return has_run_out(); }

namespace sp3::test {
namespace {

struct Cell {
  std::uint64_t value = 0;
};
struct Heavy {  // of which each version has memory by itself
  std::array<std::uint64_t, 1024> words{};
};
struct Gone {  // the only one, so that its slab is freed
  std::array<std::uint64_t, 3> words{};
};
constexpr std::size_t kHeavy = 40;  // more than are noted without another allocation
constexpr std::size_t kCells = 200;
struct All {
  std::array<Ptr<Heavy>, kHeavy> heavy{};
  std::array<Ptr<Cell>, kCells> cells{};
};

// What the pool's objects are to hold after so many rounds of changes: cells come and go.
struct Rounds {
  std::uint64_t count = 0;

  static bool changes(std::size_t i, std::uint64_t round) { return (i + round) % 3 == 0; }
  [[nodiscard]] std::uint64_t heavy(std::size_t i) const {
    for (std::uint64_t round = count; round > 0; --round) {
      if (changes(i, round)) return round;
    }
    return 0;
  }
  [[nodiscard]] bool has_cell(std::size_t i) const {
    bool there = true;
    for (std::uint64_t round = 1; round <= count; ++round) {
      if (changes(i, round)) there = !there;
    }
    return there;
  }

  void add(Session& session) {
    const std::uint64_t round = ++count;
    session.run([&](Transaction& tx) {
      const auto root = tx.root<All>("all");
      for (std::size_t i = 0; i < kHeavy; ++i) {
        if (changes(i, round)) tx.write(tx.read(root).heavy[i]).words.fill(round);
      }
    });
    session.run([&](Transaction& tx) {
      All& all = tx.write(tx.root<All>("all"));
      for (std::size_t i = 0; i < kCells; ++i) {
        if (!changes(i, round)) continue;
        if (all.cells[i]) {
          tx.destroy(all.cells[i]);
          all.cells[i] = {};
        } else {
          all.cells[i] = tx.make<Cell>(Cell{i});
        }
      }
    });
  }

  void check(Pool& pool) const {
    Session session = pool.session();
    session.run([&](Transaction& tx) {
      const All& all = tx.read(tx.root<All>("all"));
      for (std::size_t i = 0; i < kHeavy; ++i) {
        const auto& words = tx.read(all.heavy[i]).words;
        REQUIRE(std::ranges::count(words, heavy(i)) == std::ssize(words));
      }
      for (std::size_t i = 0; i < kCells; ++i) {
        REQUIRE(static_cast<bool>(all.cells[i]) == has_cell(i));
        if (all.cells[i]) REQUIRE(tx.read(all.cells[i]).value == i);
      }
    });
  }
};

// Whether a checkpoint finds in the index what it has to bring home, or in the log: which is less.
enum class NamesFrom { index, log };

Pool make_pool(const std::filesystem::path& path, const Options& options, NamesFrom names) {
  Pool pool = Pool::create(path, std::uint64_t{4} << 20, options);
  Session session = pool.session();
  if (names == NamesFrom::log) {
    constexpr int kMany = 100'000;  // each with 16 bytes in the index
    for (int made = 0; made < kMany; made += 1000) {
      session.run([](Transaction& tx) {
        for (int i = 0; i < 1000; ++i) static_cast<void>(tx.make<Cell>());
      });
    }
    pool.checkpoint();
  }
  // In slabs that no checkpoint has had names of.
  session.run([&](Transaction& tx) {
    const auto root = tx.make<All>();
    All& all = tx.write(root);
    for (auto& object : all.heavy) object = tx.make<Heavy>();
    for (std::size_t i = 0; i < kCells; ++i) all.cells[i] = tx.make<Cell>(Cell{i});
    tx.set_root("all", root);
  });
  const auto gone = session.run([](Transaction& tx) { return tx.make<Gone>(); });
  session.run([&](Transaction& tx) { tx.destroy(gone); });
  return pool;
}

// What comes of a checkpoint of which so many allocations succeed before one does not.
enum class Outcome { failed, did_without, had_plenty };

Outcome checkpoint_with(Pool& pool, long allocations) {
  Outcome outcome = Outcome::failed;
  allocations_left = allocations;
  try {
    pool.checkpoint();
    // It goes on without memory for more threads.
    outcome = allocations_left == kPlenty ? Outcome::did_without : Outcome::had_plenty;
  } catch (const std::bad_alloc&) {
  }
  allocations_left = kPlenty;
  return outcome;
}

// What a process that was killed now would leave.
void check_crash(const std::filesystem::path& path, const Options& options, const Rounds& rounds) {
  const TempPath copy("crash");
  std::filesystem::copy_file(path, copy.path());
  Pool pool = Pool::open(copy.path(), options);
  rounds.check(pool);
}

}  // namespace

// Versions that were not noted when their entries had been swung home were nobody's any more, and
// half a checkpoint poisoned the pool.
TEST_CASE("whatever allocation of a checkpoint fails, the next one goes on and nothing is lost") {
  const auto names = GENERATE(NamesFrom::index, NamesFrom::log);
  Options options = quiet_options();
  options.geometry = {};
  options.checkpoint.threads = GENERATE(1U, 2U);
  const auto in_use = [] {
    const auto now = ::mallinfo2();
    return now.uordblks + now.hblkhd;
  };
  long refused = 0;
  int finished = 0;  // checkpoints, by the next one
  for (bool has_plenty = false; !has_plenty;) {
    INFO("allocation " << refused << " of " << options.checkpoint.threads << " threads");
    const TempPath path;
    Rounds rounds;
    const std::size_t before = in_use();
    {
      Pool pool = make_pool(path.path(), options, names);
      Session session = pool.session();
      rounds.add(session);
      // Another one that fails as well, somewhere in what the first has left to do.
      const auto again =
          static_cast<long>((base::next_random(static_cast<std::uint64_t>(refused)) >> 33) %
                            static_cast<std::uint64_t>(refused + 1));
      has_plenty = checkpoint_with(pool, refused) == Outcome::had_plenty;
      rounds.add(session);
      check_crash(path.path(), options, rounds);
      const std::uint64_t made = pool.statistics().checkpoints;
      const Outcome second = checkpoint_with(pool, again);
      check_crash(path.path(), options, rounds);
      rounds.add(session);
      pool.checkpoint();
      if (second == Outcome::failed && pool.statistics().checkpoints > made + 1) ++finished;
      rounds.add(session);
      check_crash(path.path(), options, rounds);
      rounds.check(pool);
      session.close();
      // Without a last checkpoint, and so with whatever the one that failed has left to be freed.
      if (refused % 2 == 0) pool.close();
    }
    // What the first takes is for the process. Where allocations are not counted, leak checkers are
    // for this.
    if (refused > 0) CHECK(in_use() < before + sizeof(Heavy));
    if (!has_plenty) ++refused;
    CHECK(Pool::check(path.path()).damage.empty());
    Pool pool = Pool::open(path.path(), options);
    rounds.check(pool);
  }
  CHECK(refused > 10);
  CHECK(finished > 10);
}

}  // namespace sp3::test

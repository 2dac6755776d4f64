// A process that runs out of memory in the middle of a transaction. A program of its own, because it
// replaces the allocation functions of the whole program.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/runtime/one_pool.h"

namespace {
thread_local bool no_memory = false;           // for anything
thread_local bool no_large_memory = false;     // for aligned blocks of more than 100 kB
thread_local bool no_memory_for_runs = false;  // for the blocks of a std::deque
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  const bool refused = no_memory || (no_memory_for_runs && bytes >= 480 && bytes <= 512);
  void* const block = refused ? nullptr : std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  void* block = nullptr;
  if (no_large_memory && bytes > 100'000) return nullptr;
  return ::posix_memalign(&block, alignment, bytes) == 0 ? block : nullptr;
}

namespace sp3::test {
namespace {

struct Cell {
  std::uint64_t value = 0;
};
struct Large {
  std::array<std::uint64_t, 32768> words{};
};

Options roomy_options() {
  Options options = quiet_options();
  options.geometry = {};
  return options;
}

}  // namespace

TEST_CASE("a body that goes on without the memory for what it writes does not commit") {
  OnePool p(roomy_options(), std::uint64_t{64} << 20);
  const auto large = p.session.run([](Transaction& tx) { return tx.make<Large>(); });
  int bodies = 0;
  CHECK_THROWS_AS(p.session.run([&](Transaction& tx) {
    ++bodies;
    no_large_memory = true;
    try {
      tx.write(large).words[0] = 1;
    } catch (const std::bad_alloc&) {
    }
    no_large_memory = false;
  }),
                  std::bad_alloc);
  CHECK(bodies == 1);
  p.session.run([&](Transaction& tx) { ++tx.write(large).words[0]; });
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(large).words[0]; }) == 1);
}

TEST_CASE("a commit without memory for its predecessors leaves no lock behind") {
  OnePool p;
  Session other = p.pool.session();
  std::array<Ptr<Cell>, 2> cells;
  p.session.run([&](Transaction& tx) {
    for (auto& cell : cells) cell = tx.make<Cell>();
  });
  // A predecessor that is not committed yet.
  Ticket ticket = other.run_async([&](Transaction& tx) { tx.write(cells[0]).value = 1; });
  CHECK_THROWS_AS(p.session.run([&](Transaction& tx) {
    tx.write(cells[1]).value = tx.read(cells[0]).value + 1;
    no_memory = true;
  }),
                  std::bad_alloc);
  no_memory = false;
  other.run([&](Transaction& tx) { tx.write(cells[1]).value += 5; });
  p.pool.checkpoint();
  p.session.run([&](Transaction& tx) { CHECK(tx.read(cells[1]).value == 5); });
  ticket.wait();
}

// It was the header of the segment that was not had, over the end of the record before it.
TEST_CASE("a commit without memory for another log segment leaves the log as it was") {
  TempPath path;
  constexpr std::uint64_t kRounds = 150;
  const int code = in_child([&] {
    Options options = quiet_options();
    options.geometry.log_size = std::uint64_t{1} << 20;  // no checkpoint shall cover it up
    OnePool* const p = new OnePool(options, std::uint64_t{2} << 20);  // never closed
    std::filesystem::rename(p->path.path(), path.path());
    std::array<Ptr<Cell>, 60> cells;
    p->session.run([&](Transaction& tx) {
      for (auto& cell : cells) cell = tx.make<Cell>();
      tx.set_root("first", cells[0]);
    });
    int refused = 0;
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      try {
        p->session.run([&](Transaction& tx) {
          for (auto& cell : cells) tx.write(cell).value = 1000 + round;
          no_memory_for_runs = true;
        });
      } catch (const std::bad_alloc&) {
        ++refused;
      }
      no_memory_for_runs = false;
      p->session.run([&](Transaction& tx) { tx.write(cells[0]).value = round; });
    }
    return refused > 0 ? 0 : 1;
  });
  CHECK(code == 0);
  CHECK(Pool::check(path.path()).sound());
  Pool pool = Pool::open(path.path(), quiet_options());
  Session session = pool.session();
  CHECK(session.run([](Transaction& tx) { return tx.read(tx.root<Cell>("first")).value; }) ==
        kRounds);
}

}  // namespace sp3::test

// A checkpoint that runs out of memory. A program of its own, because it replaces the allocation
// functions of the whole program.
#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <new>

#include <malloc.h>

#include <catch2/catch.hpp>

#include "tests/support/failing_allocations.h"
#include "tests/support/pools.h"

bool sp3::test::is_refused(std::size_t) { return has_run_out(); }
bool sp3::test::is_refused_aligned(std::size_t) { return has_run_out(); }

namespace sp3::test {
namespace {

struct Cell {
  std::uint64_t value = 0;
};

Options roomy_options() {
  Options options = quiet_options();
  options.geometry = {};
  return options;
}

}  // namespace

// A version that was not noted when its entry had been swung home was nobody's any more.
TEST_CASE("whatever allocation of a checkpoint fails, no version is lost and none is leaked") {
  struct Heavy {  // of which each has memory by itself, and in 16 MiB there is room for some
    std::array<std::uint64_t, 8192> words{};
  };
  // More than are noted without another allocation.
  struct All {
    std::array<Ptr<Heavy>, 40> objects{};
  };
  const auto in_use = [] {
    const auto now = ::mallinfo2();
    return now.uordblks + now.hblkhd;
  };
  int refused = 0;
  for (bool has_plenty = false; !has_plenty;) {
    INFO("allocation " << refused);
    const TempPath path;
    const std::size_t before = in_use();
    {
      Pool pool = Pool::create(path.path(), std::uint64_t{16} << 20, roomy_options());
      Session session = pool.session();
      session.run([](Transaction& tx) {
        const auto all = tx.make<All>();
        for (auto& object : tx.write(all).objects) {
          object = tx.make<Heavy>();
          tx.write(object).words.fill(object.offset());
        }
        tx.set_root("all", all);
      });
      allocations_left = refused;
      try {
        pool.checkpoint();
        has_plenty = true;
      } catch (const std::bad_alloc&) {
        ++refused;
      }
      allocations_left = kPlenty;
      CHECK(code_of([&] {
              session.run([](Transaction& tx) { tx.set_root("new", tx.make<Cell>()); });
              return 0;
            }) == (has_plenty ? "no error" : "outcome_unknown"));
    }
    // Where allocations are not counted, leak checkers are for this.
    CHECK(in_use() < before + sizeof(Heavy));
    Pool pool = Pool::open(path.path(), roomy_options());
    Session session = pool.session();
    session.run([](Transaction& tx) {
      for (const auto object : tx.read(tx.root<All>("all")).objects) {
        const auto& words = tx.read(object).words;
        REQUIRE(std::ranges::count(words, object.offset()) == std::ssize(words));
      }
    });
  }
  CHECK(refused > 10);
}

}  // namespace sp3::test

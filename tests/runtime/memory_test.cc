// A process that runs out of memory in the middle of a transaction. A program of its own, because
// it replaces the allocation functions of the whole program.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <new>
#include <span>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <sp3/containers/bp_tree.h>

#include "emu/memory.h"
#include "index/slab_table.h"
#include "pool/pool_file.h"
#include "tests/runtime/one_pool.h"
#include "tests/support/failing_allocations.h"

namespace {
thread_local bool no_memory = false;           // for anything
thread_local bool no_large_memory = false;     // for aligned blocks of more than 100 kB
thread_local bool no_memory_for_runs = false;  // for the blocks of a std::deque
std::atomic<bool> no_next_megabyte{false};     // in whatever thread without is_here; once
std::atomic<bool> no_memory_elsewhere{false};  // in threads without is_here
thread_local bool is_here = false;
std::atomic<int> refused_elsewhere{0};

bool is_that_megabyte(std::size_t bytes) {
  return bytes >= std::size_t{1} << 20 && !is_here && no_next_megabyte.exchange(false);
}
bool is_elsewhere() {
  // relaxed: whether it is refused a moment later makes no difference.
  if (!no_memory_elsewhere.load(std::memory_order_relaxed) || is_here) return false;
  refused_elsewhere.fetch_add(1);
  return true;
}
}  // namespace

bool sp3::test::is_refused(std::size_t bytes) {
  return no_memory || (no_memory_for_runs && bytes >= 480 && bytes <= 512) || has_run_out() ||
         is_that_megabyte(bytes) || is_elsewhere();
}
bool sp3::test::is_refused_aligned(std::size_t bytes) {
  return (no_large_memory && bytes > 100'000) || has_run_out();
}

namespace sp3::test {
namespace {

struct Cell {
  std::uint64_t value = 0;
};
struct Large {
  std::array<std::uint64_t, 32768> words{};
};
struct Page {
  std::array<std::uint64_t, 490> words{};
};
struct Thing {
  std::array<std::uint64_t, 3> words{};
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

// What is replaced is noted after publish, when nothing may fail any more.
TEST_CASE("whatever allocation of a large commit fails, all of it is visible or nothing") {
  constexpr std::size_t kCells = 200;
  int refused = 0;
  bool has_plenty = false;
  for (long allocations = 0; !has_plenty; ++allocations) {
    OnePool p(roomy_options(), std::uint64_t{16} << 20);
    std::vector<Ptr<Cell>> cells(kCells);
    p.session.run([&](Transaction& tx) {
      for (auto& cell : cells) cell = tx.make<Cell>();
    });
    Session fresh = p.pool.session();  // that has retired nothing yet
    bool committed = false;
    try {
      fresh.run([&](Transaction& tx) {
        for (const auto cell : cells) ++tx.write(cell).value;
        allocations_left = allocations;
      });
      committed = true;
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    has_plenty = allocations_left != kPlenty;  // none was refused
    allocations_left = kPlenty;
    p.session.run([&](Transaction& tx) {
      for (const auto cell : cells) REQUIRE(tx.read(cell).value == (committed ? 1 : 0));
    });
  }
  CHECK(refused > 0);
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
    const auto used = [&] { return p->pool.statistics().log_bytes_used; };
    int refused = 0;
    bool lost = false;  // a segment
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      const std::uint64_t before = used();
      try {
        p->session.run([&](Transaction& tx) {
          for (auto& cell : cells) tx.write(cell).value = 1000 + round;
          no_memory_for_runs = true;
        });
      } catch (const std::bad_alloc&) {
        ++refused;
        lost = lost || used() != before;
      }
      no_memory_for_runs = false;
      p->session.run([&](Transaction& tx) { tx.write(cells[0]).value = round; });
    }
    return lost ? 2 : refused == 0 ? 1 : 0;
  });
  CHECK(code == 0);
  CHECK(Pool::check(path.path()).sound());
  Pool pool = Pool::open(path.path(), quiet_options());
  Session session = pool.session();
  CHECK(session.run([](Transaction& tx) { return tx.read(tx.root<Cell>("first")).value; }) ==
        kRounds);
}

// Whatever member the body lacked memory for, half of what a container did must not be committed.
TEST_CASE("a body that goes on without memory for a container's work does not commit") {
  using Tree = BpTree<std::uint64_t, std::uint64_t, 4>;
  int swallowed = 0;
  for (std::uint64_t keys = 2; keys < 40; keys += 3) {
    OnePool p(roomy_options(), std::uint64_t{16} << 20);
    const auto header = p.session.run([](Transaction& tx) { return Tree::create(tx).header(); });
    const auto insert = [&](Session& session, std::uint64_t key) {
      session.run([&](Transaction& tx) { Tree::open(tx, header).insert_or_assign(tx, key, key); });
    };
    for (std::uint64_t key = 0; key < keys; ++key) insert(p.session, key);
    for (long allocations = 0; allocations < 40; ++allocations) {
      Session fresh = p.pool.session();  // what it keeps for reads and writes is still small
      bool refused = false;
      const std::uint64_t key = 1000 + static_cast<std::uint64_t>(allocations);
      try {
        fresh.run([&](Transaction& tx) {
          refused = false;
          Tree tree = Tree::open(tx, header);
          allocations_left = allocations;
          try {
            tree.insert_or_assign(tx, key, key);
          } catch (const std::bad_alloc&) {
            refused = true;
          }
          allocations_left = kPlenty;
        });
        CHECK_FALSE(refused);
      } catch (const std::bad_alloc&) {
        CHECK(refused);
      }
      if (refused) ++swallowed;
      p.session.run([&](Transaction& tx) {
        Tree tree = Tree::open(tx, header);
        CHECK(tree.check_invariants(tx).empty());
        if (!refused) tree.erase(tx, key);
      });
    }
  }
  CHECK(swallowed > 0);
}

namespace {

constexpr std::uint64_t kRangedLength = 20'000;

// All that ranged objects can do, each by step(). What is left of it: `bytes` at 100, and seven of
// them each 50 bytes from 9000 on.
template <class Step>
void use_ranged(Transaction& tx, const RangedObject& object, std::span<const std::byte> bytes,
                std::span<std::byte> found, Step&& step) {
  std::array<RangedView, 12> views;
  std::uint64_t at = 0;
  for (RangedView& view : views) {
    step([&] { view = object.view(tx, at, at + 300); });
    at += 37;
  }
  step([&] { object.write(tx, 100, bytes); });
  for (at = 9000; at < 14'000; at += 50) {
    step([&] { object.write(tx, at, bytes.first(7)); });
    if (at % 500 == 0) step([&] { object.lock(tx, at + 20, at + 30); });
  }
  step([&] { object.read(tx, 0, found); });
  step([&] {
    const RangedObject other = RangedObject::create(tx, 100'000, 256);
    other.write(tx, 50'000, bytes);
    other.fill(tx, 0, 40'000);
    other.resize(tx, 3000);
    other.resize(tx, 200'000);
    other.destroy(tx);
  });
}

}  // namespace

// All of it is, or nothing; if the body goes on after a step that failed, too.
TEST_CASE("whatever allocation for ranged objects fails, no part of a transaction is committed") {
  struct Way {
    RangeLockKind kind;
    LockTiming locks;
    bool goes_on;
  };
  for (const Way& way : {Way{RangeLockKind::skiplist, LockTiming::commit, false},
                         Way{RangeLockKind::skiplist, LockTiming::encounter, true},
                         Way{RangeLockKind::grid, LockTiming::commit, true},
                         Way{RangeLockKind::grid, LockTiming::encounter, false}}) {
    Options options = roomy_options();
    options.range_lock = way.kind;
    options.locks = way.locks;
    OnePool p(options, std::uint64_t{16} << 20);
    std::vector<std::byte> expected(kRangedLength), found(kRangedLength);
    const auto object = p.session.run([](Transaction& tx) {
      const auto made = RangedObject::create(tx, kRangedLength, 256);
      made.fill(tx, 0, kRangedLength);
      return made;
    });
    const auto objects = [&] {
      p.pool.checkpoint();
      return p.pool.info().objects;
    };
    const std::uint64_t before = objects();
    long allocations = 0;
    for (bool refused = true; refused; ++allocations) {
      const std::vector<std::byte> bytes(4000, std::byte(static_cast<unsigned char>(allocations)));
      const auto step = [&](auto&& action) {
        try {
          action();
        } catch (const std::bad_alloc&) {
          if (!way.goes_on) throw;
        }
      };
      Session fresh = p.pool.session();  // what it keeps for reads and writes is still small
      try {
        fresh.run([&](Transaction& tx) {
          allocations_left = allocations;
          use_ranged(tx, object, bytes, found, step);
        });
        std::ranges::copy(bytes, expected.begin() + 100);
        for (auto at = expected.begin() + 9000; at < expected.begin() + 14'000; at += 50) {
          std::copy_n(bytes.begin(), 7, at);
        }
        refused = allocations_left == kPlenty;
      } catch (const std::bad_alloc&) {
        REQUIRE(allocations_left == kPlenty);
      }
      allocations_left = kPlenty;
      fresh.close();
      p.session.run([&](Transaction& tx) {
        object.lock(tx, 0, kRangedLength);
        object.read(tx, 0, found);
        CHECK(object.check_invariants(tx) == "");
      });
      INFO("allocation " << allocations);
      REQUIRE(found == expected);
    }
    CHECK(allocations > 20);
    CHECK(objects() == before);
  }
}

// After publish nothing may fail, and an attempt that fails must come to its end.
TEST_CASE("without memory to keep free slots and versions nothing ends the process") {
  for (const bool destroys : {false, true}) {
    for (long allocations = 0; allocations < 40; ++allocations) {
      OnePool p(roomy_options(), std::uint64_t{16} << 20);
      std::array<Ptr<Thing>, 300> things;
      {
        Session maker = p.pool.session();
        maker.run([&](Transaction& tx) {
          for (auto& thing : things) thing = tx.make<Thing>();
        });
      }
      const auto body = [&](Transaction& tx) {
        if (destroys) {
          for (const auto thing : things) tx.destroy(thing);
        } else {
          for (const auto thing : things) tx.write(thing).words[0] = 1;
          for (int i = 0; i < 200; ++i) static_cast<void>(tx.make<Thing>());
        }
        allocations_left = allocations;  // from here on: commit, or the abort of an exception
        if (!destroys) tx.cancel();
      };
      try {
        p.session.run(body);
      } catch (const std::bad_alloc&) {
      } catch (const Cancelled&) {
      }
      allocations_left = kPlenty;
      p.session.run([](Transaction& tx) { static_cast<void>(tx.make<Thing>()); });
    }
  }
}

// As std::bad_alloc it would say that nothing has happened.
TEST_CASE("without memory it is told all the same that the outcome is unknown") {
  OnePool p(roomy_options(), std::uint64_t{16} << 20);
  const auto cell = p.session.run([](Transaction& tx) { return tx.make<Cell>(); });
  p.session.run([&](Transaction& tx) { tx.write(cell).value = 1; });
  std::string told = "nothing";
  try {
    p.session.run([&](Transaction& tx) {
      tx.write(cell).value = 2;
      emu::inject_io_error(EIO, 1);
      no_memory = true;
    });
  } catch (const Error& error) {
    no_memory = false;
    told = to_string(error.code());
  } catch (const std::bad_alloc&) {
    no_memory = false;
    told = "std::bad_alloc";
  }
  no_memory = false;
  emu::inject_io_error(0, 0);
  CHECK(told == "outcome_unknown");
}

TEST_CASE("without memory a session and a pool are closed all the same") {
  for (long allocations = 0; allocations < 30; ++allocations) {
    OnePool p(roomy_options(), std::uint64_t{16} << 20);
    Ptr<Thing> thing;
    {
      Session other = p.pool.session();
      thing = other.run([](Transaction& tx) { return tx.make<Thing>(); });
      other.run([&](Transaction& tx) { tx.write(thing).words[0] = 1; });
      allocations_left = allocations;
    }
    allocations_left = kPlenty;
    p.session.run([&](Transaction& tx) { ++tx.write(thing).words[0]; });
    allocations_left = allocations;
    p.session.close();
    allocations_left = kPlenty;
    CHECK_NOTHROW(p.reopen());
    CHECK(p.session.run([&](Transaction& tx) { return tx.read(thing).words[0]; }) == 2);
  }
}

TEST_CASE("a session that cannot be opened for want of memory leaves nothing behind") {
  OnePool p(roomy_options(), std::uint64_t{16} << 20);
  int refused = 0;
  for (long allocations = 0;; ++allocations) {
    allocations_left = allocations;
    try {
      const Session other = p.pool.session();
      allocations_left = kPlenty;
      break;
    } catch (const std::bad_alloc&) {
      ++refused;
    }
  }
  CHECK(refused > 3);  // and leak checkers find nothing
  p.session.close();
  CHECK_NOTHROW(p.pool.close());  // none of them counts as open
}

TEST_CASE("without memory to say that sessions are open the pool stays open") {
  OnePool p(roomy_options(), std::uint64_t{16} << 20);
  no_memory = true;
  CHECK_THROWS(p.pool.close());
  no_memory = false;
  CHECK(p.pool.is_open());
  p.session.close();
  CHECK_NOTHROW(p.pool.close());
  CHECK(Pool::inspect(p.path.path()).clean);
}

TEST_CASE("without memory to hand out free slots none of them is lost") {
  constexpr std::uint64_t kSize = std::uint64_t{1} << 20;
  const auto capacity = [](OnePool& p) {
    int made = 0;
    while (p.code([](Transaction& tx) { return tx.make<Thing>(); }) == "no error") ++made;
    return made;
  };
  OnePool untouched(quiet_options(), kSize);
  const int wanted = capacity(untouched);
  OnePool p(quiet_options(), kSize);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    Session other = p.pool.session();
    try {
      other.run([&](Transaction& tx) {
        allocations_left = i % 20;
        static_cast<void>(tx.make<Thing>());
        tx.cancel();
      });
    } catch (const std::bad_alloc&) {
      ++refused;
    } catch (const Cancelled&) {
    }
    allocations_left = kPlenty;
  }
  CHECK(refused > 0);
  CHECK(capacity(p) == wanted);
}

// It stayed pinned, and the other waited for its grace for ever.
TEST_CASE("without memory to free slabs none is, and for many it takes no more than for a few") {
  const TempPath path;
  const auto file = pool::PoolFile::create(path.path(), kTinyPool, quiet_options());
  base::EpochDomain epochs{1};
  epochs.admit(0);
  index::SlabTable table(file->memory(), file->layout(), file->identity(), epochs,
                         [](int error) { FAIL(error); });
  std::vector<index::Place> places;
  table.take(detail::type_info<Cell>, 1, places);  // of slab 0, which stays
  places.clear();
  while (table.slabs_used() < file->layout().slabs) {
    table.take(detail::type_info<Page>, 1, places);
  }
  table.give_back(places);
  REQUIRE(places.size() > 40);
  std::vector<std::uint32_t> freed;
  long allocations = 0;
  for (bool done = false; !done; allocations += done ? 0 : 1) {
    allocations_left = allocations;
    try {
      freed = table.free_empty_slabs(100);
      done = true;
    } catch (const std::bad_alloc&) {
      REQUIRE(table.slabs_used() == file->layout().slabs);
    }
    allocations_left = kPlenty;
  }
  CHECK(freed.size() == places.size());
  CHECK(allocations < 20);
}

TEST_CASE("a check takes no memory by how many records of slabs are damaged") {
  const TempPath path;
  Options options = roomy_options();
  options.geometry = {.log_size = std::uint64_t{1} << 20, .slab_size = pool::kMinSlabSize};
  Pool::create(path.path(), std::uint64_t{120} << 20, options).close();
  std::uint64_t slabs = 0;
  {
    const auto file =
        pool::PoolFile::open(path.path(), quiet_options(), pool::PoolFile::Access::read_write);
    slabs = file->layout().slabs;
    const std::vector<std::byte> rubbish(slabs * sizeof(pool::SlabRecord), std::byte{0x11});
    for (const int copy : {0, 1}) {
      file->memory().store(file->layout().directory_offset[copy], rubbish.data(), rubbish.size());
    }
  }
  // A list of so much damage takes more than a megabyte, the directory itself less.
  REQUIRE(slabs * sizeof(Damage) > std::size_t{1} << 20);
  REQUIRE(slabs * sizeof(pool::SlabRecord) < std::size_t{1} << 20);
  no_next_megabyte = true;
  const CheckReport report = Pool::check(path.path());
  CHECK(no_next_megabyte.exchange(false));
  CHECK(report.damage.size() + report.more_damage == 2 * slabs);
}

TEST_CASE("a thread of a checkpoint without memory for its copies ends it, and the others go on") {
  Options options = roomy_options();
  options.checkpoint.threads = 2;
  OnePool p(options, std::uint64_t{128} << 20);
  std::vector<Ptr<Large>> objects;  // of 256 KiB: so many that both get some
  for (int i = 0; i < 64; ++i) {
    objects.push_back(p.session.run([](Transaction& tx) { return tx.make<Large>(); }));
  }
  no_next_megabyte = true;
  CHECK_THROWS_AS(p.pool.checkpoint(), std::bad_alloc);
  CHECK_FALSE(no_next_megabyte.exchange(false));
  p.session.run([&](Transaction& tx) { tx.write(objects[0]).words[0] = 1; });
  CHECK_NOTHROW(p.pool.checkpoint());
  p.reopen(options);
  p.session.run([&](Transaction& tx) {
    for (const auto object : objects) REQUIRE(tx.read(object).words[0] == (object == objects[0]));
  });
}

// It ended, as if the pool had been poisoned.
TEST_CASE("the background checkpointer goes on once there is memory to look for news") {
  OnePool p;
  const auto cell = p.session.run([](Transaction& tx) { return tx.make<Cell>(); });
  Options options = quiet_options();
  options.checkpoint.background = true;
  options.checkpoint.interval_ms = 1;
  options.watermark_ms = 60'000;  // the flusher has nothing to look at
  options.long_transaction_ms = 60'000;
  p.reopen(options);  // no news, so that no checkpoint is under way
  is_here = true;
  refused_elsewhere = 0;
  no_memory_elsewhere = true;
  for (int ms = 0; ms < 10'000 && refused_elsewhere < 3; ++ms) ::usleep(1000);
  no_memory_elsewhere = false;
  is_here = false;
  CHECK(refused_elsewhere >= 3);
  const std::uint64_t before = p.pool.statistics().checkpoints;
  p.session.run([&](Transaction& tx) { tx.write(cell).value = 1; });
  for (int ms = 0; ms < 10'000 && p.pool.statistics().checkpoints == before; ++ms) ::usleep(1000);
  CHECK(p.pool.statistics().checkpoints > before);
}

// The floor that it had raised hid that there was something to do.
TEST_CASE("the background checkpointer makes up for a checkpoint that had no memory, unasked") {
  Options options = roomy_options();
  options.checkpoint.background = true;
  options.checkpoint.interval_ms = 1;
  OnePool p(options, std::uint64_t{128} << 20);
  is_here = true;
  no_next_megabyte = true;
  p.session.run([](Transaction& tx) {
    for (int i = 0; i < 8; ++i) static_cast<void>(tx.make<Large>());  // more than a megabyte
  });
  const auto objects = [&] { return p.pool.statistics().checkpoint_objects; };
  for (int ms = 0; ms < 10'000 && objects() < 8; ++ms) ::usleep(1000);
  is_here = false;
  CHECK_FALSE(no_next_megabyte.exchange(false));
  CHECK(objects() >= 8);
}

// It looked again at once, and kept a core busy.
TEST_CASE("the flusher without memory tries again once a tick, and not all the time") {
  is_here = true;
  Options options = quiet_options();
  options.watermark_ms = 5;
  const OnePool p(options);
  const auto start = std::chrono::steady_clock::now();
  const auto ticks = [&] {
    return (std::chrono::steady_clock::now() - start) / std::chrono::milliseconds(5);
  };
  refused_elsewhere = 0;
  no_memory_elsewhere = true;
  while (refused_elsewhere == 0 || ticks() < 10) {
  }
  no_memory_elsewhere = false;
  is_here = false;
  CHECK(refused_elsewhere <= ticks() + 2);
}

}  // namespace sp3::test

// Bugs once found in how sessions run transactions. docs/TESTING.md tells their stories.
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "tests/runtime/one_pool.h"

namespace sp3::test {
namespace {

using namespace std::chrono_literals;

struct Cell {
  std::uint64_t value = 0;
};
struct Odd {  // of a size that nothing else has, so that it has slabs of its own
  std::array<std::uint64_t, 5> words{};
};
struct Wide {
  std::array<std::uint64_t, 400> words{};
};
struct Page {
  std::array<unsigned char, 3900> bytes{};
};
struct Chunk {  // several in a slab
  std::array<unsigned char, 900> bytes{};
};

void add_one(Transaction& tx) {
  const auto cell = tx.root<Cell>("cell");
  ++tx.write(cell).value;
}

}  // namespace

TEST_CASE("a body that goes on in a full pool returns when what it read is durable") {
  OnePool p(quiet_options(), std::uint64_t{128} * 1024);
  Session other = p.pool.session();
  const auto cell = p.session.run([](Transaction& tx) { return tx.make<Cell>(); });
  while (p.code([](Transaction& tx) { return tx.make<Page>(); }) == "no error") {
  }
  for (const bool swallow : {false, true}) {
    Ticket predecessor;
    CHECK(p.code([&](Transaction& tx) {
      // Anew in each attempt: the checkpoint between them would make an earlier one durable.
      predecessor = other.run_async([&](Transaction& o) { ++o.write(cell).value; });
      const std::uint64_t seen = tx.read(cell).value;
      try {
        static_cast<void>(tx.make<Page>());
      } catch (const Error&) {
        if (!swallow) throw;
      }
      return seen;
    }) == "pool_full");
    CHECK(predecessor.ready());
  }
}

// The group's session has flushed it and goes idle; what it waits for is committed later, after a
// flush of fifty slow lines.
TEST_CASE("a ticket of a full group becomes ready once its predecessor is committed") {
  for (const std::uint32_t group : {1U, 2U}) {
    Options options = quiet_options();
    options.geometry = {};
    options.async.group_records = group;
    options.async.group_microseconds = 500;
    options.watermark_ms = 20'000;
    options.long_transaction_ms = 20'000;
    options.latency = {LatencyModel::line, 500'000, 0};
    OnePool p(options, std::uint64_t{8} << 20);
    Session other = p.pool.session();
    std::array<Ptr<Cell>, 2> cells;
    Ptr<Wide> wide;
    p.session.run([&](Transaction& tx) {
      for (auto& cell : cells) cell = tx.make<Cell>();
      wide = tx.make<Wide>();
    });
    std::this_thread::sleep_for(50ms);  // the flusher sleeps
    std::atomic<bool> started{false};
    std::thread predecessor([&] {
      other.run([&](Transaction& tx) {
        for (auto& word : tx.write(wide).words) ++word;
        ++tx.write(cells[0]).value;
        started = true;
      });
    });
    while (!started) std::this_thread::yield();
    std::this_thread::sleep_for(5ms);  // published
    Ticket last;
    for (std::uint32_t i = 0; i < group; ++i) {
      last = p.session.run_async(
          [&](Transaction& tx) { tx.write(cells[1]).value += tx.read(cells[0]).value; });
    }
    predecessor.join();
    const auto deadline = std::chrono::steady_clock::now() + 5s;
    while (!last.ready() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(1ms);
    }
    CHECK(last.ready());
  }
}

TEST_CASE("a body within another's body takes no conflict of that for its own") {
  for (const bool same_pool : {false, true}) {
    OnePool outer;
    OnePool elsewhere;
    Session rival = outer.pool.session();
    Session inner = same_pool ? outer.pool.session() : elsewhere.pool.session();
    const auto make = [](Transaction& tx) { return tx.make<Cell>(); };
    const auto first = outer.session.run(make);
    const auto second = outer.session.run(make);
    const auto copy = inner.run(make);
    int outers = 0;
    int inners = 0;
    outer.session.run([&](Transaction& from) {
      const std::uint64_t seen = from.read(first).value;
      if (++outers == 1) {
        rival.run([&](Transaction& tx) {
          tx.write(first).value = 5;
          tx.write(second).value = 5;
        });
      }
      inner.run([&](Transaction& to) {
        if (++inners > 10) throw std::runtime_error("the inner one tries for ever");
        to.write(copy).value = seen + from.read(second).value;
      });
    });
    CHECK(outers == 2);
    CHECK(inners == 2);
    CHECK(inner.run([&](Transaction& tx) { return tx.read(copy).value; }) == 10);
  }
}

// A real-time thread that has taken the core from who holds the object would offer it for ever to
// none but its equals.
TEST_CASE("a transaction that fails again and again lets all others run") {
  Options options = quiet_options();
  options.locks = LockTiming::encounter;
  OnePool p(options);
  const auto cell = p.session.run([](Transaction& tx) { return tx.make<Cell>(); });
  Session other = p.pool.session();
  std::atomic<bool> held{false};
  std::thread holder([&] {
    other.run([&](Transaction& tx) {
      tx.write(cell).value = 1;
      held = true;
      while (p.pool.statistics().sessions.aborts < 200) std::this_thread::yield();
    });
  });
  while (!held) std::this_thread::yield();
  rusage before{};
  rusage after{};
  REQUIRE(::getrusage(RUSAGE_THREAD, &before) == 0);
  p.session.run([&](Transaction& tx) { tx.write(cell).value = 2; });
  REQUIRE(::getrusage(RUSAGE_THREAD, &after) == 0);
  holder.join();
  CHECK(after.ru_nvcsw - before.ru_nvcsw >= 200 / 64);  // sleeps; offers do not count
}

// Others found the object locked until the body had unwound, which takes longer than they wait.
TEST_CASE("an attempt that is lost holds no lock while its body unwinds") {
  struct Unwinding {
    std::function<void()> meanwhile;
    ~Unwinding() {
      if (std::uncaught_exceptions() != 0) meanwhile();
    }
  };
  Options options = quiet_options();
  options.locks = LockTiming::encounter;
  OnePool p(options);
  Session other = p.pool.session();
  Ptr<Cell> wanted;
  Ptr<Cell> changed;
  p.session.run([&](Transaction& tx) {
    wanted = tx.make<Cell>();
    changed = tx.make<Cell>();
  });
  const auto set = [&](Ptr<Cell> cell, std::uint64_t value) {
    return code_of([&] {
      other.run([&](Transaction& tx) { tx.write(cell).value = value; });
      return 0;
    });
  };
  std::vector<std::string> unwound;
  int attempts = 0;
  p.session.run([&](Transaction& tx) {
    const Unwinding unwinding{[&] { unwound.push_back(set(wanted, 5)); }};
    tx.write(wanted).value += 1;
    if (++attempts > 1) return;
    static_cast<void>(tx.read(changed));
    CHECK(set(changed, 7) == "no error");
    tx.write(changed).value = 8;
  });
  CHECK(unwound == std::vector<std::string>{"no error"});
  CHECK(attempts == 2);
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(wanted).value; }) == 6);
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(changed).value; }) == 7);
}

// Who ran the session before was taken for the one that runs it now.
TEST_CASE("a session that moves between threads runs in one of them only") {
  Options options = quiet_options();
  options.policy = CommitPolicy::volatile_only;
  OnePool p(options);
  constexpr int kHandOvers = 20'000;
  std::atomic<int> turn{0};
  std::string error;
  std::thread second([&] {
    for (int i = 0; i < kHandOvers; ++i) {
      while (turn.load(std::memory_order_acquire) != 1) std::this_thread::yield();
      p.session.run([](Transaction&) {});
      turn.store(0, std::memory_order_release);
    }
  });
  for (int i = 0; i < kHandOvers; ++i) {
    p.session.run([](Transaction&) {});
    turn.store(1, std::memory_order_release);
    int looks = 0;
    // Refused inside a body of this thread's; it has none.
    while (turn.load(std::memory_order_acquire) != 0) {
      const std::string found = code_of([&] {
        p.pool.checkpoint();
        return 0;
      });
      if (found != "no error") error = found;
      if (++looks % 16 == 0) std::this_thread::yield();
    }
  }
  second.join();
  CHECK(error.empty());
}

// The slab of a destroyed object is freed, and carved again, under a transaction that knows there
// is no such object; another makes one in its place and changes something else.
TEST_CASE("that an object is destroyed is validated even when its slab is freed meanwhile") {
  OnePool p;
  Session other = p.pool.session();
  const auto cell = p.session.run([](Transaction& tx) { return tx.make<Cell>(); });
  Ptr<Odd> odd;
  {
    Session maker = p.pool.session();
    odd = maker.run([](Transaction& tx) { return tx.make<Odd>(); });
    maker.run([&](Transaction& tx) { tx.destroy(odd); });
    p.pool.checkpoint();  // the tombstone goes home; the session keeps the slab
  }
  int bodies = 0;
  std::string found;
  std::uint64_t seen = 0;
  std::thread checkpointer;
  p.session.run([&](Transaction& tx) {
    ++bodies;
    found = code_of([&] { return tx.read(odd).words[0]; });
    if (bodies == 1) {
      const auto slabs = p.pool.statistics().slabs_used;
      checkpointer = std::thread([&] { p.pool.checkpoint(); });  // ends when this body has
      for (int i = 0; i < 10'000 && p.pool.statistics().slabs_used == slabs; ++i) {
        std::this_thread::sleep_for(1ms);
      }
      CHECK(p.pool.statistics().slabs_used < slabs);
      other.run([&](Transaction& o) {
        CHECK(o.make<Odd>() == odd);
        o.write(cell).value = 1;
      });
    }
    seen = tx.read(cell).value;
  });
  checkpointer.join();
  // Either before the other transaction, or after it.
  CHECK((found == "no error") == (seen == 1));
  CHECK(bodies == 2);
}

// Freed slots are kept for the next objects of their session, but not from others who need them.
TEST_CASE("slots that idle sessions keep are had by who finds the pool full") {
  OnePool p(quiet_options(), std::uint64_t{256} * 1024);
  std::vector<Session> idle;
  for (int i = 0; i < 3; ++i) idle.push_back(p.pool.session());
  const auto fill = [&] {
    std::vector<Ptr<Chunk>> made;
    Ptr<Chunk> last;
    while (p.code([&](Transaction& tx) { return last = tx.make<Chunk>(); }) == "no error") {
      made.push_back(last);
    }
    return made;
  };
  const auto first = fill();
  REQUIRE(first.size() > 20);
  for (std::size_t i = 0; i < first.size(); ++i) {
    idle[i % idle.size()].run([&](Transaction& tx) { tx.destroy(first[i]); });
  }
  CHECK(p.code([](Transaction& tx) { return tx.make<Cell>(); }) == "no error");  // another type
  CHECK(fill().size() + 10 > first.size());
  // And their owners go on.
  for (Session& session : idle)
    session.run([](Transaction& tx) { static_cast<void>(tx.root<Cell>("none")); });
}

// They were asked for their slots, and nobody waited for the answer.
TEST_CASE("slots of a session in mid-body are had once it has ended") {
  OnePool p(quiet_options(), std::uint64_t{256} * 1024);
  Session busy = p.pool.session();
  std::vector<Ptr<Chunk>> made;
  Ptr<Chunk> last;
  while (p.code([&](Transaction& tx) { return last = tx.make<Chunk>(); }) == "no error") {
    made.push_back(last);
  }
  // At last one of each slab: so it keeps slots of many.
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = i; j < made.size(); j += 4) {
      busy.run([&](Transaction& tx) { tx.destroy(made[j]); });
    }
  }
  std::atomic<bool> runs{false};
  std::atomic<bool> ended{false};
  const std::uint64_t checkpoints = p.pool.statistics().checkpoints;
  std::thread body([&] {
    busy.run([&](Transaction&) {
      runs = true;
      while (p.pool.statistics().checkpoints == checkpoints) std::this_thread::sleep_for(1ms);
    });
    ended = true;
  });
  while (!runs) std::this_thread::yield();
  int attempt = 0;
  CHECK(p.code([&](Transaction& tx) {
    while (++attempt == 2 && !ended) std::this_thread::sleep_for(1ms);
    for (int i = 0; i < 12; ++i) static_cast<void>(tx.make<Page>());
    return 0;
  }) == "no error");
  body.join();
}

// One checkpoint was all that a transaction got.
TEST_CASE("who has lost the slab that was freed for it gets another") {
  OnePool p(quiet_options(), std::uint64_t{256} * 1024);
  Session other = p.pool.session();
  const auto odd = other.run([](Transaction& tx) { return tx.make<Odd>(); });
  while (p.code([](Transaction& tx) { return tx.make<Page>(); }) == "no error") {
  }
  other.run([&](Transaction& tx) { tx.destroy(odd); });
  int attempt = 0;
  CHECK(p.code([&](Transaction& tx) {
    if (++attempt == 2) {
      const auto page = other.run([](Transaction& o) { return o.make<Page>(); });
      other.run([&](Transaction& o) { o.destroy(page); });
    }
    return tx.make<Chunk>();
  }) == "no error");
  CHECK(attempt == 3);
}

TEST_CASE("a full pool is one although another session is in mid-body") {
  OnePool p(quiet_options(), std::uint64_t{256} * 1024);
  Session busy = p.pool.session();
  Session third = p.pool.session();
  std::atomic<bool> done{false};
  while (p.code([](Transaction& tx) { return tx.make<Page>(); }) == "no error") {
  }
  std::thread body([&] {
    busy.run([&](Transaction&) {
      while (!done) std::this_thread::sleep_for(1ms);
    });
  });
  const auto fill = [](Session& session) {
    return code_of([&] { return session.run([](Transaction& tx) { return tx.make<Page>(); }); });
  };
  // Two wait for slabs, and for each other's slots.
  std::string found;
  std::thread waits([&] { found = fill(third); });
  CHECK(fill(p.session) == "pool_full");
  waits.join();
  CHECK(found == "pool_full");
  done = true;
  body.join();
}

TEST_CASE("a transaction that is cancelled keeps no slab from others") {
  OnePool p(quiet_options(), std::uint64_t{256} * 1024);
  Session other = p.pool.session();
  CHECK_THROWS_AS(p.session.run([](Transaction& tx) {
    for (int i = 0; i < 30; ++i) static_cast<void>(tx.make<Page>());
    tx.cancel();
  }),
                  Cancelled);
  CHECK_NOTHROW(other.run([](Transaction& tx) { static_cast<void>(tx.make<Cell>()); }));
}

// One transaction waits for an object that a long body holds, and takes the serial gate. Who has
// nothing to do with either waited for the gate before every transaction.
TEST_CASE("who has waited for the serial gate in vain does not wait for it every time") {
  Options options = quiet_options();
  options.locks = LockTiming::encounter;
  OnePool p(options);
  Session busy = p.pool.session();
  Session waiter = p.pool.session();
  std::array<Ptr<Cell>, 2> cells;
  p.session.run([&](Transaction& tx) {
    for (auto& cell : cells) cell = tx.make<Cell>();
  });
  std::atomic<bool> holds{false};
  std::atomic<bool> done{false};
  std::thread holder([&] {
    busy.run([&](Transaction& tx) {
      tx.write(cells[0]).value = 1;
      holds = true;
      while (!done) std::this_thread::sleep_for(1ms);
    });
  });
  while (!holds) std::this_thread::yield();
  std::thread behind([&] { waiter.run([&](Transaction& tx) { tx.write(cells[0]).value = 2; }); });
  while (waiter.statistics().serial_transactions == 0) std::this_thread::sleep_for(1ms);
  // At 50 ms each this took 50 s.
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) p.session.run([&](Transaction& tx) { (void)tx.read(cells[1]); });
  CHECK(std::chrono::steady_clock::now() - begin < 20s);
  done = true;
  holder.join();
  behind.join();
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(cells[0]).value; }) == 2);
}

// It waited for a quiet while of at most 50 ms, which no writer's end agreed with another's.
TEST_CASE("a scan that takes long finishes although others write all the time") {
  Options options = quiet_options();
  options.policy = CommitPolicy::volatile_only;  // no log that would be full before the scan's end
  OnePool p(options);
  std::array<Ptr<Cell>, 40> cells;
  p.session.run([&](Transaction& tx) {
    for (auto& cell : cells) cell = tx.make<Cell>();
  });
  std::atomic<bool> done{false};
  std::vector<std::thread> writers;
  for (unsigned w = 0; w < 3; ++w) {
    writers.emplace_back([&, w] {
      Session session = p.pool.session();
      for (std::uint64_t i = w; !done; ++i) {
        session.run([&](Transaction& tx) { ++tx.write(cells[i % cells.size()]).value; });
      }
    });
  }
  int attempts = 0;
  p.session.run([&](Transaction& tx) {
    ++attempts;
    for (const auto cell : cells) {
      (void)tx.read(cell);
      std::this_thread::sleep_for(2ms);
    }
  });
  done = true;  // only now
  for (std::thread& writer : writers) writer.join();
  CHECK(attempts > 1);
}

// Each refusal for the sake of a large record was answered by a checkpoint, of an empty log.
TEST_CASE("small transactions beside a large one make no checkpoints that nobody needs") {
  Options options = quiet_options();
  options.geometry.log_size = std::uint64_t{1} << 20;
  OnePool p(options, std::uint64_t{4} << 20);
  std::vector<Ptr<Cell>> many;
  p.session.run([&](Transaction& tx) {
    for (int i = 0; i < 5000; ++i) many.push_back(tx.make<Cell>());
  });
  std::atomic<bool> done{false};
  std::thread small([&] {
    Session session = p.pool.session();
    const auto cell = session.run([](Transaction& tx) { return tx.make<Cell>(); });
    while (!done) session.run([&](Transaction& tx) { ++tx.write(cell).value; });
  });
  const std::uint64_t before = p.pool.statistics().checkpoints;
  constexpr std::uint64_t kLarge = 40;
  for (std::uint64_t i = 0; i < kLarge; ++i) {
    p.session.run([&](Transaction& tx) {
      for (const auto cell : many) tx.write(cell).value = i + 1;
    });
  }
  done = true;
  small.join();
  CHECK(p.pool.statistics().checkpoints - before < 20 * kLarge);
}

// They were freed by checkpoints alone.
TEST_CASE("versions that closed sessions leave are freed where nothing is logged") {
  Options options = quiet_options();
  options.policy = CommitPolicy::volatile_only;
  OnePool p(options, std::uint64_t{1} << 20);
  const auto page = p.session.run([](Transaction& tx) { return tx.make<Page>(); });
  for (int i = 0; i < 300; ++i) {
    Session session = p.pool.session();
    for (int j = 0; j < 10; ++j) session.run([&](Transaction& tx) { ++tx.write(page).bytes[0]; });
  }
  CHECK(p.pool.statistics().version_bytes < std::uint64_t{4} << 20);
}

TEST_CASE("a function may be a body") {
  OnePool p;
  p.session.run([](Transaction& tx) { tx.set_root("cell", tx.make<Cell>()); });
  p.session.run(add_one);
  p.session.run_async(add_one).wait();
  p.session.run(&add_one);
  CHECK(p.session.run([](Transaction& tx) { return tx.read(tx.root<Cell>("cell")).value; }) == 3);
}

TEST_CASE("a body may move its session") {
  OnePool p;
  std::optional<Session> moved;
  Session session = p.pool.session();
  Ticket ticket = session.run_async([&](Transaction& tx) {
    static_cast<void>(tx.make<Cell>());
    if (!moved) moved.emplace(std::move(session));
  });
  ticket.wait();
}

TEST_CASE("a body that destroys its session comes to its end") {
  const int code = in_child([] {
    OnePool* const q = new OnePool(quiet_options());  // never closed: it counts the session as open
    auto doomed = std::make_unique<Session>(q->pool.session());
    Ptr<Cell> cell;
    doomed->run([&](Transaction& tx) {
      cell = tx.make<Cell>();
      doomed.reset();
      tx.write(cell).value = 7;
    });
    const bool there = q->session.run([&](Transaction& tx) { return tx.read(cell).value; }) == 7;
    const bool open = code_of([&] {
                        q->session.close();
                        q->pool.close();
                        return 0;
                      }) == "sessions_open";
    std::filesystem::remove(q->path.path());
    return there && open ? 0 : 1;
  });
  CHECK(code == 0);
}

}  // namespace sp3::test

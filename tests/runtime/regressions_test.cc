// Bugs once found in the runtime, seen through its API. docs/TESTING.md tells their stories.
//
// Whatever used to hang runs in a child with a deadline, so that it fails here and stops nothing
// else.
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "runtime/pool_core.h"
#include "runtime/session_core.h"
#include "tests/support/pools.h"

namespace sp3::test {
namespace {

constexpr int kDeadline = 10;  // seconds

struct Cell {
  std::uint64_t value = 0;
};
struct Small {
  std::array<std::uint64_t, 12> words{};
};
struct Big {
  std::array<std::uint64_t, 100> words{};
};
struct Holed {
  char tag;
  std::uint64_t number;
};

template <class T>
Ptr<T> make_root(Session& session, const char* name) {
  return session.run([&](Transaction& tx) {
    const auto made = tx.make<T>();
    tx.set_root(name, made);
    return made;
  });
}

std::uint64_t value_of(Session& session, Ptr<Cell> cell) {
  return session.run([&](Transaction& tx) { return tx.read(cell).value; });
}

// What the second attempt of a transaction does whose first failed with its stamp already taken.
enum class Retry : std::uint8_t { reads_only, cancels, throws };

// Sends a session through such a transaction, with an asynchronous one still unflushed, and asks
// for everything that waits for the session's records. REQUIRES: in a child; it may never return.
int waits_after_failed_attempt(Retry retry, bool async) {
  TempPath path;
  Pool pool = Pool::create(path.path(), kTinyPool, quiet_options());
  Session session = pool.session();
  Session other = pool.session();
  const auto x = make_root<Cell>(session, "x");
  const auto y = make_root<Cell>(session, "y");
  for (const bool by_closing : {false, true}) {
    Ticket earlier = session.run_async([&](Transaction& tx) { tx.write(x).value = 5; });
    int attempts = 0;
    const auto body = [&](Transaction& tx) {
      const std::uint64_t seen = tx.read(y).value;
      if (attempts++ == 0) {
        tx.write(x).value = seen;
        // Seen to be out of date no earlier than at validation.
        other.run([&](Transaction& theirs) { theirs.write(y).value += 1; });
      } else if (retry == Retry::cancels) {
        tx.cancel();
      } else if (retry == Retry::throws) {
        throw std::runtime_error("the user's");
      }
    };
    try {
      if (async) {
        (void)session.run_async(body);
      } else {
        session.run(body);
      }
    } catch (const std::runtime_error&) {
      // As expected of two of the three.
    }
    if (attempts != 2) return 1;
    if (by_closing) {
      session.close();
    } else {
      session.flush();
      pool.checkpoint();
    }
    if (!earlier.ready()) return 2;
  }
  other.close();
  pool.close();
  return 0;
}

// The body of one session's transaction uses another session until the log is full. REQUIRES: as
// above.
int fills_the_log_inside_a_body(const Options& options) {
  TempPath path;
  Pool pool = Pool::create(path.path(), kTinyPool, options);
  Session outer = pool.session();
  Session inner = pool.session();
  const auto cell = make_root<Cell>(outer, "cell");
  const auto big = make_root<Big>(inner, "big");
  std::uint64_t written = 0;
  const std::string code = code_of([&] {
    outer.run([&](Transaction& tx) {
      (void)tx.read(cell);
      for (std::uint64_t i = 1; i < 100'000; ++i) {
        inner.run([&](Transaction& theirs) { theirs.write(big).words.fill(i); });
        written = i;
      }
    });
    return 0;
  });
  if (code != "nested_transaction" || written < 5) return 1;
  // Nothing is left locked or held.
  for (int i = 0; i < 200; ++i) {
    outer.run([&](Transaction& tx) { tx.write(cell).value += 1; });
    inner.run([&](Transaction& tx) { tx.write(big).words[0] = ++written; });
  }
  pool.checkpoint();
  if (value_of(outer, cell) != 200) return 2;
  outer.close();
  inner.close();
  pool.close();
  return 0;
}

// Makes objects until the pool is full; all of them.
template <class T>
std::vector<Ptr<T>> fill(Session& session) {
  std::vector<Ptr<T>> made;
  while (made.size() < 10'000) {
    const auto error = error_of([&] {
      made.push_back(session.run([](Transaction& tx) { return tx.make<T>(); }));
      return 0;
    });
    if (!error) continue;
    REQUIRE(error->code() == ErrorCode::pool_full);
    return made;
  }
  FAIL("the pool does not fill up");
  return made;
}

using Durability = runtime::SessionCore::Durability;

void run_on(runtime::SessionCore& session, const std::function<void(Transaction&)>& body,
            Durability durability = Durability::synchronous) {
  session.run({const_cast<void*>(static_cast<const void*>(&body)),
               [](void* context, Transaction& tx) {
                 (*static_cast<const std::function<void(Transaction&)>*>(context))(tx);
               }},
              durability);
}

// Opens sessions for a transaction each until the pool refuses; the largest number acknowledged.
std::uint64_t count_until_closed(runtime::PoolCore& pool, Ptr<Cell> cell,
                                 const std::atomic<bool>& closed, std::string* ended) {
  std::uint64_t acknowledged = 0;
  int late = 0;  // sessions opened although the pool was closed
  *ended = code_of([&] {
    while (acknowledged < 3000 && late < 20) {
      if (closed) ++late;
      const auto session = pool.open_session();
      run_on(*session, [&](Transaction& tx) { tx.write(cell).value = acknowledged + 1; });
      session->close();
      ++acknowledged;
      std::this_thread::yield();
    }
    return 0;
  });
  if (late >= 20) *ended = "sessions of a closed pool";
  return acknowledged;
}

}  // namespace

TEST_CASE("flush, close and checkpoint return after an attempt that failed and was never sealed") {
  for (const auto retry : {Retry::reads_only, Retry::cancels, Retry::throws}) {
    for (const bool async : {false, true}) {
      INFO("retry " << static_cast<int>(retry) << (async ? ", async" : ", sync"));
      CHECK(in_child([&] { return waits_after_failed_attempt(retry, async); }, kDeadline) == 0);
    }
  }
}

TEST_CASE("a checkpoint inside a body is refused, and the transaction goes on") {
  const int code = in_child(
      [] {
        TempPath path;
        Pool pool = Pool::create(path.path(), kTinyPool, quiet_options());
        Session session = pool.session();
        const auto cell = make_root<Cell>(session, "cell");
        std::string found;
        session.run([&](Transaction& tx) {
          (void)tx.read(cell);
          found = code_of([&] {
            pool.checkpoint();
            return 0;
          });
          tx.write(cell).value = 3;
        });
        if (found != "nested_transaction") return 1;
        pool.checkpoint();
        return value_of(session, cell) == 3 ? 0 : 2;
      },
      kDeadline);
  CHECK(code == 0);
}

TEST_CASE("a session that fills the log inside another's body gets an error") {
  for (const bool background : {false, true}) {
    INFO((background ? "with" : "without") << " background checkpoints");
    const Options options = background ? tiny_options() : quiet_options();
    CHECK(in_child([&] { return fills_the_log_inside_a_body(options); }, kDeadline) == 0);
  }
}

TEST_CASE("who gives up a large request for log space inside a body is in nobody's way") {
  const int code = in_child(
      [] {
        TempPath path;
        Pool pool = Pool::create(path.path(), kTinyPool, quiet_options());
        Session outer = pool.session();
        Session inner = pool.session();
        Session third = pool.session();
        const auto small = make_root<Cell>(outer, "small");
        const auto other = make_root<Cell>(inner, "other");
        // Whose record takes three segments, together.
        std::vector<Ptr<Big>> many(10);
        for (auto& one : many) one = inner.run([](Transaction& tx) { return tx.make<Big>(); });
        std::string large = "no error";
        std::string nested = "no error";
        outer.run([&](Transaction& tx) {
          (void)tx.read(small);
          for (std::uint64_t i = 1; i < 100 && large == "no error"; ++i) {
            large = code_of([&] {
              inner.run([&](Transaction& theirs) {
                for (const auto one : many) theirs.write(one).words.fill(i);
              });
              return 0;
            });
          }
          nested = code_of([&] {
            inner.run([&](Transaction& theirs) { theirs.write(other).value = 7; });
            return 0;
          });
        });
        if (large != "nested_transaction") return 1;
        if (nested != "no error") return 2;
        const std::uint64_t before = pool.statistics().checkpoints;
        third.run([&](Transaction& tx) { tx.write(small).value = 1; });
        return pool.statistics().checkpoints - before <= 1 ? 0 : 3;
      },
      kDeadline);
  CHECK(code == 0);
}

#if __has_builtin(__builtin_clear_padding)
TEST_CASE("padding stays out of the file under every policy, in the log and at home") {
  constexpr char kSecret[sizeof(Holed) + 1] = "SECRETSTACKBYTES";
  constexpr std::string_view kHidden = "ECRETST";
  for (const Mode& mode : all_modes()) {
    INFO(mode.name());
    Options options = quiet_options();
    mode.apply(options);
    TempPath path;
    Pool pool = Pool::create(path.path(), kTinyPool, options);
    Session session = pool.session();
    const auto smear = [&](Transaction& tx, Ptr<Holed> at) {
      std::memcpy(static_cast<void*>(&tx.write(at)), kSecret, sizeof(Holed));
    };
    const auto hidden_bytes_show = [&] {
      const std::vector<char> bytes = read_bytes(path.path());
      return std::string_view(bytes.data(), bytes.size()).find(kHidden) != std::string_view::npos;
    };
    Ptr<Holed> old;
    session.run([&](Transaction& tx) { old = tx.make<Holed>(); });
    const auto run = [&](const auto& body) {
      if (mode.async) {
        session.run_async(body).wait();
      } else {
        session.run(body);
      }
    };
    run([&](Transaction& tx) { smear(tx, old); });
    run([&](Transaction& tx) { smear(tx, tx.make<Holed>()); });
    CHECK_FALSE(hidden_bytes_show());
    pool.checkpoint();
    CHECK_FALSE(hidden_bytes_show());
    session.run(
        [&](Transaction& tx) { CHECK(std::memcmp(&tx.read(old).number, "ACKBYTES", 8) == 0); });
    session.close();
    pool.close();
    CHECK_FALSE(hidden_bytes_show());
  }
}
#endif

TEST_CASE("a pool that could not be created leaves no file") {
  struct Refusal {
    const char* what;
    ErrorCode code;
    std::function<void(Options&)> spoil;
  };
  const std::vector<Refusal> refusals = {
      {"ideal", ErrorCode::unsupported, [](Options& o) { o.policy = CommitPolicy::ideal; }},
      {"ideal on file memory", ErrorCode::unsupported,
       [](Options& o) { o.policy = CommitPolicy::ideal, o.memory = MemoryKind::file; }},
      {"a log of one segment", ErrorCode::invalid_argument,
       [](Options& o) { o.geometry.log_size = 4096; }},
      {"16384 sessions", ErrorCode::invalid_argument,
       [](Options& o) { o.geometry.max_sessions = 16384; }},
      {"slabs of 5000 bytes", ErrorCode::invalid_argument,
       [](Options& o) { o.geometry.slab_size = 5000; }},
      {"latency of a file", ErrorCode::unsupported,
       [](Options& o) { o.memory = MemoryKind::file, o.latency.nanoseconds = 100; }},
      {"groups of nothing", ErrorCode::invalid_argument,
       [](Options& o) { o.async.group_records = 0; }},
  };
  for (const Refusal& refusal : refusals) {
    INFO(refusal.what);
    TempPath path;
    Options options = quiet_options();
    refusal.spoil(options);
    const auto error =
        error_of([&] { return Pool::create(path.path(), kTinyPool, options).is_open(); });
    REQUIRE(error);
    CHECK(error->code() == refusal.code);
    CHECK_FALSE(std::filesystem::exists(path.path()));
    // The way is free for a good one.
    CHECK(code_of([&] {
            Pool::create(path.path(), kTinyPool, quiet_options()).close();
            return 0;
          }) == "no error");
  }
}

TEST_CASE("a session opened while the pool closes is refused, or keeps it open") {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    TempPath path;
    auto pool = runtime::PoolCore::create(path.path(), kTinyPool, quiet_options());
    Ptr<Cell> cell;
    {
      const auto session = pool->open_session();
      run_on(*session, [&](Transaction& tx) { tx.set_root("cell", cell = tx.make<Cell>()); });
      session->close();
    }
    std::atomic<bool> closed{false};
    std::uint64_t acknowledged = 0;
    std::string ended;
    std::thread user([&] { acknowledged = count_until_closed(*pool, cell, closed, &ended); });
    std::this_thread::sleep_for(std::chrono::microseconds(Random(seed).below(2000)));
    std::string code;
    while ((code = code_of([&] {
              pool->close();
              return 0;
            })) == "sessions_open")
      std::this_thread::yield();
    closed = true;
    user.join();
    INFO("seed " << seed << ", " << acknowledged << " acknowledged");
    CHECK(code == "no error");
    CHECK((ended == "pool_closed" || ended == "no error"));
    pool.reset();
    CHECK(Pool::inspect(path.path()).clean);
    Pool again = Pool::open(path.path(), quiet_options());
    Session session = again.session();
    CHECK(value_of(session, cell) == acknowledged);
  }
}

TEST_CASE("a pool that one thread closes is closed to the others, whatever they are at") {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    TempPath path;
    Pool pool = Pool::create(path.path(), kTinyPool, quiet_options());
    const std::vector<std::function<void()>> uses{
        [&] { (void)pool.statistics(); },
        [&] { (void)pool.info(); },
        [&] { pool.checkpoint(); },
        [&] { pool.session().run([](Transaction& tx) { (void)tx.make<Cell>(); }); },
    };
    std::vector<std::string> ended(uses.size());
    std::vector<std::thread> users;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      users.emplace_back([&, i] {
        while (ended[i].empty() || ended[i] == "no error" || ended[i] == "pool_full") {
          ended[i] = code_of([&] {
            uses[i]();
            return 0;
          });
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(Random(seed).below(2000)));
    std::string code;
    while ((code = code_of([&] {
              pool.close();
              return 0;
            })) == "sessions_open")
      std::this_thread::yield();
    for (std::thread& user : users) user.join();
    CHECK(code == "no error");
    CHECK(ended == std::vector<std::string>(uses.size(), "pool_closed"));
    CHECK_FALSE(pool.is_open());
    CHECK(Pool::inspect(path.path()).clean);
    CHECK(Pool::open(path.path(), quiet_options()).is_open());
  }
}

TEST_CASE("where all that a session has in flight are marks, the record before them is known") {
  TempPath path;
  auto pool = runtime::PoolCore::create(path.path(), kTinyPool, quiet_options());
  const auto writer = pool->open_session();
  const auto reader = pool->open_session();
  const runtime::SessionShared& items = reader->shared();
  Ptr<Cell> cell;
  run_on(*reader, [&](Transaction& tx) { cell = tx.make<Cell>(); });
  run_on(*reader, [&](Transaction& tx) { tx.write(cell).value = 1; });
  const base::Lsn last = items.log.next_lsn() - 1;
  // What reads a version that is not durable leaves a mark.
  while (items.sealed.load() < last + 2 * items.ring.capacity()) {
    run_on(
        *writer, [&](Transaction& tx) { ++tx.write(cell).value; }, Durability::asynchronous);
    for (std::uint32_t i = 0; i < items.ring.capacity() / 2; ++i) {
      run_on(
          *reader, [&](Transaction& tx) { (void)tx.read(cell); }, Durability::asynchronous);
    }
  }
  REQUIRE(items.log.next_lsn() - 1 == last);
  CHECK(items.last_sealed_up_to(items.last_stamp.load()) == last);
  CHECK_FALSE(items.last_sealed_up_to(runtime::kFirstStamp));
  writer->close();
  reader->close();
  pool->close();
}

TEST_CASE("an empty slab takes another type after reopening") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    TempPath path;
    const Options options = quiet_options(memory);
    std::size_t smalls = 0;
    std::size_t bigs = 0;
    {
      TempPath empty;
      Pool pool = Pool::create(empty.path(), kTinyPool, options);
      Session session = pool.session();
      bigs = fill<Big>(session).size();
    }
    {
      Pool pool = Pool::create(path.path(), kTinyPool, options);
      Session session = pool.session();
      const auto made = fill<Small>(session);
      smalls = made.size();
      for (const auto small : made) session.run([&](Transaction& tx) { tx.destroy(small); });
      session.close();
      pool.close();
    }
    Pool pool = Pool::open(path.path(), options);
    Session session = pool.session();
    const auto made = fill<Big>(session);
    CHECK(made.size() == bigs);
    // And back again, this time without reopening.
    for (const auto big : made) session.run([&](Transaction& tx) { tx.destroy(big); });
    session.close();
    pool.close();
    pool = Pool::open(path.path(), options);
    session = pool.session();
    CHECK(fill<Small>(session).size() == smalls);
  }
}

}  // namespace sp3::test

// Bad input and misuse: each has a typed error that carries the facts needed to act on it.
#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/runtime/one_pool.h"

namespace sp3::test {
namespace {

struct Cell {
  std::uint64_t value = 0;
};
template <std::size_t kBytes>
struct Blob {
  std::array<unsigned char, kBytes> bytes{};
};

std::string create_code(std::uint64_t size, const Options& options) {
  TempPath path;
  const auto error = error_of([&] { return Pool::create(path.path(), size, options); });
  if (!error) return "no error";
  CHECK_FALSE(error->facts().wanted.empty());
  CHECK_FALSE(error->facts().found.empty());
  CHECK_FALSE(std::filesystem::exists(path.path()));
  return to_string(error->code());
}

}  // namespace

TEST_CASE("absurd sizes and geometries are refused with what is wanted and what was found") {
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4096}, std::uint64_t{64 * 1024 - 1},
        std::uint64_t{1} << 50, ~std::uint64_t{0}}) {
    INFO("size " << size);
    Options options;
    options.memory = MemoryKind::emulated;
    CHECK(create_code(size, options) == "invalid_argument");
  }
  const auto with = [](auto&& change) {
    Options options = quiet_options();
    change(options.geometry);
    return create_code(kTinyPool, options);
  };
  CHECK(with([](Geometry& g) { g.segment_size = 1; }) == "invalid_argument");
  CHECK(with([](Geometry& g) { g.segment_size = 5000; }) == "invalid_argument");
  CHECK(with([](Geometry& g) { g.segment_size = 1U << 31; }) == "invalid_argument");
  CHECK(with([](Geometry& g) { g.slab_size = 2048; }) == "invalid_argument");
  CHECK(with([](Geometry& g) { g.slab_size = 4097; }) == "invalid_argument");
  CHECK(with([](Geometry& g) { g.slab_size = 1U << 31; }) == "invalid_argument");
  CHECK(with([](Geometry& g) { g.log_size = ~std::uint64_t{0}; }) == "invalid_argument");
  CHECK(with([](Geometry& g) { g.log_size = kTinyPool; }) == "invalid_argument");
  CHECK(with([](Geometry& g) { g.log_size = 1; }) == "invalid_argument");
  CHECK(with([](Geometry& g) { g.max_sessions = 16385; }) == "invalid_argument");
  CHECK(with([](Geometry& g) { g.max_sessions = ~0U; }) == "invalid_argument");
}

TEST_CASE("absurd options are refused by create and by open") {
  TempPath path;
  Pool::create(path.path(), kTinyPool, quiet_options()).close();
  const auto with = [&](auto&& change) {
    Options options = quiet_options();
    change(options);
    std::string created = create_code(kTinyPool, options);
    const auto opened = error_of([&] { return Pool::open(path.path(), options); });
    CHECK((opened ? to_string(opened->code()) : std::string("no error")) == created);
    if (opened) CHECK(opened->facts().path == path.string());
    return created;
  };
  CHECK(with([](Options&) {}) == "no error");
  CHECK(with([](Options& o) { o.checkpoint.log_percent = 0; }) == "invalid_argument");
  CHECK(with([](Options& o) { o.checkpoint.log_percent = 101; }) == "invalid_argument");
  CHECK(with([](Options& o) { o.checkpoint.threads = 65; }) == "invalid_argument");
  CHECK(with([](Options& o) { o.latency.nanoseconds = 100'000'001; }) == "invalid_argument");
  CHECK(with([](Options& o) { o.latency.per_line_nanoseconds = ~0U; }) == "invalid_argument");
  CHECK(with([](Options& o) { o.async.group_records = 0; }) == "invalid_argument");
  CHECK(with([](Options& o) { o.async.group_records = 512; }) == "no error");
  CHECK(with([](Options& o) { o.async.group_records = 513; }) == "invalid_argument");
  CHECK(with([](Options& o) { o.async.group_bytes = 0; }) == "invalid_argument");
  CHECK(with([](Options& o) { o.async.group_microseconds = 0; }) == "invalid_argument");
  CHECK(with([](Options& o) { o.async.group_microseconds = 60'000'001; }) == "invalid_argument");
  CHECK(with([](Options& o) { o.serial_after_aborts = 0; }) == "invalid_argument");
  CHECK(with([](Options& o) { o.long_transaction_ms = 0; }) == "invalid_argument");
  CHECK(with([](Options& o) { o.recovery.threads = 1'000'000; }) == "invalid_argument");
}

TEST_CASE("an enumerator that does not exist is refused") {
  // In a child, for a policy that nobody knows may never end.
  const auto refused = [](auto&& change) {
    Options options = quiet_options();
    change(options);
    return in_child([&] { return create_code(kTinyPool, options) == "invalid_argument" ? 0 : 1; },
                    5);
  };
  CHECK(refused([](Options& o) { o.memory = static_cast<MemoryKind>(77); }) == 0);
  CHECK(refused([](Options& o) { o.policy = static_cast<CommitPolicy>(77); }) == 0);
  CHECK(refused([](Options& o) { o.locks = static_cast<LockTiming>(77); }) == 0);
  CHECK(refused([](Options& o) { o.range_lock = static_cast<RangeLockKind>(77); }) == 0);
  CHECK(refused([](Options& o) { o.flush = static_cast<FlushInstruction>(77); }) == 0);
  CHECK(refused([](Options& o) {
          o.latency.model = static_cast<LatencyModel>(77);
          o.latency.nanoseconds = 10;
        }) == 0);
  CHECK(refused([](Options& o) { o.recovery.strategy = static_cast<RecoveryStrategy>(77); }) == 0);
}

TEST_CASE("nobody knows the UUID of a pool that is yet to be made") {
  Options options = quiet_options();
  options.expect_uuid.emplace();
  CHECK(create_code(kTinyPool, options) == "invalid_argument");
}

TEST_CASE("one session too many is refused, and a closed one makes room") {
  OnePool p;
  std::vector<Session> sessions;
  for (int i = 1; i < 7; ++i) sessions.push_back(p.pool.session());
  const auto error = error_of([&] { return p.pool.session(); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::too_many_sessions);
  CHECK(error->facts().path == p.path.string());
  CHECK(error->facts().found == "7 open");
  const auto id = sessions.back().id();
  sessions.pop_back();
  Session again = p.pool.session();
  CHECK(again.id() == id);
  again.run([](Transaction& tx) { tx.set_root("cell", tx.make<Cell>(1U)); });
}

TEST_CASE("a transaction larger than the log is refused, and nothing of it remains") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    OnePool p(quiet_options(memory));
    using Page = Blob<3000>;
    std::array<Ptr<Page>, 25> pages;
    for (auto& page : pages) {
      page = p.session.run([](Transaction& tx) { return tx.make<Page>(); });
    }
    const auto error = p.error([&](Transaction& tx) {
      for (const auto page : pages) tx.write(page).bytes.fill(1);
      return 0;
    });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::transaction_too_large);
    CHECK(error->facts().path == p.path.string());
    CHECK_FALSE(error->facts().wanted.empty());
    CHECK_FALSE(error->facts().found.empty());
    p.session.run([&](Transaction& tx) {
      for (const auto page : pages) CHECK(tx.read(page).bytes[0] == 0);
      // What still fits, fits: most of the log in one record.
      for (std::size_t i = 0; i < 18; ++i) tx.write(pages[i]).bytes.fill(2);
    });
    CHECK(p.session.run([&](Transaction& tx) { return tx.read(pages[17]).bytes[5]; }) == 2);
  }
}

TEST_CASE("an object larger than a slab is refused") {
  OnePool p;
  const auto error = p.error([](Transaction& tx) { return tx.make<Blob<4096>>(); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::object_too_large);
  CHECK(error->facts().path == p.path.string());
  CHECK(error->facts().wanted == "4096 bytes");
  CHECK(error->facts().found == "at most 3968 bytes");
  CHECK(p.code([](Transaction& tx) { return tx.make<Blob<3968>>(); }) == "no error");
  CHECK(p.code([](Transaction& tx) { return tx.make<Blob<3969>>(); }) == "object_too_large");
}

TEST_CASE("a full pool says so, stays readable, and takes objects again when some are destroyed") {
  OnePool p(quiet_options(), std::uint64_t{128} * 1024);
  using Page = Blob<3900>;
  std::vector<Ptr<Page>> pages;
  std::optional<Error> error;
  while (!error && pages.size() < 1000) {
    error = p.error([&](Transaction& tx) {
      const auto page = tx.make<Page>();
      tx.write(page).bytes[0] = static_cast<unsigned char>(pages.size());
      pages.push_back(page);
      return 0;
    });
  }
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::pool_full);
  CHECK(error->facts().path == p.path.string());
  CHECK_FALSE(error->facts().wanted.empty());
  CHECK_FALSE(error->facts().found.empty());
  CHECK(pages.size() > 5);
  p.session.run([&](Transaction& tx) {
    for (std::size_t i = 0; i < pages.size(); ++i) CHECK(tx.read(pages[i]).bytes[0] == i);
  });
  // Of the same type at once; of another when a slab is empty, which a checkpoint is made to find
  // out.
  p.session.run([&](Transaction& tx) { tx.destroy(pages[0]); });
  CHECK(p.code([](Transaction& tx) { return tx.make<Page>(); }) == "no error");
  CHECK(p.code([](Transaction& tx) { return tx.make<Cell>(); }) == "pool_full");
  p.session.run([&](Transaction& tx) {
    for (std::size_t i = 1; i < pages.size(); ++i) tx.destroy(pages[i]);
  });
  const auto before = p.session.statistics();
  CHECK(p.code([](Transaction& tx) { return tx.make<Cell>(); }) == "no error");
  const auto after = p.session.statistics();
  CHECK(after.aborts_pool_full == before.aborts_pool_full + 1);
  CHECK(after.aborts == before.aborts + 1);
}

TEST_CASE("a body that goes on in a full pool does not commit") {
  OnePool p(quiet_options(), std::uint64_t{128} * 1024);
  using Page = Blob<3900>;
  const auto cell = p.session.run([](Transaction& tx) { return tx.make<Cell>(1U); });
  while (p.code([](Transaction& tx) { return tx.make<Page>(); }) == "no error") {
  }
  CHECK(p.code([&](Transaction& tx) {
    tx.write(cell).value = 2;
    try {
      static_cast<void>(tx.make<Page>());
    } catch (const Error&) {
    }
    return cell;
  }) == "pool_full");
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(cell).value; }) == 1);
}

// Each object takes a slab. What is empty is of use to another type when a checkpoint has freed it;
// whoever takes it before that, to keep it, takes it from those that wait.
TEST_CASE("a pool is not full while sessions could keep what others wait for") {
  constexpr std::size_t kThreads = 6;
  constexpr std::size_t kEach = 3;
  Options options = quiet_options();
  options.geometry.slab_size = 16384;
  options.geometry.log_size = std::uint64_t{256} * 1024;
  options.geometry.max_sessions = 8;
  TempPath path("kept");
  Pool pool = Pool::create(path.path(), std::uint64_t{768} * 1024, options);
  REQUIRE(pool.statistics().slabs_total > 4 * kThreads);
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Session session = pool.session();
      std::vector<std::function<void(Transaction&)>> destroy(kEach, [](Transaction&) {});
      const auto replace = [&](auto type, std::size_t i) {
        using Object = typename decltype(type)::type;
        Ptr<Object> made;
        session.run([&](Transaction& tx) {
          made = tx.make<Object>();
          destroy[i](tx);
        });
        destroy[i] = [made](Transaction& tx) { tx.destroy(made); };
      };
      for (std::size_t round = 0; round < 10'000; ++round) {
        const std::size_t i = round % kEach;
        const std::string code = code_of([&] {
          switch ((t + round / kEach) % 3) {
            case 0:
              replace(std::type_identity<Blob<14000>>(), i);
              break;
            case 1:
              replace(std::type_identity<Blob<14400>>(), i);
              break;
            default:
              replace(std::type_identity<Blob<14800>>(), i);
              break;
          }
          return 0;
        });
        if (code != "no error") refused.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(refused == 0);
}

// What it had taken itself was free again after each checkpoint, which looked like progress.
TEST_CASE("a transaction that no pool of this size could hold is told so soon") {
  OnePool p(quiet_options(), std::uint64_t{256} * 1024);
  using Page = Blob<3900>;
  int attempts = 0;
  CHECK(p.code([&](Transaction& tx) {
    ++attempts;
    for (int i = 0; i < 1000; ++i) static_cast<void>(tx.make<Page>());
    return 0;
  }) == "pool_full");
  CHECK(attempts <= 6);
  CHECK(p.code([](Transaction& tx) { return tx.make<Page>(); }) == "no error");
}

TEST_CASE("run inside run of the same session is an error, and the outer one goes on") {
  OnePool p;
  const auto cell = p.session.run([&](Transaction& tx) {
    const auto made = tx.make<Cell>(1U);
    const auto inside = [&](auto&& call) {
      return code_of([&] {
        call();
        return 0;
      });
    };
    CHECK(inside([&] { p.session.run([](Transaction&) {}); }) == "nested_transaction");
    CHECK(inside([&] { (void)p.session.run_async([](Transaction&) {}); }) == "nested_transaction");
    CHECK(inside([&] { p.session.flush(); }) == "nested_transaction");
    CHECK(inside([&] { p.session.close(); }) == "nested_transaction");
    return made;
  });
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(cell).value; }) == 1);
}

TEST_CASE("a transaction that is used after its function is an error, and changes nothing") {
  OnePool p;
  Transaction* kept = nullptr;
  const auto cell = p.session.run([&](Transaction& tx) {
    kept = &tx;
    return tx.make<Cell>(1U);
  });
  const auto code = [&](auto&& use) {
    return code_of([&] {
      use(*kept);
      return 0;
    });
  };
  CHECK(code([&](Transaction& tx) { static_cast<void>(tx.read(cell)); }) == "transaction_over");
  CHECK(code([&](Transaction& tx) { tx.write(cell).value = 9; }) == "transaction_over");
  CHECK(code([&](Transaction& tx) { tx.make<Cell>(); }) == "transaction_over");
  CHECK(code([&](Transaction& tx) { tx.destroy(cell); }) == "transaction_over");
  CHECK(code([&](Transaction& tx) { tx.set_root("cell", cell); }) == "transaction_over");
  CHECK(code([&](Transaction& tx) { RangedObject::create(tx, 8); }) == "transaction_over");
  CHECK(code([&](Transaction& tx) { tx.cancel(); }) == "transaction_over");
  kept->prefetch(cell);
  kept->prefetch_for_write(cell);
  p.pool.checkpoint();  // which would wait for a pinned one
  const auto other = p.session.run([](Transaction& tx) { return tx.make<Cell>(2U); });
  p.session.run([&](Transaction& tx) { CHECK(tx.read(cell).value + tx.read(other).value == 3); });
  CHECK(code([&](Transaction& tx) { static_cast<void>(tx.read(cell)); }) == "transaction_over");
  SECTION("after an error that no body can swallow, too") {
    CHECK(p.code([](Transaction& tx) {
      for (;;) static_cast<void>(tx.make<Blob<3900>>());
      return 0;
    }) == "pool_full");
    CHECK(code([&](Transaction& tx) { static_cast<void>(tx.read(cell)); }) == "transaction_over");
    CHECK(code([&](Transaction& tx) { tx.write(cell).value = 9; }) == "transaction_over");
    p.pool.checkpoint();
  }
}

TEST_CASE("a transaction inside the body of another, which wants what that one has, is an error") {
  Options options = quiet_options();
  options.locks = LockTiming::encounter;
  OnePool p(options);
  Session inner = p.pool.session();
  const auto cell = p.session.run([](Transaction& tx) { return tx.make<Cell>(1U); });
  p.session.run([&](Transaction& tx) {
    tx.write(cell).value = 2;
    CHECK(code_of([&] {
            inner.run([&](Transaction& nested) { nested.write(cell).value = 3; });
            return 0;
          }) == "nested_transaction");
    const auto made = tx.make<Cell>(7U);
    CHECK(code_of([&] {
            inner.run([&](Transaction& nested) { static_cast<void>(nested.read(made)); });
            return 0;
          }) == "nested_transaction");
  });
  CHECK(inner.run([&](Transaction& tx) { return tx.read(cell).value; }) == 2);
}

TEST_CASE("a constructor that throws leaves no object, also if the body goes on") {
  struct Thrower {
    std::uint64_t value;
    explicit Thrower(bool fails) : value(1) {
      if (fails) throw std::runtime_error("no");
    }
  };
  OnePool p;
  const auto objects = [&] {
    p.pool.checkpoint();
    return p.pool.info().objects;
  };
  p.session.run([](Transaction& tx) { static_cast<void>(tx.make<Thrower>(false)); });
  const std::uint64_t before = objects();
  p.session.run(
      [](Transaction& tx) { CHECK_THROWS_AS(tx.make<Thrower>(true), std::runtime_error); });
  CHECK(objects() == before);
}

TEST_CASE("a session used by a second thread says that it is busy") {
  OnePool p;
  p.session.run([&](Transaction& tx) {
    std::thread([&] {
      const auto error = error_of([&] {
        p.session.run([](Transaction&) {});
        return 0;
      });
      REQUIRE(error);
      CHECK(error->code() == ErrorCode::session_busy);
      CHECK(error->facts().path == p.path.string());
      CHECK(code_of([&] {
              p.session.flush();
              return 0;
            }) == "session_busy");
      CHECK(code_of([&] {
              p.session.close();
              return 0;
            }) == "session_busy");
    }).join();
    (void)tx.make<Cell>();
  });
  p.session.run([](Transaction& tx) { (void)tx.make<Cell>(); });
}

TEST_CASE("a pool is not closed while sessions are open") {
  OnePool p;
  Session second = p.pool.session();
  const auto error = error_of([&] {
    p.pool.close();
    return 0;
  });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::sessions_open);
  CHECK(error->facts().path == p.path.string());
  CHECK(error->facts().found == "2");
  REQUIRE(p.pool.is_open());
  second.run([](Transaction& tx) { tx.set_root("cell", tx.make<Cell>(8U)); });
  second.close();
  p.session.close();
  p.pool.close();
  CHECK(Pool::inspect(p.path.path()).clean);
}

TEST_CASE("a pool that is open cannot be opened, inspected or created again") {
  OnePool p;
  for (const auto& error : {error_of([&] { return Pool::open(p.path.path(), quiet_options()); }),
                            error_of([&] { return Pool::inspect(p.path.path()); }),
                            error_of([&] { return Pool::check(p.path.path()); })}) {
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::pool_in_use);
    CHECK(error->facts().path == p.path.string());
  }
  CHECK(code_of([&] { return Pool::create(p.path.path(), kTinyPool, quiet_options()); }) ==
        "already_exists");
}

TEST_CASE("objects are neither made nor destroyed without concurrency control") {
  Options options = quiet_options();
  options.policy = CommitPolicy::speculative;
  OnePool p(options);
  const auto cell = p.session.run([](Transaction& tx) {
    const auto made = tx.make<Cell>(1U);
    tx.set_root("cell", made);
    return made;
  });
  p.session.close();
  p.pool.close();
  options.policy = CommitPolicy::ideal;
  p.pool = Pool::open(p.path.path(), options);
  p.session = p.pool.session();
  CHECK(p.code([](Transaction& tx) { return tx.make<Cell>(); }) == "unsupported");
  CHECK(p.code([&](Transaction& tx) {
    tx.destroy(cell);
    return 0;
  }) == "unsupported");
  p.session.run([&](Transaction& tx) { tx.write(cell).value = 5; });
  CHECK(p.session.run([&](Transaction& tx) { return tx.read(cell).value; }) == 5);
}

}  // namespace sp3::test

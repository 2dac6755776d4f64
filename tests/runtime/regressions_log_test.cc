// Bugs once found where records are flushed, logs grow and checkpoints cut. docs/TESTING.md tells
// their stories.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include <catch2/catch.hpp>

#include "log/segment_pool.h"
#include "log/session_log.h"
#include "pool/pool_file.h"
#include "tests/support/pools.h"

namespace sp3::test {
namespace {

using log::SegmentPool;
using log::SessionLog;

struct Cell {
  std::uint64_t value = 0;
};
struct Wide {
  std::array<std::uint64_t, 120> words{};
};

// A log in file memory: 16 segments of a block each.
struct LogBench {
  static constexpr std::uint32_t kRecord = 1024;

  TempPath path;
  std::unique_ptr<pool::PoolFile> file =
      pool::PoolFile::create(path.path(), kTinyPool, tiny_options(MemoryKind::file));
  SegmentPool segments{file->layout().segments};
  SessionLog log{file->memory(), file->layout(), segments, 1, 1, 7};
  std::vector<std::byte> record = std::vector<std::byte>(kRecord, std::byte{0x5A});
  log::Stamp stamp = 0;

  SessionLog::Reserved reserve() { return log.reserve(kRecord, 1); }
  SessionLog::Appended append() {
    const std::lock_guard guard(log.block_lock());
    return log.append(record.data(), kRecord, ++stamp, false);
  }
  void close_blocks(std::uint64_t end) {
    const std::lock_guard guard(log.block_lock());
    log.close_blocks(end);
  }
};

// Numbers that outlive the child that raises them.
class Acknowledged {
 public:
  explicit Acknowledged(std::size_t count) : bytes_(count * sizeof(Number)), count_(count) {
    void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    numbers_ = static_cast<Number*>(at);
  }
  ~Acknowledged() { ::munmap(numbers_, bytes_); }
  Acknowledged(const Acknowledged&) = delete;
  Acknowledged& operator=(const Acknowledged&) = delete;

  std::atomic<std::uint64_t>& operator[](std::size_t i) { return numbers_[i]; }
  [[nodiscard]] bool all_are_raised() const {
    return std::all_of(numbers_, numbers_ + count_,
                       [](const Number& number) { return number > 0; });
  }

 private:
  using Number = std::atomic<std::uint64_t>;
  std::size_t bytes_;
  std::size_t count_;
  Number* numbers_;  // zeros from the kernel
};

// Runs `body` in a child and kills it `ms` after each of its threads has acknowledged something, or
// when one has not within a minute; false if it ended by itself before.
template <class Body>
bool lives_until_killed(int ms, Acknowledged& acknowledged, Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS}) ::signal(number, SIG_DFL);
    try {
      body();
    } catch (...) {
      // Ending is failure enough.
    }
    ::_exit(1);
  }
  for (int waited_ms = 0; waited_ms < 60'000 && !acknowledged.all_are_raised(); ++waited_ms) {
    ::usleep(1000);
  }
  ::usleep(static_cast<useconds_t>(ms) * 1000);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

// One session's objects. Transaction n writes n into every word of number n % size.
constexpr std::size_t kObjects = 8;
struct Family {
  std::array<Ptr<Wide>, kObjects> members{};
};

std::string root_of(int thread) { return "family " + std::to_string(thread); }

void write_for_ever(Session session, const Family& family,
                    std::atomic<std::uint64_t>& acknowledged) {
  for (std::uint64_t n = 1;; ++n) {
    const auto body = [&](Transaction& tx) {
      tx.write(family.members[n % kObjects]).words.fill(n);
    };
    if (n % 16 == 0) {
      session.run(body);
      acknowledged = n;
    } else {
      (void)session.run_async(body);
    }
  }
}

// Whether the objects hold what a prefix of the transactions left, and the last of it.
bool prefix_in(Session& session, int thread, std::uint64_t* last) {
  return session.run([&](Transaction& tx) -> bool {
    const Family family = tx.read(tx.root<Family>(root_of(thread)));
    std::array<std::uint64_t, kObjects> found{};
    *last = 0;
    for (std::size_t i = 0; i < kObjects; ++i) {
      const Wide& wide = tx.read(family.members[i]);
      for (const std::uint64_t word : wide.words) {
        if (word != wide.words[0]) return false;
      }
      found[i] = wide.words[0];
      *last = std::max(*last, found[i]);
    }
    for (std::uint64_t n = *last; n > 0 && n + kObjects > *last; --n) {
      if (found[n % kObjects] != n) return false;
    }
    return true;
  });
}

}  // namespace

TEST_CASE("no fence acknowledges an asynchronous group that nobody flushed") {
  constexpr int kRounds = 60;
  constexpr std::size_t kMany = 1000;
  Options options = quiet_options();
  options.geometry = {24 << 20, 1 << 20, 64 * 1024, 7};
  options.async.group_records = 8;
  TempPath path;
  Pool pool = Pool::create(path.path(), 32 << 20, options);
  Session owner = pool.session();
  const auto hot = owner.run([](Transaction& tx) { return tx.make<Cell>(); });
  const auto own = owner.run([](Transaction& tx) { return tx.make<Cell>(); });
  std::atomic<bool> stop{false};
  // Waits for whatever was last written to the hot object, and so helps to persist it.
  std::thread helper([&] {
    Session session = pool.session();
    while (!stop) (void)session.run([&](Transaction& tx) { return tx.read(hot).value; });
  });
  int unflushed = 0;
  std::vector<Ptr<Cell>> many(kMany);
  for (int round = 0; round < kRounds; ++round) {
    owner.run([&](Transaction& tx) {
      for (auto& cell : many) cell = tx.make<Cell>();
    });
    // Between sealing and fencing its record the owner tidies up, which the many objects prolong.
    owner.run([&](Transaction& tx) {
      tx.write(hot).value += 1;
      for (const auto cell : many) tx.destroy(cell);
    });
    const SessionStatistics before = owner.statistics();
    for (int i = 0; i < 8; ++i) {
      (void)owner.run_async([&](Transaction& tx) { tx.write(own).value += 1; });
    }
    const SessionStatistics after = owner.statistics();
    if (after.fences != before.fences && after.lines == before.lines) ++unflushed;
  }
  stop = true;
  helper.join();
  CHECK(unflushed == 0);
}

TEST_CASE("closing a block of an old run leaves the owner in its new one") {
  LogBench bench;
  // Runs of two segments, three records each, to the end of the region.
  SessionLog::Appended last{};
  while (bench.reserve() != SessionLog::Reserved::no) last = bench.append();
  REQUIRE(bench.log.runs().size() == 8);
  REQUIRE(bench.stamp == 24);
  // All but the last run become free; the next one starts below what is still to be flushed.
  bench.log.recycle(21, false);
  REQUIRE(bench.log.runs().size() == 1);
  REQUIRE(bench.reserve() == SessionLog::Reserved::in_new_run);
  const std::uint64_t start = bench.file->layout().segment_offset(0);
  bench.close_blocks(last.offset + last.bytes);
  const SessionLog::Appended first = bench.append();
  CHECK(first.offset == start);
  bench.close_blocks(last.offset + last.bytes);
  REQUIRE(bench.reserve() == SessionLog::Reserved::in_last_run);
  const SessionLog::Appended second = bench.append();
  CHECK(second.offset == first.offset + first.bytes);
  // A flush of the new run itself does move it, by no more than to the next block.
  bench.close_blocks(second.offset + second.bytes);
  REQUIRE(bench.reserve() == SessionLog::Reserved::in_last_run);
  CHECK(bench.append().offset == start + log::kFileBlock);
}

TEST_CASE("a request for contiguous segments that is given up does not starve smaller ones") {
  SegmentPool segments(8);
  for (int i = 0; i < 8; ++i) REQUIRE(segments.take(1));
  for (const std::uint32_t segment : {0U, 2U, 4U, 6U}) segments.give_back(segment, 1);
  REQUIRE_FALSE(segments.take(3));
  // For a while the large request has precedence.
  CHECK_FALSE(segments.take(1));
  CHECK(segments.used() == 4);
  int refused = 0;
  while (refused < 100'000 && !segments.take(1)) ++refused;
  CHECK(refused < 100'000);
  CHECK(segments.used() == 5);
  // Whoever does not give up is served as soon as it can be.
  REQUIRE_FALSE(segments.take(3));
  segments.give_back(3, 1);
  segments.give_back(5, 1);
  CHECK(segments.take(3));
}

// The larger one was preferred each time that it came back.
TEST_CASE("of two sessions whose transactions do not fit the log together neither is kept out") {
  Options options = quiet_options(GENERATE(MemoryKind::emulated, MemoryKind::file));
  options.geometry.log_size = std::uint64_t{64} * 4096;
  const TempPath path;
  Pool pool = Pool::create(path.path(), std::uint64_t{2} << 20, options);
  const auto make = [&](std::size_t count) {
    std::vector<Ptr<Wide>> all;
    Session session = pool.session();
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(session.run([](Transaction& tx) { return tx.make<Wide>(); }));
    }
    return all;
  };
  const auto write_all = [](Session& session, const std::vector<Ptr<Wide>>& all) {
    session.run([&](Transaction& tx) {
      for (const auto object : all) {
        for (auto& word : tx.write(object).words) ++word;
      }
    });
  };
  const auto larger = make(200);  // four fifths of the log
  const auto smaller = make(125);
  constexpr int kMost = 400;
  std::atomic<bool> done{false};
  std::atomic<int> runs{0};
  std::thread other([&] {
    Session session = pool.session();
    for (; !done && runs < kMost; ++runs) write_all(session, larger);
  });
  while (runs == 0) std::this_thread::yield();
  Session session = pool.session();
  for (int i = 0; i < 5; ++i) write_all(session, smaller);
  done = true;
  other.join();
  CHECK(runs < kMost);
}

// The flusher had passed the session, which then saw it still awake. So many sessions that a look
// at all of them takes long; the pauses end about when it slows down, after 17 rounds of 50 us more
// than it asks for.
TEST_CASE("a group that is sealed while the flusher slows down waits for no watermark") {
  using namespace std::chrono_literals;
  Options options = quiet_options();
  options.geometry = {256 * 4096, 4096, 4096, 250};
  options.async.group_microseconds = 1;
  options.watermark_ms = 60'000;
  options.long_transaction_ms = 60'000;
  TempPath path;
  Pool pool = Pool::create(path.path(), 2 << 20, options);
  Session session = pool.session();
  std::vector<Session> others;
  for (int i = 0; i < 240; ++i) others.push_back(pool.session());
  const auto cell = session.run([](Transaction& tx) { return tx.make<Cell>(); });
  Random random(1);
  int late = 0;
  const auto end = std::chrono::steady_clock::now() + 3s;
  while (late == 0 && std::chrono::steady_clock::now() < end) {
    Ticket ticket = session.run_async([&](Transaction& tx) { ++tx.write(cell).value; });
    const auto deadline = std::chrono::steady_clock::now() + 5s;
    while (!ticket.ready() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    if (!ticket.ready()) ++late;
    const auto pause = std::chrono::microseconds(1000 + random.below(500));
    const auto go_on = std::chrono::steady_clock::now() + pause;
    while (std::chrono::steady_clock::now() < go_on) {
    }
  }
  CHECK(late == 0);
}

TEST_CASE("small runs in a file, flushed by everybody, survive a kill as prefixes") {
  constexpr int kThreads = 3;
  for (int round = 1; round <= 4; ++round) {
    Options options = tiny_options(MemoryKind::file);
    options.geometry = {std::uint64_t{16} * 8192, 8192, 4096, 4};
    options.async.group_microseconds = 50;
    options.async.group_records = 8;
    TempPath path;
    Acknowledged acknowledged(kThreads);
    {
      Pool pool = Pool::create(path.path(), 1 << 20, options);
      Session session = pool.session();
      for (int thread = 0; thread < kThreads; ++thread) {
        session.run([&](Transaction& tx) {
          const auto family = tx.make<Family>();
          for (auto& member : tx.write(family).members) member = tx.make<Wide>();
          tx.set_root(root_of(thread), family);
        });
      }
      session.close();
      pool.close();
    }
    const bool lived = lives_until_killed(50 + 30 * round, acknowledged, [&] {
      Pool pool = Pool::open(path.path(), options);
      on_threads(kThreads, [&](int thread) {
        Session session = pool.session();
        const Family family =
            session.run([&](Transaction& tx) { return tx.read(tx.root<Family>(root_of(thread))); });
        write_for_ever(std::move(session), family, acknowledged[static_cast<std::size_t>(thread)]);
      });
    });
    INFO("round " << round);
    CHECK(lived);
    Pool pool = Pool::open(path.path(), options);
    Session session = pool.session();
    for (int thread = 0; thread < kThreads; ++thread) {
      std::uint64_t last = 0;
      CHECK(prefix_in(session, thread, &last));
      CHECK(last >= acknowledged[static_cast<std::size_t>(thread)]);
      CHECK(acknowledged[static_cast<std::size_t>(thread)] > 0);
    }
  }
}

TEST_CASE("the first transaction of a new session is not lost below the floor") {
  constexpr std::size_t kThreads = 3;
  // Of each thread, all open: only a number's first use counts.
  constexpr std::size_t kSessions = 16;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Options options = quiet_options();
    options.geometry = {256 * 4096, 4096, 4096, kThreads * kSessions + 1};
    options.latency = {LatencyModel::yield, 200'000,
                       0};  // a record is sealed long before it is durable
    TempPath path;
    Acknowledged acknowledged(kThreads);
    std::vector<Ptr<Cell>> cells;  // one for each session
    {
      Pool pool = Pool::create(path.path(), 2 << 20, options);
      Session session = pool.session();
      session.run([&](Transaction& tx) {
        for (std::size_t i = 0; i < kThreads * kSessions; ++i) cells.push_back(tx.make<Cell>());
      });
      session.close();
      pool.close();
    }
    const int ended = in_child([&]() -> int {
      Pool pool = Pool::open(path.path(), options);
      std::vector<Session> kept[kThreads];
      on_threads(kThreads + 1, [&](int thread) {
        const auto t = static_cast<std::size_t>(thread);
        if (t == kThreads) {
          ::usleep(static_cast<useconds_t>(Random(seed).below(3000)));
          pool.checkpoint();  // the only one: another would repair what this one misses
          return;
        }
        for (std::size_t i = 0; i < kSessions; ++i) {
          kept[t].push_back(pool.session());
          kept[t].back().run(
              [&](Transaction& tx) { tx.write(cells[t * kSessions + i]).value = 1; });
          ++acknowledged[t];
        }
      });
      return ::kill(::getpid(), SIGKILL);
    });
    INFO("seed " << seed);
    REQUIRE(ended == 128 + SIGKILL);
    for (std::size_t t = 0; t < kThreads; ++t) REQUIRE(acknowledged[t] == kSessions);
    Pool pool = Pool::open(path.path(), options);
    Session session = pool.session();
    const auto is_lost = [&](Ptr<Cell> cell) {
      return session.run([&](Transaction& tx) { return tx.read(cell).value; }) == 0;
    };
    CHECK(std::none_of(cells.begin(), cells.end(), is_lost));
  }
}

TEST_CASE("info of a live pool never fails while slabs come and go") {
  Options options = tiny_options();
  options.checkpoint.interval_ms = 1;
  TempPath path;
  Pool pool = Pool::create(path.path(), 1 << 20, options);
  std::atomic<bool> stop{false};
  std::thread churn([&] {
    Session session = pool.session();
    while (!stop) {
      std::vector<Ptr<Wide>> made;
      for (int i = 0; i < 40; ++i) {
        made.push_back(session.run([](Transaction& tx) { return tx.make<Wide>(); }));
      }
      for (const auto big : made) session.run([&](Transaction& tx) { tx.destroy(big); });
    }
  });
  std::string failure;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  while (failure.empty() && std::chrono::steady_clock::now() < until) {
    if (const auto error = error_of([&] { return pool.info(); })) failure = error->what();
  }
  stop = true;
  churn.join();
  CHECK(failure.empty());
}

TEST_CASE("swaps under checkpoints leave a permutation") {
  constexpr std::size_t kCells = 6;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Options options = quiet_options();
    options.locks = seed % 2 == 0 ? LockTiming::encounter : LockTiming::commit;
    TempPath path;
    Pool pool = Pool::create(path.path(), kTinyPool, options);
    std::vector<Ptr<Cell>> cells;
    {
      Session session = pool.session();
      for (std::uint64_t i = 0; i < kCells; ++i) {
        cells.push_back(session.run([&](Transaction& tx) { return tx.make<Cell>(i); }));
      }
    }
    std::atomic<int> swapping{2};
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(600);
    on_threads(3, [&](int thread) {
      if (thread == 2) {
        while (swapping != 0) pool.checkpoint();
        return;
      }
      Session session = pool.session();
      Random random(seed * 10 + static_cast<std::uint64_t>(thread));
      while (std::chrono::steady_clock::now() < until) {
        const auto a = cells[random.below(kCells)];
        const auto b = cells[random.below(kCells)];
        session.run([&](Transaction& tx) { std::swap(tx.write(a).value, tx.write(b).value); });
      }
      session.close();
      --swapping;
    });
    Session session = pool.session();
    std::vector<std::uint64_t> values;
    for (const auto cell : cells)
      values.push_back(session.run([&](Transaction& tx) { return tx.read(cell).value; }));
    INFO("seed " << seed);
    std::vector<std::uint64_t> all(kCells);
    std::iota(all.begin(), all.end(), 0);
    CHECK_THAT(values, Catch::Matchers::UnorderedEquals(all));
  }
}

// What is read under a range that the transaction holds is not validated, but makes predecessors as
// everything read. They were not counted when room for the record was reserved, and the record was
// written over the beginning of the next segment.
TEST_CASE("a record has room for the predecessors read under a range of one's own") {
  constexpr std::uint32_t kOthers = 25, kChunk = 256;
  TempPath path;
  Options options = quiet_options();
  options.geometry = {std::uint64_t{256} * 1024, 4096, std::uint64_t{16} * 1024, 40};
  Pool pool = Pool::create(path.path(), std::uint64_t{1} << 20, options);
  Session session = pool.session();
  RangedObject object;
  session.run([&](Transaction& tx) {
    object = RangedObject::create(tx, std::uint64_t{kOthers} * kChunk, kChunk);
    object.fill(tx, 0, std::uint64_t{kOthers} * kChunk);
    tx.set_root("object", object.header());
  });
  std::vector<Session> others;
  for (std::uint32_t i = 0; i < kOthers; ++i) others.push_back(pool.session());
  constexpr std::uint64_t kRounds = 40;
  std::vector<std::byte> all(std::size_t{kOthers} * kChunk);
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    const auto word = std::as_bytes(std::span(&round, 1));
    for (std::uint32_t i = 0; i < kOthers; ++i) {
      static_cast<void>(others[i].run_async(
          [&](Transaction& tx) { object.write(tx, std::uint64_t{i} * kChunk + 8, word); }));
    }
    session.run([&](Transaction& tx) {
      object.lock(tx, 0, all.size());
      object.read(tx, 0, all);
      object.write(tx, 0, word);
    });
  }
  others.clear();
  session.close();
  pool.close();
  CHECK(Pool::check(path.path()).sound());
  pool = Pool::open(path.path(), options);
  session = pool.session();
  session.run([&](Transaction& tx) {
    object = RangedObject::open(tx, tx.root<RangedObject::Header>("object"));
    for (std::uint32_t i = 0; i < kOthers; ++i) {
      std::uint64_t found = 0;
      object.read(tx, std::uint64_t{i} * kChunk + 8, std::as_writable_bytes(std::span(&found, 1)));
      CHECK(found == kRounds);
    }
  });
}

}  // namespace sp3::test

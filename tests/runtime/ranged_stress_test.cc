// Ranged objects under stress: strict serializability of lists that lie across the chunks of one
// object, as the history checker sees it; and invariants that torn or skewed ranges would break.
#include <array>
#include <mutex>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "oracle/history.h"
#include "tests/support/pools.h"

namespace sp3::test {

using namespace oracle;

namespace {

constexpr std::uint32_t kChunk = 256;
constexpr std::uint64_t kLists = 6;
constexpr std::uint64_t kCapacity = 12;  // values of a list
// Lists follow each other without regard to chunks: two or three share each.
constexpr std::uint64_t kListWords = 1 + kCapacity;

using Words = Ranged<std::uint64_t>;

Options stress_options(const Mode& mode, RangeLockKind kind) {
  Options options = tiny_options();
  mode.apply(options);
  options.range_lock = kind;
  options.checkpoint.interval_ms = 1;
  return options;
}

Words make_words(Pool& pool, std::uint64_t count) {
  Session session = pool.session();
  return session.run([&](Transaction& tx) {
    const Words words = Words::create(tx, count, kChunk);
    words.fill(tx, 0, count);
    tx.set_root("words", words.header());
    return words;
  });
}

// One thread of the history. Word 0 of a list counts its values.
class Worker {
 public:
  Worker(Pool& pool, const Words& words, std::uint64_t seed, int number)
      : session_(pool.session()), words_(words), number_(number), random_(seed) {}

  void run(int transactions, bool async) {
    std::vector<Ticket> tickets;
    for (int i = 0; i < transactions; ++i) {
      HistoryTransaction tx;
      tx.process = number_;
      tx.begin = History::now();
      const std::uint64_t seed = random_();
      const auto body = [&](Transaction& t) {
        tx.ops.clear();
        Random choice(seed);
        const std::uint64_t parts = 1 + choice.below(3);
        for (std::uint64_t part = 0; part < parts; ++part) use_list(t, tx, choice);
      };
      if (async) {
        tickets.push_back(session_.run_async(body));
      } else {
        session_.run(body);
      }
      tx.end = History::now();
      history.push_back(std::move(tx));
    }
    for (Ticket& ticket : tickets) ticket.wait();
    session_.close();
  }

  std::vector<HistoryTransaction> history;

 private:
  void use_list(Transaction& t, HistoryTransaction& tx, Random& choice) {
    const std::uint64_t list = choice.below(kLists);
    const std::uint64_t first = list * kListWords;
    const bool append = choice.below(2) == 0;
    std::array<std::uint64_t, kListWords> content{};
    switch (choice.below(3)) {
      case 0:
        if (append) words_.lock(t, first, first + kListWords);
        [[fallthrough]];
      case 1:
        words_.read(t, first, content);
        break;
      default: {
        const auto view = words_.view(t, first, first + kListWords);
        for (std::uint64_t i = 0; i < kListWords; ++i) content[i] = view[i];
      }
    }
    const std::uint64_t count = content[0];
    tx.read_list(list,
                 {content.begin() + 1, content.begin() + 1 + static_cast<std::ptrdiff_t>(count)});
    if (!append || count == kCapacity) return;
    const std::uint64_t value = (static_cast<std::uint64_t>(number_) + 1) << 40 | ++counter_;
    words_.set(t, first + 1 + count, value);
    words_.set(t, first, count + 1);
    tx.append(list, value);
  }

  Session session_;
  Words words_;
  int number_;
  Random random_;
  std::uint64_t counter_ = 0;
};

// Short histories one after the other: lists fill up quickly, and then nothing happens any more.
void check_histories(const Mode& mode, RangeLockKind kind, int rounds, int threads) {
  for (int round = 0; round < rounds; ++round) {
    INFO(mode.name() << ", " << to_string(kind) << ", round " << round);
    const TempPath path;
    Pool pool = Pool::create(path.path(), kTinyPool, stress_options(mode, kind));
    const Words words = make_words(pool, kLists * kListWords);
    History history;
    std::mutex mutex;
    on_threads(threads, [&](int number) {
      Worker worker(pool, words, static_cast<std::uint64_t>(round * 100 + number), number);
      worker.run(40, mode.async);
      const std::lock_guard guard(mutex);
      for (HistoryTransaction& tx : worker.history) history.add(std::move(tx));
    });
    const auto anomaly = history.find_anomaly();
    CHECK((anomaly ? anomaly->name + ": " + anomaly->explanation : "") == "");
    pool.close();
  }
}

void check_all_histories(int rounds) {
  for (const RangeLockKind kind : {RangeLockKind::skiplist, RangeLockKind::grid}) {
    for (const Mode& mode : all_modes()) {
      if (mode.memory == MemoryKind::emulated) check_histories(mode, kind, rounds, 3);
    }
  }
}

// Threads write whole records of `kRecord` words, each with one value, at random places that cross
// chunks; readers, by copy and by view, must find every record with one value.
void look_for_torn_records(int transactions) {
  constexpr std::uint64_t kRecord = 45, kRecords = 20;
  const TempPath path;
  Pool pool = Pool::create(path.path(), kTinyPool, stress_options({}, RangeLockKind::skiplist));
  const Words words = make_words(pool, kRecord * kRecords);
  std::array<std::uint64_t, 4> torn{};
  on_threads(4, [&](int number) {
    Session session = pool.session();
    Random random(static_cast<std::uint64_t>(number));
    for (int i = 0; i < transactions; ++i) {
      const std::uint64_t first = random.below(kRecords) * kRecord;
      std::array<std::uint64_t, kRecord> record{};
      session.run([&](Transaction& tx) {
        if (number < 2) {
          record.fill(random());
          words.write(tx, first, record);
          return;
        }
        words.read(tx, first, record);
        const auto view = words.view(tx, first, first + kRecord);
        for (const std::uint64_t word : record) {
          torn[static_cast<std::size_t>(number)] += word != record[0];
        }
        for (std::uint64_t w = 0; w < kRecord; ++w) {
          torn[static_cast<std::size_t>(number)] += view[w] != record[0];
        }
      });
    }
    session.close();
  });
  CHECK(torn == std::array<std::uint64_t, 4>{});
}

// Each thread adds to words of its own, which share chunks with everybody else's; some change the
// length behind the last word meanwhile.
void count_increments(int transactions, RangeLockKind kind) {
  constexpr std::uint64_t kWords = 96;
  constexpr int kThreads = 4;
  const TempPath path;
  Pool pool = Pool::create(path.path(), kTinyPool, stress_options({}, kind));
  const Words words = make_words(pool, kWords);
  on_threads(kThreads, [&](int number) {
    Session session = pool.session();
    for (int i = 0; i < transactions; ++i) {
      session.run([&](Transaction& tx) {
        for (std::uint64_t w = static_cast<std::uint64_t>(number); w < kWords; w += 8 * kThreads) {
          if (i % 2 == 0) words.lock(tx, w, w + 1);
          words.set(tx, w, words.get(tx, w) + 1);
        }
        if (i % 64 == 63) words.resize(tx, kWords + static_cast<std::uint64_t>(number) * 50);
      });
    }
    session.close();
  });
  Session session = pool.session();
  session.run([&](Transaction& tx) {
    CHECK(words.check_invariants(tx) == "");
    for (std::uint64_t w = 0; w < kWords; ++w) {
      CHECK(words.get(tx, w) ==
            (w % (8 * kThreads) < kThreads ? static_cast<std::uint64_t>(transactions) : 0));
    }
  });
}

// Money moves between two words of the same or different chunks; every sum of all is the same.
void transfer(int transactions) {
  constexpr std::uint64_t kAccounts = 64;
  const TempPath path;
  Pool pool = Pool::create(path.path(), kTinyPool, stress_options({}, RangeLockKind::skiplist));
  const Words words = make_words(pool, kAccounts);
  std::array<std::uint64_t, 3> wrong{};
  on_threads(3, [&](int number) {
    Session session = pool.session();
    Random random(static_cast<std::uint64_t>(number) + 7);
    for (int i = 0; i < transactions; ++i) {
      const std::uint64_t from = random.below(kAccounts), to = random.below(kAccounts);
      session.run([&](Transaction& tx) {
        if (number == 0) {
          std::uint64_t sum = 0;
          const auto view = words.view(tx, 0, kAccounts);
          for (std::uint64_t a = 0; a < kAccounts; ++a) sum += view[a];
          wrong[0] += sum != 0;
          return;
        }
        words.set(tx, from, words.get(tx, from) - 1);
        words.set(tx, to, words.get(tx, to) + 1);
      });
    }
    session.close();
  });
  CHECK(wrong == std::array<std::uint64_t, 3>{});
}

}  // namespace

TEST_CASE("transactions on ranges of one object are strictly serializable") {
  check_all_histories(3);
}
TEST_CASE("transactions on ranges are strictly serializable, at length", "[.full]") {
  check_all_histories(150);
}

TEST_CASE("nobody reads half a range") { look_for_torn_records(2000); }
TEST_CASE("nobody reads half a range, at length", "[.full]") { look_for_torn_records(40'000); }

TEST_CASE("writers of one chunk lose no update, whoever resizes meanwhile") {
  for (const RangeLockKind kind : {RangeLockKind::skiplist, RangeLockKind::grid}) {
    count_increments(1000, kind);
  }
}

TEST_CASE("sums over ranges are never seen half-way") { transfer(3000); }
TEST_CASE("sums over ranges are never seen half-way, at length", "[.full]") { transfer(40'000); }

}  // namespace sp3::test

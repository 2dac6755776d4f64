// Strict serializability under stress: threads read, append to, make and destroy a few hot objects
// in a tiny pool that is checkpointed all the time; the history checker looks for a serial order.
#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "emu/clock.h"
#include "emu/spin_lock.h"
#include "oracle/history.h"
#include "tests/support/pools.h"

namespace sp3::test {

using namespace oracle;

namespace {

using Outcome = HistoryTransaction::Outcome;

constexpr std::size_t kSlots = 4;
constexpr std::uint32_t kListCapacity = 12;

struct List {
  std::uint64_t name = 0;  // of the object in the history: slots are used again, names are not
  std::uint32_t count = 0;
  std::array<std::uint64_t, kListCapacity> values{};
};
struct Register {
  std::uint64_t value = 0;
};
struct Directory {
  std::array<Ptr<List>, kSlots> lists{};
  std::array<Ptr<Register>, kSlots> registers{};
};

struct Setting {
  Mode mode;
  int threads = 2;
  int transactions = 300;  // per worker
  std::uint64_t seed = 1;
  int workers = 0;  // that go from thread to thread; 0: each thread has its own
};

// What may be waited for by other threads than it came from.
class Tickets {
 public:
  void put(Ticket ticket) {
    constexpr std::size_t kMost = 20;
    {
      const std::lock_guard guard(mutex_);
      waiting_.push_back(std::move(ticket));
      if (waiting_.size() <= kMost) return;
    }
    wait_for_oldest();
  }
  // False if there is none.
  bool wait_for_oldest() {
    Ticket oldest;
    {
      const std::lock_guard guard(mutex_);
      if (waiting_.empty()) return false;
      oldest = std::move(waiting_.front());
      waiting_.pop_front();
    }
    oldest.wait();
    return true;
  }
  void wait_for_all() {
    while (wait_for_oldest()) {
    }
  }

 private:
  std::mutex mutex_;
  std::deque<Ticket> waiting_;
};

// One session of the stress. Records every attempt, also those that were thrown away.
class Worker {
 public:
  Worker(Pool& pool, const Setting& setting, int number, Tickets& tickets)
      : session_(pool.session()),
        tickets_(tickets),
        async_(setting.mode.async),
        number_(number),
        random_(setting.seed * 1000 + static_cast<std::uint64_t>(number)) {}

  void run(int transactions) {
    for (int i = 0; i < transactions; ++i) one();
  }
  void finish() {
    tickets_.wait_for_all();
    session_.close();
  }

  std::vector<HistoryTransaction> take_history() { return std::move(history_); }

 private:
  // Never the same again, whatever becomes of the attempt that uses it.
  std::uint64_t fresh() { return (static_cast<std::uint64_t>(number_) + 1) << 40 | ++counter_; }

  void one() {
    const std::uint64_t seed = random_();
    const bool give_up = random_.below(20) == 0;
    HistoryTransaction tx;
    tx.process = number_;
    tx.begin = History::now();
    bool attempted = false;
    const auto body = [&](Transaction& t) {
      if (attempted) abandon(tx);
      attempted = true;
      tx.ops.clear();
      Random choice(seed);
      work(t, tx, choice);
      if (give_up) t.cancel();
    };
    try {
      if (async_ && random_.below(4) != 0) {
        tickets_.put(session_.run_async(body));
      } else {
        session_.run(body);
      }
    } catch (const Cancelled&) {
      abandon(tx);
      return;
    }
    tx.end = History::now();
    history_.push_back(std::move(tx));
  }

  // The writes of an attempt that was thrown away, so that a read of one is recognised. Its reads
  // need no order with the others (opacity has tests of its own).
  void abandon(const HistoryTransaction& tx) {
    HistoryTransaction aborted = tx;
    aborted.outcome = Outcome::aborted;
    history_.push_back(std::move(aborted));
  }

  void work(Transaction& t, HistoryTransaction& tx, Random& choice) {
    const Directory& directory = t.read(t.root<Directory>("directory"));
    const std::uint64_t parts = 1 + choice.below(3);
    const bool read_only = choice.below(4) == 0;
    for (std::uint64_t i = 0; i < parts; ++i) {
      const std::size_t slot = choice.below(kSlots);
      if (choice.below(3) == 0) {
        use_register(t, tx, directory.registers[slot], slot, read_only || choice.below(2) == 0);
      } else {
        use_list(t, tx, slot, read_only || choice.below(2) == 0);
      }
    }
  }

  void use_register(Transaction& t, HistoryTransaction& tx, Ptr<Register> at, std::size_t slot,
                    bool only_read) {
    tx.read_register(slot, t.read(at).value);
    if (only_read) return;
    const std::uint64_t value = fresh();
    if (value % 2 == 0) {
      t.write(at).value = value;
    } else {
      t.assign(at, {value});
    }
    tx.write_register(slot, value);
  }

  void use_list(Transaction& t, HistoryTransaction& tx, std::size_t slot, bool only_read) {
    const Ptr<Directory> root = t.root<Directory>("directory");
    const Ptr<List> at = t.read(root).lists[slot];
    const List& list = t.read(at);
    tx.read_list(list.name, {list.values.begin(), list.values.begin() + list.count});
    if (only_read) return;
    const std::uint64_t value = fresh();
    if (list.count < kListCapacity) {
      List& copy = t.write(at);
      copy.values[copy.count++] = value;
      tx.append(copy.name, value);
      return;
    }
    t.destroy(at);
    List first;
    first.name = fresh();
    first.count = 1;
    first.values[0] = value;
    t.write(root).lists[slot] = t.make<List>(first);
    tx.append(first.name, value);
  }

  Session session_;
  Tickets& tickets_;
  const bool async_;
  const int number_;
  Random random_;
  std::uint64_t counter_ = 0;
  std::vector<HistoryTransaction> history_;
};

void set_up(Pool& pool) {
  Session session = pool.session();
  session.run([](Transaction& t) {
    Directory directory;
    for (std::size_t i = 0; i < kSlots; ++i) {
      directory.lists[i] = t.make<List>(List{100 + i, 0, {}});
      directory.registers[i] = t.make<Register>();
    }
    t.set_root("directory", t.make<Directory>(directory));
  });
}

// Workers that any thread may take, and puts back after a few transactions. What orders one thread's
// turn behind another's is no more than acquire and release. Their tickets are waited for by whoever
// finds the worker gone that he wanted.
class Rack {
 public:
  Rack(Pool& pool, const Setting& setting) : places_(static_cast<std::size_t>(setting.workers)) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      places_[i].worker.emplace(pool, setting, static_cast<int>(i), tickets_);
      places_[i].left = setting.transactions;
    }
  }

  // Of one thread: until nothing is left to do.
  void work(Random random) {
    while (finished_.load(std::memory_order_acquire) < places_.size()) {
      Place& place = places_[random.below(places_.size())];
      if (const std::unique_lock lock(place.lock, std::try_to_lock); lock) {
        take_turn(place, static_cast<int>(1 + random.below(6)));
      } else if (!tickets_.wait_for_oldest()) {
        std::this_thread::yield();
      }
    }
  }

  std::vector<HistoryTransaction> take_history(std::size_t i) {
    return places_[i].worker->take_history();
  }

 private:
  struct Place {
    emu::SpinLock lock;
    std::optional<Worker> worker;
    int left = 0;
  };

  void take_turn(Place& place, int most) {
    if (place.left == 0) return;
    const int some = std::min(place.left, most);
    place.worker->run(some);
    place.left -= some;
    if (place.left != 0) return;
    place.worker->finish();
    finished_.fetch_add(1, std::memory_order_release);
  }

  Tickets tickets_;
  std::vector<Place> places_;
  std::atomic<std::size_t> finished_{0};
};

// What each worker did.
std::vector<std::vector<HistoryTransaction>> work(Pool& pool, const Setting& setting) {
  if (setting.workers == 0) {
    std::vector<std::vector<HistoryTransaction>> parts(static_cast<std::size_t>(setting.threads));
    on_threads(setting.threads, [&](int number) {
      Tickets tickets;
      Worker worker(pool, setting, number, tickets);
      worker.run(setting.transactions);
      worker.finish();
      parts[static_cast<std::size_t>(number)] = worker.take_history();
    });
    return parts;
  }
  Rack rack(pool, setting);
  on_threads(setting.threads, [&](int number) {
    rack.work(Random(setting.seed * 100 + static_cast<std::uint64_t>(number)));
  });
  std::vector<std::vector<HistoryTransaction>> parts(static_cast<std::size_t>(setting.workers));
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = rack.take_history(i);
  return parts;
}

// Everything that is left, read at the end, fixes the order of the last appends.
HistoryTransaction read_all(Pool& pool) {
  Session session = pool.session();
  HistoryTransaction tx;
  tx.begin = History::now();
  session.run([&](Transaction& t) {
    tx.ops.clear();
    const Directory& directory = t.read(t.root<Directory>("directory"));
    for (std::size_t i = 0; i < kSlots; ++i) {
      const List& list = t.read(directory.lists[i]);
      tx.read_list(list.name, {list.values.begin(), list.values.begin() + list.count});
      tx.read_register(i, t.read(directory.registers[i]).value);
    }
  });
  tx.end = History::now();
  return tx;
}

void stress(const Setting& setting) {
  INFO(setting.mode.name() << ", " << setting.threads << " threads, " << setting.workers
                           << " sessions that move, seed " << setting.seed);
  TempPath path;
  Options options = tiny_options();
  setting.mode.apply(options);
  // Records that others may flush, and records that only their owners can.
  options.flush = setting.seed % 5 < 2 ? FlushInstruction::clflush : FlushInstruction::automatic;
  options.geometry.max_sessions = 8;
  options.async.group_microseconds = 100;
  options.checkpoint.interval_ms = 1;
  options.checkpoint.threads = static_cast<std::uint32_t>(1 + setting.seed % 3);
  options.serial_after_aborts = setting.seed % 2 == 0 ? 4 : 16;
  Pool pool = Pool::create(path.path(), kTinyPool, options);
  set_up(pool);
  History history;
  for (auto& part : work(pool, setting)) {
    for (auto& tx : part) history.add(std::move(tx));
  }
  history.add(read_all(pool));
  // And once more from the file.
  pool.close();
  REQUIRE(Pool::check(path.path()).sound());
  pool = Pool::open(path.path(), options);
  history.add(read_all(pool));
  const auto anomaly = history.find_anomaly();
  if (anomaly) FAIL(anomaly->name << ": " << anomaly->explanation);
}

void stress_all(int transactions, std::uint64_t seeds) {
  std::uint64_t seed = 0;
  for (std::uint64_t round = 0; round < seeds; ++round) {
    for (const Mode& mode : all_modes()) {
      for (const int threads : {2, 3, 8}) {
        stress({mode, threads, transactions / threads, ++seed});
      }
    }
  }
}

}  // namespace

TEST_CASE("committed transactions have a strict serial order") { stress_all(8000, 1); }

TEST_CASE("committed transactions have a strict serial order whatever the clocks say") {
  struct Apart {
    Apart() { emu::force_unsynchronised_clock(true); }
    ~Apart() { emu::force_unsynchronised_clock(false); }
  } const apart;
  stress_all(2000, 1);
}

TEST_CASE(
    "committed transactions have a strict serial order though sessions move between threads") {
  std::uint64_t seed = 0;
  for (const Mode& mode : all_modes()) {
    for (const int sessions : {1, 2, 3}) {
      constexpr int kTransactions = 2000;
      stress({mode, 4, kTransactions / sessions, ++seed, sessions});
    }
  }
}

TEST_CASE("committed transactions have a strict serial order, at length", "[.full]") {
  stress_all(16000, 5);
}

}  // namespace sp3::test

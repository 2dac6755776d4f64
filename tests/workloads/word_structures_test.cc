// The structures over words against standard containers: on plain memory, and on the engines.
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/temp_path.h"
#include "workloads/rng.h"
#include "workloads/systems/mnemosyne/engine.h"
#include "workloads/systems/quadra/engine.h"
#include "workloads/systems/word_tm/system.h"

using namespace sp3::workloads;
using sp3::test::TempPath;

namespace {

// Words in DRAM without concurrency or persistence.
class Plain {
 public:
  class Tx {
   public:
    static constexpr word_tm::Word kGrain = 8;

    explicit Tx(Plain& memory) : memory_(memory) {}
    [[nodiscard]] std::uint64_t load(word_tm::Word at) const { return memory_.words_.at(at); }
    void load(word_tm::Word at, std::uint64_t* to, std::size_t count) const {
      for (std::size_t i = 0; i < count; ++i) to[i] = load(at + i);
    }
    void store(word_tm::Word at, std::uint64_t value) { memory_.words_.at(at) = value; }
    void store(word_tm::Word at, const std::uint64_t* from, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) store(at + i, from[i]);
    }
    word_tm::Word allocate(std::size_t count) { return memory_.heap_.allocate(*this, 0, count); }
    void release(word_tm::Word at, std::size_t count) {
      memory_.heap_.release(*this, 0, at, count);
    }

   private:
    Plain& memory_;
  };
  struct Client {
    explicit Client(Plain&) {}
  };

  explicit Plain(std::uint64_t words) : words_(words), heap_(words, Tx::kGrain) {
    Tx tx(*this);
    heap_.format(tx);
  }
  bool update(Client&, word_tm::Body<Tx> body) {
    Tx tx(*this);
    return body(tx);
  }
  bool read(Client& client, word_tm::Body<Tx> body) { return update(client, body); }

 private:
  std::vector<std::uint64_t> words_;
  word_tm::Heap heap_;
};

WorkloadSpec small_spec(WorkloadKind kind, std::uint64_t entries) {
  WorkloadSpec spec;
  spec.kind = kind;
  spec.entries = entries;
  spec.entry_size = 16;
  spec.fill = 0;
  return spec;
}

template <class Engine, class W>
std::vector<Item> items_of(Engine& engine, typename Engine::Client& client, const W& structure) {
  std::vector<Item> items;
  word_tm::read(engine, client, [&](typename Engine::Tx& tx) {
    items.clear();
    structure.visit(tx, [&](const Item& item) {
      items.push_back(item);
      return true;
    });
    return true;
  });
  return items;
}

template <class Engine, class W>
std::string check(Engine& engine, typename Engine::Client& client, const W& structure) {
  std::string violation;
  word_tm::read(engine, client, [&](typename Engine::Tx& tx) {
    violation = structure.check_structure(tx);
    return true;
  });
  return violation;
}

// Random inserts and searches beside a std::map.
template <class Engine, class W>
void compare_with_map(Engine& engine, WorkloadKind kind, std::uint64_t keys, unsigned operations) {
  using Tx = typename Engine::Tx;
  typename Engine::Client client(engine);
  word_tm::Map<W> map(small_spec(kind, keys));
  word_tm::update(engine, client, [&](Tx& tx) {
    map.create(tx);
    return true;
  });
  std::map<std::uint64_t, std::uint64_t> model;
  Rng rng(keys);
  for (unsigned i = 0; i < operations; ++i) {
    const std::uint64_t key =
        i % 3 == 0 && i < keys ? i : rng.below(keys);  // runs of rising keys too
    if (rng.below(3) != 0) {
      bool is_new = false;
      word_tm::update(engine, client, [&](Tx& tx) {
        is_new = map.insert(tx, key, i);
        return true;
      });
      CHECK(is_new == model.insert_or_assign(key, i).second);
    } else {
      word_tm::EntryWords value;
      const bool found =
          word_tm::read(engine, client, [&](Tx& tx) { return map.lookup(tx, key, value); });
      const auto expected = model.find(key);
      REQUIRE(found == (expected != model.end()));
      if (found) CHECK((value.tag() == expected->second && value.intact(2)));
    }
    if constexpr (requires(Tx & tx, word_tm::EntryWords & value) { map.scan(tx, 0, 0, value); }) {
      word_tm::EntryWords value;
      const std::uint64_t count = rng.below(70);
      std::uint64_t found = 0;
      word_tm::read(engine, client, [&](Tx& tx) {
        found = map.scan(tx, key, count, value);
        return true;
      });
      auto at = model.lower_bound(key);
      std::uint64_t expected = 0;
      std::uint64_t last = 0;
      for (; at != model.end() && expected < count; ++at, ++expected) last = at->second;
      REQUIRE(found == expected);
      if (found != 0) REQUIRE((value.tag() == last && value.intact(2)));
    }
    if (i % 512 == 0) REQUIRE(check(engine, client, map) == "");
  }
  REQUIRE(check(engine, client, map) == "");
  std::vector<Item> items = items_of(engine, client, map);
  if (kind != WorkloadKind::hashtable) {
    CHECK(std::ranges::is_sorted(items, {}, &Item::key));
  }
  std::ranges::sort(items, {}, &Item::key);
  REQUIRE(items.size() == model.size());
  auto expected = model.begin();
  for (const Item& item : items) {
    CHECK((item.key == expected->first && item.tag == expected->second && item.intact));
    ++expected;
  }
}

template <class Engine>
void compare_with_deque(Engine& engine, unsigned operations) {
  using Tx = typename Engine::Tx;
  typename Engine::Client client(engine);
  word_tm::Queue queue(small_spec(WorkloadKind::queue, 10));
  word_tm::update(engine, client, [&](Tx& tx) {
    queue.create(tx);
    return true;
  });
  std::deque<std::uint64_t> model;
  Rng rng(7);
  for (unsigned i = 0; i < operations; ++i) {
    const bool enqueue = rng.below(2) == 0;
    const Operation operation{enqueue ? OperationKind::enqueue : OperationKind::dequeue, 0, i};
    const bool done =
        word_tm::update(engine, client, [&](Tx& tx) { return queue.execute(tx, operation); });
    CHECK(done == (enqueue || !model.empty()));
    if (enqueue) {
      model.push_back(i);
    } else if (!model.empty()) {
      model.pop_front();
    }
  }
  CHECK(check(engine, client, queue) == "");
  const std::vector<Item> items = items_of(engine, client, queue);
  REQUIRE(items.size() == model.size());
  for (std::size_t i = 0; i < model.size(); ++i)
    CHECK((items[i].tag == model[i] && items[i].intact));
}

template <class Engine>
void compare_with_array(Engine& engine, unsigned operations) {
  using Tx = typename Engine::Tx;
  typename Engine::Client client(engine);
  constexpr std::uint64_t kEntries = 50;
  word_tm::Sps array(small_spec(WorkloadKind::sps, kEntries));
  word_tm::update(engine, client, [&](Tx& tx) {
    array.create(tx);
    array.populate(tx, 0, kEntries);
    return true;
  });
  std::vector<std::uint64_t> model(kEntries);
  for (std::uint64_t i = 0; i < kEntries; ++i) model[i] = i;
  Rng rng(9);
  for (unsigned i = 0; i < operations; ++i) {
    const Operation operation{OperationKind::swap, rng.below(kEntries), rng.below(kEntries)};
    word_tm::update(engine, client, [&](Tx& tx) { return array.execute(tx, operation); });
    std::swap(model[operation.key], model[operation.value]);
  }
  const std::vector<Item> items = items_of(engine, client, array);
  REQUIRE(items.size() == kEntries);
  for (std::size_t i = 0; i < kEntries; ++i) CHECK((items[i].tag == model[i] && items[i].intact));
}

template <class Engine>
void compare_all(Engine& engine, unsigned operations) {
  compare_with_map<Engine, word_tm::HashTable>(engine, WorkloadKind::hashtable, 300, operations);
  compare_with_map<Engine, word_tm::RbTree>(engine, WorkloadKind::rbtree, 2000, operations);
  compare_with_map<Engine, word_tm::BpTree>(engine, WorkloadKind::bptree, 5000, operations);
  compare_with_deque(engine, operations);
  compare_with_array(engine, operations);
}

sp3::Options emulated() {
  sp3::Options options;
  options.memory = sp3::MemoryKind::emulated;
  return options;
}

constexpr std::uint64_t kStoreBytes = 16 << 20;

// Threads move amounts between accounts and look at the sum while they do.
template <class Engine>
void transfer_between_accounts(unsigned threads) {
  using Tx = typename Engine::Tx;
  constexpr std::uint64_t kAccounts = 16;
  constexpr std::uint64_t kEach = 1000;
  const TempPath path("words");
  Engine engine(path.path(), kStoreBytes, emulated());
  word_tm::Word accounts = 0;
  {
    typename Engine::Client client(engine);
    word_tm::update(engine, client, [&](Tx& tx) {
      accounts = tx.allocate(kAccounts);
      for (std::uint64_t i = 0; i < kAccounts; ++i) tx.store(accounts + i, kEach);
      return true;
    });
  }
  const auto sum = [&](Tx& tx) {
    std::uint64_t total = 0;
    for (std::uint64_t i = 0; i < kAccounts; ++i) total += tx.load(accounts + i);
    return total == kAccounts * kEach;
  };
  std::vector<unsigned> wrong(threads, 0);
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      typename Engine::Client client(engine);
      Rng rng(3, t);
      for (unsigned i = 0; i < 2000; ++i) {
        const std::uint64_t from = rng.below(kAccounts);
        const std::uint64_t to = rng.below(kAccounts);
        if (i % 4 == 0) {
          if (!word_tm::read(engine, client, sum)) ++wrong[t];
          continue;
        }
        word_tm::update(engine, client, [&](Tx& tx) {
          tx.store(accounts + from, tx.load(accounts + from) - 1);
          tx.store(accounts + to, tx.load(accounts + to) + 1);
          return true;
        });
      }
      if (client.counters().commits != 2000) ++wrong[t];
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (const unsigned count : wrong) CHECK(count == 0);
  typename Engine::Client client(engine);
  CHECK(word_tm::read(engine, client, sum));
}

// A body that fails has no effect, and what others did meanwhile has.
template <class Engine>
void fail_some() {
  using Tx = typename Engine::Tx;
  const TempPath path("words");
  Engine engine(path.path(), kStoreBytes, emulated());
  typename Engine::Client first(engine);
  word_tm::Word cells = 0;
  word_tm::update(engine, first, [&](Tx& tx) {
    cells = tx.allocate(64);
    for (std::uint64_t i = 0; i < 64; ++i) tx.store(cells + i, 0);
    return true;
  });
  std::vector<unsigned> wrong(3, 0);
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < 3; ++t) {
    workers.emplace_back([&, t] {
      typename Engine::Client client(engine);
      for (unsigned i = 0; i < 500; ++i) {
        try {
          word_tm::update(engine, client, [&](Tx& tx) {
            tx.store(cells + t, tx.load(cells + t) + 1);
            if (i % 5 == t) throw std::runtime_error("on purpose");
            return true;
          });
          if (i % 5 == t) ++wrong[t];
        } catch (const std::runtime_error&) {
          if (i % 5 != t) ++wrong[t];
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (unsigned t = 0; t < 3; ++t) {
    CHECK(wrong[t] == 0);
    CHECK(word_tm::read(engine, first, [&](Tx& tx) { return tx.load(cells + t) == 400; }));
  }
}

template <class Engine>
void fill_up() {
  using Tx = typename Engine::Tx;
  const TempPath path("words");
  Engine engine(path.path(), kStoreBytes, emulated());
  typename Engine::Client client(engine);
  std::uint64_t objects = 0;
  const auto add = [&](Tx& tx) {
    tx.store(tx.allocate(1000), 1);
    return true;
  };
  CHECK_THROWS_AS(
      [&] {
        for (;; ++objects) word_tm::update(engine, client, add);
      }(),
      sp3::Error);
  CHECK(objects > 100);
}

}  // namespace

TEST_CASE("Structures over plain words behave as the standard containers") {
  Plain memory(std::uint64_t{4} << 20);
  compare_all(memory, 6000);
}

TEST_CASE("Structures on quadra behave as the standard containers, also when reopened") {
  const TempPath path("words");
  {
    quadra::Engine engine(path.path(), kStoreBytes, emulated());
    compare_all(engine, 1500);
  }
  quadra::Engine engine(path.path(), emulated());
  compare_all(engine, 300);
}

TEST_CASE("Transfers on quadra keep their sum in sight of every reader") {
  for (const unsigned threads : {2U, 4U}) transfer_between_accounts<quadra::Engine>(threads);
}

TEST_CASE("A body that fails on quadra fails alone") { fail_some<quadra::Engine>(); }

TEST_CASE("A full store of quadra says so") { fill_up<quadra::Engine>(); }

TEST_CASE("Structures on mnemosyne behave as the standard containers, also when reopened") {
  const TempPath path("words");
  {
    mnemosyne::Engine engine(path.path(), kStoreBytes, emulated());
    compare_all(engine, 1500);
  }
  mnemosyne::Engine engine(path.path(), emulated());
  compare_all(engine, 300);
}

TEST_CASE("Transfers on mnemosyne keep their sum in sight of every reader") {
  for (const unsigned threads : {2U, 4U}) transfer_between_accounts<mnemosyne::Engine>(threads);
}

TEST_CASE("A body that fails on mnemosyne fails alone") { fail_some<mnemosyne::Engine>(); }

TEST_CASE("A full store of mnemosyne says so") { fill_up<mnemosyne::Engine>(); }

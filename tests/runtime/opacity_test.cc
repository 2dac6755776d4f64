// Opacity: code inside a transaction never meets a broken invariant, also in attempts that are
// thrown away later. Each thread checks what it reads, in the middle of its transaction.
#include <array>
#include <atomic>

#include <catch2/catch.hpp>

#include "tests/support/pools.h"

namespace sp3::test {
namespace {

struct Cell {
  std::int64_t value = 0;
};

// A list whose length, sum and links are known from its head.
struct Node {
  std::uint64_t number = 0;  // the predecessor's + 1
  std::uint64_t owner = 0;   // offset of the Chain
  Ptr<Node> next;
};
struct Chain {
  std::uint64_t length = 0;
  std::uint64_t first_number = 0;
  Ptr<Node> first;
  Ptr<Node> last;
};

struct World {
  std::array<Ptr<Cell>, 2> twins{};     // always equal
  std::array<Ptr<Cell>, 6> accounts{};  // sum to zero
  std::array<Ptr<Chain>, 2> chains{};   // of 8 nodes together
};

constexpr std::uint64_t kNodes = 8;

World make_world(Session& session) {
  return session.run([](Transaction& tx) {
    World world;
    for (auto& cell : world.twins) cell = tx.make<Cell>();
    for (auto& cell : world.accounts) cell = tx.make<Cell>();
    for (auto& chain : world.chains) chain = tx.make<Chain>();
    for (std::uint64_t i = 0; i < kNodes; ++i) {
      Chain& chain = tx.write(world.chains[0]);
      const auto node = tx.make<Node>(i, world.chains[0].offset(), Ptr<Node>{});
      if (chain.last) tx.write(chain.last).next = node;
      if (!chain.first) chain.first = node;
      chain.last = node;
      ++chain.length;
    }
    return world;
  });
}

class Worker {
 public:
  Worker(const World& world, Random random) : world_(world), random_(random) {}

  // False: an invariant did not hold.
  bool body(Transaction& tx, std::uint64_t seed) {
    Random choice(seed);
    bool good = true;
    for (int i = 0; i < 3; ++i) {
      switch (choice.below(3)) {
        case 0:
          good = twins(tx, choice) && good;
          break;
        case 1:
          good = accounts(tx, choice) && good;
          break;
        case 2:
          good = chains(tx, choice) && good;
          break;
      }
    }
    return good;
  }

  std::uint64_t next_seed() { return random_(); }

 private:
  bool twins(Transaction& tx, Random& choice) {
    const bool swapped = choice.below(2) == 0;
    const std::int64_t one = tx.read(world_.twins[swapped ? 1 : 0]).value;
    const std::int64_t two = tx.read(world_.twins[swapped ? 0 : 1]).value;
    if (choice.below(2) == 0) {
      for (const auto cell : world_.twins) tx.write(cell).value += 1;
    }
    return one == two;
  }

  bool accounts(Transaction& tx, Random& choice) {
    std::int64_t sum = 0;
    for (const auto cell : world_.accounts) sum += tx.read(cell).value;
    if (choice.below(2) == 0) {
      const auto amount = static_cast<std::int64_t>(choice.below(100));
      tx.write(world_.accounts[choice.below(6)]).value -= amount;
      tx.write(world_.accounts[choice.below(6)]).value += amount;
    }
    return sum == 0;
  }

  // Walks both chains, then moves the first node of one to the end of the other: made anew there,
  // so that slots are used again all the time.
  bool chains(Transaction& tx, Random& choice) {
    std::uint64_t nodes = 0;
    for (const auto at : world_.chains) {
      const Chain& chain = tx.read(at);
      std::uint64_t walked = 0;
      Ptr<Node> previous;
      for (Ptr<Node> p = chain.first; p; p = tx.read(p).next) {
        const Node& node = tx.read(p);
        if (node.owner != at.offset() || node.number != chain.first_number + walked) return false;
        previous = p;
        if (++walked > kNodes) return false;
      }
      if (walked != chain.length || previous != chain.last) return false;
      nodes += walked;
    }
    if (nodes != kNodes) return false;
    if (choice.below(2) == 0) return true;
    const std::size_t from = tx.read(world_.chains[0]).length > choice.below(kNodes) ? 0 : 1;
    move_node(tx, world_.chains[from], world_.chains[1 - from]);
    return true;
  }

  static void move_node(Transaction& tx, Ptr<Chain> from, Ptr<Chain> to) {
    if (tx.read(from).length == 0) return;
    Chain& source = tx.write(from);
    const Ptr<Node> old = source.first;
    source.first = tx.read(old).next;
    if (!source.first) source.last = {};
    --source.length;
    ++source.first_number;
    tx.destroy(old);
    Chain& target = tx.write(to);
    const auto node = tx.make<Node>(target.first_number + target.length, to.offset(), Ptr<Node>{});
    if (target.last) {
      tx.write(target.last).next = node;
    } else {
      target.first = node;
    }
    target.last = node;
    ++target.length;
  }

  const World world_;
  Random random_;
};

struct Setting {
  Mode mode;
  int threads;
  int transactions;
  std::uint64_t seed;
};

void stress(const Setting& setting) {
  INFO(setting.mode.name() << ", " << setting.threads << " threads, seed " << setting.seed);
  TempPath path;
  Options options = tiny_options();
  setting.mode.apply(options);
  // Records that others may flush, and records that only their owners can.
  options.flush = setting.seed % 5 < 2 ? FlushInstruction::clflush : FlushInstruction::automatic;
  options.async.group_microseconds = 100;
  options.checkpoint.interval_ms = 1;
  Pool pool = Pool::create(path.path(), kTinyPool, options);
  Session main = pool.session();
  const World world = make_world(main);
  std::atomic<int> broken{0};
  std::atomic<int> unexpected{0};
  std::atomic<std::uint64_t> attempts{0};
  on_threads(setting.threads, [&](int number) {
    Session session = pool.session();
    Worker worker(world, Random(setting.seed * 100 + static_cast<std::uint64_t>(number)));
    for (int i = 0; i < setting.transactions && broken == 0; ++i) {
      const std::uint64_t seed = worker.next_seed();
      const auto body = [&](Transaction& tx) {
        ++attempts;
        if (!worker.body(tx, seed)) ++broken;
      };
      const auto error = error_of([&] {
        if (setting.mode.async) {
          (void)session.run_async(body);
        } else {
          session.run(body);
        }
        return 0;
      });
      // A stale pointer must be retried, never reported.
      if (error) ++unexpected;
    }
    session.close();
  });
  CHECK(broken == 0);
  CHECK(unexpected == 0);
  CHECK(attempts >= static_cast<std::uint64_t>(setting.threads * setting.transactions));
  // Checked outside: the checkpointer may still make an attempt start over, and the signal that
  // says so must reach run(), not CHECK.
  const bool holds = main.run([&](Transaction& tx) {
    Worker last(world, Random(1));
    bool good = true;
    for (std::uint64_t seed = 0; seed < 20; ++seed) good = last.body(tx, seed) && good;
    return good;
  });
  CHECK(holds);
  main.close();
  pool.close();
  CHECK(Pool::inspect(path.path()).objects == 1 + 2 + 6 + 2 + kNodes);
}

void stress_all(int transactions, std::uint64_t seeds) {
  std::uint64_t seed = 0;
  for (std::uint64_t round = 0; round < seeds; ++round) {
    for (const Mode& mode : all_modes()) {
      for (const int threads : {2, 5}) stress({mode, threads, transactions / threads, ++seed});
    }
  }
}

}  // namespace

TEST_CASE("no attempt ever sees a broken invariant") { stress_all(12000, 1); }

TEST_CASE("no attempt ever sees a broken invariant, at length", "[.full]") { stress_all(40000, 3); }

}  // namespace sp3::test

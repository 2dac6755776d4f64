// How a container is tested: the same operations run on it and on a model made of std containers,
// and whatever can be seen of the two must agree, also across reopening, aborts and crashes.
//
// A Subject joins the two:
//   Subject::Model                          the model, a value
//   Subject::create(tx)                     makes the container and binds it to the root "subject"
//   subject.open(tx)                        finds it there
//   subject.draw(rng, step, steps)          an Operation, from the generator and its arguments
//   alone subject.apply(tx, operation)            does it; returns what the caller of the container
//   learns subject.apply(model, operation)         the same on the model
//   subject.difference(tx, model)           "" or how invariants or contents disagree
#pragma once

#include <sys/types.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sp3/sp3.h>

#include "tests/support/temp_path.h"

namespace sp3::test {

// A 64-bit generator whose sequence is the same everywhere (SplitMix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t operator()() noexcept {
    std::uint64_t word = state_ += 0x9e3779b97f4a7c15ULL;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ULL;
    word = (word ^ word >> 27) * 0x94d049bb133111ebULL;
    return word ^ word >> 31;
  }
  std::uint64_t below(std::uint64_t limit) noexcept { return (*this)() % limit; }
  bool chance(unsigned percent) noexcept { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

// The seed of this run: SP3_TEST_SEED, or always the same.
std::uint64_t seed();

// The shape of a pool.
struct Shape {
  std::string name;
  Options options;
  std::uint64_t size = 0;
};
Shape tiny_shape();     // slabs and log segments of 4 KiB: everything overflows soon
Shape default_shape();  // what most programs use

struct Operation {
  unsigned kind = 0;
  std::uint64_t key = 0;
  std::uint64_t value = 0;
};

// What an operation tells its caller, condensed.
using Observation = std::optional<std::uint64_t>;

// A pool in a file of its own, and one session. No checkpoint runs in the background: one could
// make an attempt start over in the middle of a REQUIRE, which would report the signal that says
// so.
class World {
 public:
  explicit World(const Shape& shape)
      : options_(quiet(shape.options)), pool_(Pool::create(path_.path(), shape.size, options_)) {
    session_.emplace(pool_.session());
  }

  template <class F>
  auto run(F&& body) {
    return session_->run(std::forward<F>(body));
  }
  void reopen() {
    close();
    pool_ = Pool::open(path_.path(), options_);
    session_.emplace(pool_.session());
  }
  void close() {
    session_->close();
    session_.reset();
    pool_.close();
  }
  void checkpoint() { pool_.checkpoint(); }
  Session new_session() { return pool_.session(); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_.path(); }
  [[nodiscard]] const Options& options() const { return options_; }

 private:
  static Options quiet(Options options) {
    options.checkpoint.background = false;
    return options;
  }

  TempPath path_{"containers"};
  Options options_;
  Pool pool_;
  std::optional<Session> session_;
};

// The objects of a world that is closed by this, besides those that every pool has.
inline std::uint64_t objects_left(World& world) {
  world.close();
  constexpr std::uint64_t kRoots = 1;  // their directory
  return Pool::check(world.path()).objects - kRoots;
}

struct Abort : std::runtime_error {
  Abort() : std::runtime_error("the test aborts this transaction") {}
};

// What check_invariants says of a container opened after `damage(tx)`, which is then undone.
template <class Container, class Damage>
std::string reported_after(World& world, const Container& container, Damage&& damage) {
  std::string report;
  REQUIRE_THROWS_AS(world.run([&](Transaction& tx) {
    REQUIRE(container.check_invariants(tx) == "");
    damage(tx);
    report = Container::open(tx, container.header()).check_invariants(tx);
    throw Abort();
  }),
                    Abort);
  return report;
}

// Runs `steps` random transactions of one to four operations on a new subject. Some are aborted
// after their work is done, now and then the pool is reopened or checkpointed.
template <class Subject>
void run_random(const Shape& shape, Subject subject, unsigned steps) {
  const std::uint64_t used_seed = seed();
  INFO("SP3_TEST_SEED=" << used_seed << ", " << shape.name << " pool");
  World world(shape);
  Random random(used_seed);
  typename Subject::Model model;
  world.run([&](Transaction& tx) { Subject::create(tx); });
  world.run([&](Transaction& tx) { subject.open(tx); });
  subject.reset(model);

  for (unsigned step = 0; step < steps; ++step) {
    INFO("step " << step);
    std::vector<Operation> operations;
    const std::uint64_t count = random.chance(80) ? 1 : 1 + random.below(4);
    while (operations.size() < count) operations.push_back(subject.draw(random, step, steps));

    const bool abort = random.chance(3);
    std::vector<Observation> seen;
    const auto body = [&](Transaction& tx) {
      seen.clear();
      for (const Operation& operation : operations) seen.push_back(subject.apply(tx, operation));
      if (abort) throw Abort();
    };
    if (abort) {
      REQUIRE_THROWS_AS(world.run(body), Abort);
    } else {
      world.run(body);
      for (std::size_t i = 0; i < count; ++i) {
        INFO("operation " << operations[i].kind << ", key " << operations[i].key);
        REQUIRE(seen[i] == subject.apply(model, operations[i]));
      }
    }
    const bool reopen = random.below(steps) < 6;
    if (reopen) {
      world.reopen();
      world.run([&](Transaction& tx) { subject.open(tx); });
    } else if (random.below(steps) < 6) {
      world.checkpoint();
    }
    if (reopen || (abort && random.chance(30)) || step % 97 == 0 || step + 1 == steps) {
      REQUIRE(world.run([&](Transaction& tx) { return subject.difference(tx, model); }) == "");
    }
  }
  world.close();
}

// Forks a child that works and reports, lets it live for a while after its first report, and kills
// it. Returns how many reports arrived. `work(report)` runs in the child; what it throws is
// printed. REQUIRES: no pool is open in this process.
std::uint64_t run_and_kill(const std::function<void(const std::function<void()>&)>& work,
                           std::uint64_t microseconds);

// Kills a child in the middle of its work `rounds` times, on one pool. Operation i of the history
// is a function of the seed and i, so the number of acknowledged operations is all that must be
// told.
template <class Subject>
void run_crashes(const Shape& shape, Subject subject, unsigned rounds) {
  const std::uint64_t used_seed = seed();
  INFO("SP3_TEST_SEED=" << used_seed << ", " << shape.name << " pool");
  Options options = shape.options;
  options.recovery.threads = 1;  // the next child is forked from a process without worker threads
  const TempPath path("containers-crash");
  typename Subject::Model model;
  {
    Pool pool = Pool::create(path.path(), shape.size, options);
    Session session = pool.session();
    session.run([&](Transaction& tx) { Subject::create(tx); });
    subject.reset(model);
    session.close();
    pool.close();
  }
  const auto operation = [&](std::uint64_t i) {
    Random random(used_seed + i * 0x2545f4914f6cdd1dULL);
    return subject.draw(random, 1, 2);
  };
  std::uint64_t done = 0;  // operations that are in `model`
  Random random(used_seed);
  for (unsigned round = 0; round < rounds; ++round) {
    INFO("round " << round << " starts at operation " << done);
    const auto work = [&](const std::function<void()>& report) {
      Pool pool = Pool::open(path.path(), options);
      Session session = pool.session();
      session.run([&](Transaction& tx) { subject.open(tx); });
      for (std::uint64_t i = done; i < done + 200000; ++i) {
        session.run([&](Transaction& tx) { subject.apply(tx, operation(i)); });
        report();
      }
    };
    const std::uint64_t acknowledged = run_and_kill(work, 100 + random.below(20000));
    INFO(acknowledged << " operations were acknowledged");
    REQUIRE(acknowledged > 0);
    for (std::uint64_t i = 0; i < acknowledged; ++i) subject.apply(model, operation(done++));

    Pool pool = Pool::open(path.path(), options);
    Session session = pool.session();
    std::string difference = session.run([&](Transaction& tx) {
      subject.open(tx);
      return subject.difference(tx, model);
    });
    if (!difference.empty()) {  // then the one in flight must be there
      INFO("without the operation in flight: " << difference);
      subject.apply(model, operation(done++));
      difference = session.run([&](Transaction& tx) { return subject.difference(tx, model); });
      REQUIRE(difference == "");
    }
    session.close();
    pool.close();
  }
}

// Runs both functions at once, each on a session of its own, and passes on what they throw.
void run_two_threads(World& world, const std::function<void(Session&)>& first,
                     const std::function<void(Session&)>& second);

}  // namespace sp3::test

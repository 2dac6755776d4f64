// Checkpoints whose objects several threads bring home.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <thread>
#include <vector>

#include <unistd.h>

#include <catch2/catch.hpp>

#include "emu/memory.h"
#include "tests/support/errors.h"
#include "tests/support/pools.h"

namespace sp3::test {
namespace {

struct Small {
  std::uint64_t value = 0;
};
struct Large {
  std::uint64_t value = 0;
  std::uint64_t copies[36] = {};

  void set(std::uint64_t to) {
    value = to;
    for (std::uint64_t& copy : copies) copy = to;
  }
  [[nodiscard]] bool is_whole() const {
    for (const std::uint64_t copy : copies) {
      if (copy != value) return false;
    }
    return true;
  }
};

constexpr std::uint64_t kPool = std::uint64_t{32} << 20;
// More small objects to a slab than a carrier takes at a time, and several slabs of large ones.
constexpr std::uint64_t kSmall = 12'000;
constexpr std::uint64_t kLarge = 3'000;

Options options_with(std::uint32_t threads, MemoryKind memory = MemoryKind::emulated) {
  Options options;
  options.memory = memory;
  options.geometry.slab_size = 256 << 10;
  options.checkpoint = {.interval_ms = 0, .background = false, .threads = threads};
  options.recovery.threads = 1;
  return options;
}

struct Objects {
  std::vector<Ptr<Small>> small;
  std::vector<Ptr<Large>> large;

  explicit Objects(Session& session) {
    constexpr std::uint64_t kAtOnce = 100;
    for (std::uint64_t i = 0; i < kSmall; i += kAtOnce) {
      session.run([&](Transaction& tx) {
        small.resize(i);
        for (std::uint64_t j = i; j < i + kAtOnce; ++j) small.push_back(tx.make<Small>(j));
      });
    }
    for (std::uint64_t i = 0; i < kLarge; i += kAtOnce) {
      session.run([&](Transaction& tx) {
        large.resize(i);
        for (std::uint64_t j = i; j < i + kAtOnce; ++j) {
          large.push_back(tx.make<Large>());
          tx.write(large.back()).set(j);
        }
      });
    }
  }

  // Every seventh goes, every third changes.
  void change(Session& session) {
    for (std::uint64_t i = 0; i < kSmall; ++i) {
      if (i % 7 == 0) session.run([&](Transaction& tx) { tx.destroy(small[i]); });
      if (i % 7 != 0 && i % 3 == 0) {
        session.run([&](Transaction& tx) { tx.write(small[i]).value = ~i; });
      }
    }
    for (std::uint64_t i = 0; i < kLarge; i += 3) {
      session.run([&](Transaction& tx) { tx.write(large[i]).set(~i); });
    }
  }

  // How many are not as change() has left them.
  [[nodiscard]] std::uint64_t wrong(Session& session) const {
    std::uint64_t wrong = 0;
    const auto wanted = [](std::uint64_t i) { return i % 3 == 0 ? ~i : i; };
    for (std::uint64_t i = 0; i < kSmall; ++i) {
      if (i % 7 == 0) continue;
      const auto found = session.run([&](Transaction& tx) { return tx.read(small[i]).value; });
      if (found != wanted(i)) ++wrong;
    }
    for (std::uint64_t i = 0; i < kLarge; ++i) {
      const Large found = session.run([&](Transaction& tx) { return tx.read(large[i]); });
      if (found.value != wanted(i) || !found.is_whole()) ++wrong;
    }
    return wrong;
  }
};

}  // namespace

TEST_CASE("several threads bring home what one does") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    std::vector<std::uint64_t> bytes;
    std::vector<std::uint64_t> found;  // objects in the file
    for (const std::uint32_t threads : {1U, 2U, 7U}) {
      INFO(to_string(memory) << ", " << threads << " threads");
      const Options options = options_with(threads, memory);
      TempPath path;
      TempPath copy;
      Pool pool = Pool::create(path.path(), kPool, options);
      Session session = pool.session();
      Objects objects(session);
      pool.checkpoint();
      objects.change(session);
      pool.checkpoint();
      CHECK(objects.wrong(session) == 0);
      bytes.push_back(pool.statistics().checkpoint_bytes);
      // As a killed process would leave it: all is at home, for nothing came later.
      std::filesystem::copy_file(path.path(), copy.path());
      Pool killed = Pool::open(copy.path(), options);
      CHECK(killed.recovery_report().replayed == 0);
      Session of_killed = killed.session();
      CHECK(objects.wrong(of_killed) == 0);
      of_killed.close();
      killed.close();
      found.push_back(Pool::check(copy.path()).objects);
    }
    CHECK(bytes == std::vector<std::uint64_t>(3, bytes[0]));
    CHECK(found == std::vector<std::uint64_t>(3, found[0]));
  }
}

TEST_CASE("several threads bring objects home under their writers") {
  constexpr std::size_t kObjects = 600;
  constexpr std::uint64_t kSum = kObjects * 1000;
  Options options = options_with(3);
  options.geometry.log_size = 1 << 20;
  TempPath path;
  Pool pool = Pool::create(path.path(), kPool, options);
  std::vector<Ptr<Large>> objects;
  {
    Session session = pool.session();
    session.run([&](Transaction& tx) {
      objects.clear();
      for (std::size_t i = 0; i < kObjects; ++i) {
        objects.push_back(tx.make<Large>());
        tx.write(objects.back()).set(1000);
      }
    });
  }
  std::atomic<int> writing{2};
  std::atomic<int> torn{0};
  on_threads(3, [&](int thread) {
    if (thread == 2) {
      while (writing != 0) pool.checkpoint();
      return;
    }
    Session session = pool.session();
    Random random(static_cast<std::uint64_t>(thread) + 1);
    for (int i = 0; i < 10'000; ++i) {
      const auto from = objects[random.below(kObjects)];
      const auto to = objects[random.below(kObjects)];
      session.run([&](Transaction& tx) {
        const Large giver = tx.read(from);
        if (!giver.is_whole()) ++torn;
        if (from == to || giver.value == 0) return;
        tx.write(from).set(giver.value - 1);
        tx.write(to).set(tx.read(to).value + 1);
      });
    }
    session.close();
    --writing;
  });
  const auto sum = [&](Session& session) {
    return session.run([&](Transaction& tx) {
      std::uint64_t all = 0;
      for (const auto object : objects) all += tx.read(object).value;
      return all;
    });
  };
  CHECK(torn == 0);
  {
    Session session = pool.session();
    CHECK(sum(session) == kSum);
  }
  pool.close();
  pool = Pool::open(path.path(), options);
  Session session = pool.session();
  CHECK(sum(session) == kSum);
}

TEST_CASE("a fence that fails in one of several threads fails the checkpoint") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    for (std::uint64_t countdown = 1; countdown <= 7; ++countdown) {
      INFO(to_string(memory) << ", fence " << countdown);
      const Options options = options_with(3, memory);
      TempPath path;
      std::vector<Ptr<Large>> objects;
      {
        Pool pool = Pool::create(path.path(), kPool, options);
        Session session = pool.session();
        session.run([&](Transaction& tx) {
          objects.clear();
          for (std::uint64_t i = 0; i < 3000; ++i) {
            objects.push_back(tx.make<Large>());
            tx.write(objects.back()).set(i);
          }
        });
        emu::inject_io_error(EIO, countdown);
        const auto error = error_of([&] {
          pool.checkpoint();
          return 0;
        });
        emu::inject_io_error(0, 0);
        // The last of the seven may not be met: not every thread need have found work.
        if (countdown <= 5) REQUIRE(error);
        if (error) CHECK(error->code() == ErrorCode::outcome_unknown);
      }
      Pool pool = Pool::open(path.path(), options);
      Session session = pool.session();
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; i < objects.size(); ++i) {
        const Large found = session.run([&](Transaction& tx) { return tx.read(objects[i]); });
        if (found.value != i || !found.is_whole()) ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
}

#ifndef __SANITIZE_THREAD__  // which starts none in a child
TEST_CASE("a program that waits for a signal which it blocked after it opened a pool gets it") {
  const TempPath path;
  CHECK(in_child([&] {
          Options options;
          options.checkpoint.interval_ms = 1;
          Pool pool = Pool::create(path.path(), kPool, options);
          Session session = pool.session();
          const Ticket ticket = session.run_async([](Transaction& tx) { tx.make<Small>(1U); });
          // The flusher's work, and the checkpointer's: both have begun.
          while (!ticket.ready() || pool.statistics().checkpoints == 0) std::this_thread::yield();
          sigset_t wanted;
          ::sigemptyset(&wanted);
          ::sigaddset(&wanted, SIGTERM);
          ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
          ::kill(::getpid(), SIGTERM);  // ends the process if any thread takes it
          int found = 0;
          return ::sigwait(&wanted, &found) == 0 && found == SIGTERM ? 0 : 1;
        }) == 0);
}
#endif

}  // namespace sp3::test

// What the process around a pool does meanwhile: it ends by exit(), signals arrive, and others write
// what somebody looks at.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/runtime/one_cell.h"

namespace sp3::test {
namespace {

using Cell = OneCell::Cell;

// Its value stands in it many times.
struct Block {
  std::array<std::uint64_t, 32> words{};
};

bool is_all(const Block& block, std::uint64_t value) {
  return std::ranges::all_of(block.words, [&](std::uint64_t word) { return word == value; });
}

// How often SIGUSR1 has come. Its handler lets system calls fail with EINTR.
std::atomic<std::uint64_t> arrivals{0};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class InterruptingSignal {
 public:
  InterruptingSignal() {
    arrivals = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { arrivals.fetch_add(1, std::memory_order_relaxed); };
    REQUIRE(::sigaction(SIGUSR1, &action, &before_) == 0);
  }
  ~InterruptingSignal() { ::sigaction(SIGUSR1, &before_, nullptr); }
  InterruptingSignal(const InterruptingSignal&) = delete;
  InterruptingSignal& operator=(const InterruptingSignal&) = delete;

 private:
  struct sigaction before_ {};
};

}  // namespace

TEST_CASE("exit() closes a pool and a session that are static") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    TempPath path;
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      static Pool pool = Pool::create(path.path(), kTinyPool, quiet_options(memory));
      static Session session = pool.session();
      session.run([](Transaction& tx) { tx.set_root("cell", tx.make<Cell>(5U)); });
      // In a group that nobody has flushed; what was acknowledged of it is only that it runs.
      (void)session.run_async([](Transaction& tx) { tx.write(tx.root<Cell>("cell")).value = 6; });
      std::exit(3);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 3);
    CHECK(Pool::inspect(path.path()).clean);
    Pool pool = Pool::open(path.path(), quiet_options(memory));
    Session session = pool.session();
    CHECK(session.run([](Transaction& tx) { return tx.read(tx.root<Cell>("cell")).value; }) == 6);
  }
}

TEST_CASE("signals that interrupt system calls disturb no transaction") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    // Checkpoints, waits for log space and background threads are in it.
    OneCell p(tiny_options(memory));
    const InterruptingSignal signal;
    std::atomic<bool> done{false};
    std::thread writer([&] {
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
      for (std::uint64_t i = 1; std::chrono::steady_clock::now() < end; ++i) {
        Ticket ticket = p.set_async(2 * i);
        ticket.wait();
        p.set(2 * i + 1);
        if (i % 8 == 0) p.pool.checkpoint();
      }
      done = true;
    });
    while (!done) {
      ::pthread_kill(writer.native_handle(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    writer.join();
    CHECK(arrivals > 0);
    CHECK(p.value() % 2 == 1);
    p.session.close();
    p.pool.close();
    CHECK(Pool::check(p.path.path()).sound());
  }
}

TEST_CASE("what a body looks at stays as it was, whoever writes it and brings it home meanwhile") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    OneCell p(quiet_options(memory));
    const auto block = p.session.run([](Transaction& tx) { return tx.make<Block>(); });
    Session other = p.pool.session();
    constexpr std::uint64_t kWrites = 10;
    std::uint64_t last = 0;
    for (std::uint64_t round = 1; round <= 10; ++round) {
      p.pool.checkpoint();  // so that the first of two attempts looks at the home
      int attempts = 0;
      std::thread carrier;
      p.session.run([&](Transaction& tx) {
        const Block& seen = tx.read(block);
        const std::uint64_t before = last;
        CHECK(is_all(seen, before));
        if (++attempts > 1) return;
        // Few enough that none needs a checkpoint, which would wait for this body.
        std::thread([&] {
          for (std::uint64_t i = 1; i <= kWrites; ++i) {
            other.run([&](Transaction& tx2) { tx2.write(block).words.fill(100 * round + i); });
          }
        }).join();
        last = 100 * round + kWrites;
        // It waits for this body before it stores over what is seen here.
        carrier = std::thread([&] { p.pool.checkpoint(); });
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        CHECK(is_all(seen, before));
      });
      carrier.join();
      CHECK(attempts <= 2);
    }
  }
}

}  // namespace sp3::test

// Threads that are cancelled (pthread_cancel): in their own code, and nowhere else.
#include <atomic>
#include <functional>
#include <optional>

#include <pthread.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/runtime/cells.h"

namespace sp3::test {
namespace {

// A thread that may be cancelled, and whether it was. A std::thread would not say.
class Cancellable {
 public:
  explicit Cancellable(std::function<void()> body) : body_(std::move(body)) {
    const auto call = [](void* self) -> void* {
      static_cast<Cancellable*>(self)->body_();
      return nullptr;
    };
    REQUIRE(::pthread_create(&thread_, nullptr, call, this) == 0);
  }
  void cancel() const { ::pthread_cancel(thread_); }
  bool ends_cancelled() const {
    void* result = nullptr;
    return ::pthread_join(thread_, &result) == 0 && result == PTHREAD_CANCELED;
  }

 private:
  const std::function<void()> body_;
  pthread_t thread_{};
};

void ask_to_be_cancelled() { ::pthread_cancel(::pthread_self()); }

}  // namespace

TEST_CASE("a thread that is to be cancelled makes durable what it commits, and is in a body") {
  for (const Mode& mode : all_modes()) {
    INFO(mode.name());
    Options options = quiet_options();
    mode.apply(options);
    Cells p(options);
    Session session = p.pool.session();
    const auto add = [&](Transaction& tx) { tx.write(p.cells[0]).value += 1; };
    const Cancellable thread([&] {
      ask_to_be_cancelled();
      if (mode.async) {
        session.run_async(add).wait();
        (void)session.run_async(add);
        session.flush();
      } else {
        session.run(add);
        session.run(add);
      }
      session.run([&](Transaction& tx) {
        add(tx);
        ::pthread_testcancel();
      });
    });
    CHECK(thread.ends_cancelled());
    session.run([&](Transaction& tx) { CHECK(p.read(tx, 0) == 2); });
    session.close();
    p.pool.checkpoint();  // nothing is pinned
  }
}

// Wherever it happens to be.
TEST_CASE("a thread that runs one transaction after the other is cancelled in one of them") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    Options options = tiny_options(memory);
    Cells p(options);
    Session sessions[2] = {p.pool.session(), p.pool.session()};
    std::atomic<std::int64_t> committed[2] = {};
    const auto go_on = [&](int which) {
      while (true) {
        sessions[which].run([&](Transaction& tx) {
          tx.write(p.cells[which]).value += 1;
          ::pthread_testcancel();
        });
        ++committed[which];
      }
    };
    const Cancellable one([&] { go_on(0); });
    const Cancellable other([&] { go_on(1); });
    while (committed[0] < 20 || committed[1] < 20) ::usleep(100);
    one.cancel();
    other.cancel();
    CHECK(one.ends_cancelled());
    CHECK(other.ends_cancelled());
    sessions[0].run([&](Transaction& tx) {
      CHECK(p.read(tx, 0) == committed[0]);
      CHECK(p.read(tx, 1) == committed[1]);
    });
  }
}

TEST_CASE("a thread that waits for log space is cancelled when it has got it") {
  Cells p(quiet_options());
  Session session = p.pool.session();
  std::atomic<std::int64_t> committed{0};
  const auto go_on = [&] {
    while (true) {
      session.run([&](Transaction& tx) {
        tx.write(p.cells[0]).value += 1;
        ::pthread_testcancel();
      });
      ++committed;
    }
  };
  std::optional<Cancellable> thread;
  p.session.run([&](Transaction& tx) {
    (void)p.read(tx, 1);  // its end is what a checkpoint waits for
    if (!thread) thread.emplace(go_on);
    while (session.statistics().aborts_log_full == 0) ::usleep(100);
    ::usleep(20'000);  // long enough that it sleeps
    thread->cancel();
    ::usleep(20'000);
  });
  CHECK(thread->ends_cancelled());
  session.run([&](Transaction& tx) { CHECK(p.read(tx, 0) == committed); });
}

TEST_CASE("a thread that is to be cancelled makes, opens and closes pools all the same") {
  for (const auto memory : {MemoryKind::emulated, MemoryKind::file}) {
    Options options = tiny_options(memory);
    options.checkpoint.threads = 2;
    options.recovery.threads = 2;
    const TempPath path;
    bool done = false;
    const Cancellable thread([&] {
      ask_to_be_cancelled();
      {
        Pool pool = Pool::create(path.path(), kTinyPool, options);
        Session session = pool.session();
        session.run([](Transaction& tx) { tx.set_root("cell", tx.make<Cell>()); });
        pool.checkpoint();
        session.close();
        pool.close();
        (void)Pool::inspect(path.path());
        (void)Pool::check(path.path());
        const Pool left_open = Pool::open(path.path(), options);
      }
      done = true;
      ::pthread_testcancel();
    });
    CHECK(thread.ends_cancelled());
    CHECK(done);
  }
}

}  // namespace sp3::test

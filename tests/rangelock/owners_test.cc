// The owner of a thread that names none: from its first use to the end of the thread, of the
// process, or in a child made by fork. And owners that such a child makes.
#include <catch2/catch.hpp>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>

#include <pthread.h>
#include <unistd.h>

#include "tests/rangelock/support.h"
#include "tests/support/errors.h"

using namespace sp3;
using namespace sp3::tests;
using sp3::test::in_child;

namespace {

// Acts in its destructor.
struct Last {
  std::function<void()> act;
  ~Last() {
    if (act) act();
  }
};
thread_local Last first_of_thread;
thread_local Last second_of_thread;

template <class Lock>
void lock_and_unlock(Lock& lock) {
  const RangeGuard guard(lock, 0, 10);
}

std::size_t owners() { return RangeLockDomain::process().statistics().owners; }

// In a child that ends by exit(): only what this test makes. The parent's output is not written
// twice.
int exit_code(const std::function<void()>& body) {
  return in_child(
      [&]() -> int {
        ::close(STDOUT_FILENO);
        ::close(STDERR_FILENO);
        body();
        std::exit(0);
      },
      20);
}

}  // namespace

TEMPLATE_TEST_CASE("destructors of thread_locals lock", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  const std::size_t before = owners();
  for (int i = 0; i < 3; ++i) {
    int had = 0;
    std::thread([&] {
      const auto use = [&] {
        // Narrow and wide ranges, more than a batch of nodes.
        for (std::uint64_t at = 0; at < 200; ++at) {
          RangeHandle handle = lock->lock(at, at + 1 + at % 2 * 1000);
          had += RangeOwner::this_thread().held() == 1 ? 1 : 0;
          lock->unlock(handle);
        }
      };
      second_of_thread.act = use;
      first_of_thread.act = use;
      use();
    }).join();
    CHECK(had == 600);
    CHECK(lock->holders().empty());
  }
  CHECK(owners() == before);
}

TEMPLATE_TEST_CASE("a thread that ends while it holds a range leaves it held", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  RangeHandle handle;
  std::thread([&] { handle = lock->lock(1, 2); }).join();
  CHECK_FALSE(is_free(*lock, 0, 10));
  lock->unlock(handle);
  CHECK(is_free(*lock, 0, 10));

  // Unless a destructor of its own unlocks it.
  const std::size_t before = owners();
  std::thread([&] {
    first_of_thread.act = [&] { lock->unlock(handle); };
    handle = lock->lock(1, 2);
  }).join();
  CHECK(is_free(*lock, 0, 10));
  CHECK(owners() == before);
}

// Of two keys one comes first. Each destructor is called again where its key has a value again.
TEMPLATE_TEST_CASE("destructors of pthread keys lock", "", SP3_OUR_RANGE_LOCKS) {
  struct Late {
    TestType* lock;
    pthread_key_t key;
    int rounds;
  };
  const auto lock = make_lock<TestType>();
  const std::size_t before = owners();
  Late late{lock.get(), {}, 0};
  REQUIRE(::pthread_key_create(&late.key, [](void* of_thread) {
            Late& self = *static_cast<Late*>(of_thread);
            lock_and_unlock(*self.lock);
            if (++self.rounds < 2) ::pthread_setspecific(self.key, of_thread);
          }) == 0);
  std::thread([&] {
    ::pthread_setspecific(late.key, &late);
    lock_and_unlock(*lock);
  }).join();
  CHECK(late.rounds == 2);
  CHECK(owners() == before);
  ::pthread_key_delete(late.key);
}

TEMPLATE_TEST_CASE("a destructor of a static locks", "", SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  CHECK(exit_code([&] {
          static const Last last{[&] {
            const RangeGuard guard(*lock, 0, 10);
            const bool held = RangeOwner::this_thread().held() == 1 && lock->holders().size() == 1;
            ::_exit(held ? 3 : 4);
          }};
          const RangeGuard guard(*lock, 5, 50'000);  // the owner that has ended by then
        }) == 3);
}

TEMPLATE_TEST_CASE("exit inside a critical section ends the process with its code", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto lock = make_lock<TestType>();
  const auto exit_inside = [&] {
    const RangeGuard guard(*lock, 0, 10);
    std::exit(3);
  };
  CHECK(exit_code(exit_inside) == 3);
  CHECK(exit_code([&] { std::thread(exit_inside).join(); }) == 3);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // which hang themselves
TEMPLATE_TEST_CASE("a child of a process with several threads has locks in a domain of its own", "",
                   SP3_OUR_RANGE_LOCKS) {
  const auto inherited = make_lock<TestType>();
  lock_and_unlock(*inherited);  // so that exit() finds an owner of the parent's
  std::atomic<bool> stop{false};
  std::thread parents([&] {
    run_threads(3, [&](unsigned) {
      while (!stop) {
        RangeOwner owner;  // takes and leaves the domain's mutex
        const RangeGuard guard(*inherited, owner, 0, 10);
        static_cast<void>(inherited->holders());
      }
    });
  });
  int failed = 0;
  for (int i = 0; i < 50; ++i) {
    const int code = exit_code([] {
      RangeLockDomain domain;
      const auto lock = make_lock<TestType>({.domain = &domain});
      RangeOwner one(1, domain);
      RangeHandle handle = lock->lock(one, 0, 10);
      std::thread other([&] {
        RangeOwner two(2, domain);
        lock->unlock(lock->lock(two, 5, 5000));  // waits
      });
      wait_until([&] { return lock->waiters().size() == 1; });
      lock->unlock(handle);
      other.join();
      lock->close();
    });
    failed += code == 0 ? 0 : 1;
  }
  stop = true;
  parents.join();
  CHECK(failed == 0);
}
#endif

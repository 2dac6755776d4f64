#include "base/process.h"

#include <pthread.h>
#include <unistd.h>

namespace sp3::base {

namespace {

// Before the program's own global objects are made, one of which may be a pool.
[[gnu::constructor(201)]] void count_forks() noexcept {
  ::pthread_atfork(nullptr, nullptr, [] { detail::forks.fetch_add(1, std::memory_order_relaxed); });
}

}  // namespace

Process Process::current() noexcept { return {::getpid(), fork_generation()}; }

}  // namespace sp3::base

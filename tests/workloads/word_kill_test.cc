// The re-implemented peers under several threads: a child is killed while they run; what it leaves
// is opened again and is whole. That nothing acknowledged is lost is kill_test.cc's, with one
// thread.
#include <atomic>
#include <csignal>
#include <memory>
#include <new>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "tests/workloads/support.h"
#include "workloads/system.h"

using namespace sp3::workloads;
using sp3::test::small_options;
using sp3::test::TempPath;

namespace {

constexpr unsigned kThreads = 3;

// Runs all threads' operations until it is killed.
[[noreturn]] void work(std::string_view name, const WorkloadSpec& spec,
                       const SystemOptions& options, std::atomic<std::uint64_t>& done) {
  const auto system = make_system(name);
  system->open(spec, options);
  const Zipf zipf(spec.entries, spec.zipf);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      OperationStream stream(spec, zipf, t);
      const std::unique_ptr<Client> client = system->connect();
      for (;;) {
        client->execute(stream.next());
        done.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (;;) ::pause();
}

void kill_once(std::string_view name, const WorkloadSpec& spec, std::uint64_t after) {
  CAPTURE(name, to_string(spec.kind), after);
  const TempPath path("kill");
  const SystemOptions options = small_options(name, path);
  {
    const auto system = make_system(name);
    system->create(spec, options);
    system->populate();
    system->close();
  }
  using Count = std::atomic<std::uint64_t>;
  void* const shared =
      ::mmap(nullptr, sizeof(Count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  Count& done = *new (shared) Count(0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) work(name, spec, options, done);
  // relaxed: only a moment to choose.
  while (done.load(std::memory_order_relaxed) < after && ::waitpid(child, nullptr, WNOHANG) == 0) {
    std::this_thread::yield();
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(done.load(std::memory_order_relaxed) >= after);
  ::munmap(shared, sizeof(Count));

  const auto system = make_system(name);
  system->open(spec, options);
  CHECK(check(*system, spec) == "");
  const std::unique_ptr<Client> client = system->connect();
  const Zipf zipf(spec.entries, spec.zipf);
  OperationStream stream(spec, zipf, kThreads);
  for (unsigned i = 0; i < 200; ++i) client->execute(stream.next());
  CHECK(check(*system, spec) == "");
}

}  // namespace

TEST_CASE("Mnemosyne and quadra are whole when they are killed under several threads") {
  WorkloadSpec spec;
  spec.entries = 400;
  spec.fill = 0.3;
  spec.insert_ratio = 0.7;
  for (const std::string_view name : {"mnemosyne", "quadra"}) {
    for (const WorkloadKind kind : kAllWorkloads) {
      spec.kind = kind;
      for (const std::uint64_t after : {50U, 3000U}) kill_once(name, spec, after);
    }
  }
}

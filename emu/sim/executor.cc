// Recovery's parallelism on the simulated machine: as many cores as threads were asked for, each
// taking the next item when it is done with one. One thread, or no core to run on: the caller's.
#include "emu/executor.h"

#include <deque>
#include <exception>
#include <vector>

#include "emu/threads.h"

namespace sp3::emu {

namespace {

// Runs work(), which returns when there is nothing left to take, on so many threads.
void run_on_all(std::uint32_t threads, const std::function<void()>& work) {
  std::exception_ptr error;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  };
  std::vector<Thread> others;
  if (sim::machine().cores() != 0) {
    for (std::uint32_t i = 1; i < threads; ++i) others.emplace_back(guarded);
  }
  guarded();
  for (Thread& thread : others) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace

Executor::Executor(std::uint32_t threads) noexcept
    : threads_(threads == 0 ? 1 : threads), at_once_(sim::machine().cores() == 0 ? 1 : threads_) {}

void Executor::parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::size_t next = 0;
  run_on_all(threads_, [&] {
    while (next < count) {
      body(next++);
      if (threads_ > 1) sim::machine().event(sim::Event::interleave);
    }
  });
}

void Executor::parallel_feed(
    const std::uint32_t* initial, std::size_t count,
    const std::function<void(std::uint32_t item, const std::function<void(std::uint32_t)>& ready)>&
        body) {
  std::deque<std::uint32_t> left(initial, initial + count);
  std::size_t busy = 0;
  const std::function<void(std::uint32_t)> ready = [&left](std::uint32_t item) {
    sim::machine().synchronise(&left);
    left.push_back(item);
  };
  run_on_all(threads_, [&] {
    while (!left.empty() || busy != 0) {
      if (left.empty()) {
        sim::machine().pause(1, 0);  // a busy thread may make more ready
        continue;
      }
      const std::uint32_t item = left.front();
      left.pop_front();
      sim::machine().synchronise(&left);
      ++busy;
      body(item, ready);
      --busy;
      if (threads_ > 1) sim::machine().event(sim::Event::interleave);
    }
  });
}

}  // namespace sp3::emu

// Executor: where recovery's parallelism goes through, so that a simulated build can run it on
// fibers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace sp3::emu {

class Executor {
 public:
  // threads 0: as many as there are cores. In a child of a process that has had one of several
  // threads: one, whatever is asked for.
  explicit Executor(std::uint32_t threads) noexcept;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  [[nodiscard]] std::uint32_t threads() const noexcept { return threads_; }
  // How many bodies may run at the same time. Where threads cannot be started they are fewer, so
  // none may wait for another without end; 1 if it would wait in vain.
  [[nodiscard]] std::uint32_t at_once() const noexcept { return at_once_; }

  // Calls body(i) for every i in [0, count), in any order, in parallel; returns when all have
  // returned. An exception of a body is rethrown here after the others have stopped.
  void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

  // A graph walk: calls body(item, ready) for the initial items; each call may pass further items
  // to ready(item), which run in parallel too. Returns when no item is left.
  void parallel_feed(
      const std::uint32_t* initial, std::size_t count,
      const std::function<void(std::uint32_t item,
                               const std::function<void(std::uint32_t)>& ready)>& body);

 private:
  std::uint32_t threads_ = 1;
  std::uint32_t at_once_ = 1;  // asked for each record: not computed again
};

}  // namespace sp3::emu

// VictimProcess: a victim, started by running this very program again, and the pipe it tells
// through.
#pragma once

#include <chrono>
#include <optional>

#include <sys/types.h>

#include "pool/file_system.h"
#include "tools/crash/protocol.h"
#include "tools/crash/victim.h"
#include "workloads/pool_remover.h"

namespace sp3::tools::crash {

class VictimProcess {
 public:
  using Clock = std::chrono::steady_clock;

  // Throws std::system_error if it cannot be started.
  explicit VictimProcess(const VictimOptions& options);
  // Kills it if it still lives.
  ~VictimProcess();
  VictimProcess(const VictimProcess&) = delete;
  VictimProcess& operator=(const VictimProcess&) = delete;

  enum class Event { message, timeout, end };
  // The next message; `end` when the victim is gone and everything it wrote has been read.
  Event next(Message& message, Clock::time_point deadline);

  void kill() noexcept;
  // The status as of waitpid(2). Blocks until the victim is gone.
  int wait() noexcept;
  // The same; nothing if it is still there at the deadline.
  std::optional<int> wait_until(Clock::time_point deadline) noexcept;
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

 private:
  pid_t start(VictimOptions options);

  pid_t pid_ = -1;
  pool::Descriptor pipe_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  workloads::PoolMaker maker_;  // last: what it starts is kept in those before
};

}  // namespace sp3::tools::crash

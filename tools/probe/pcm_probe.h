// PcmProbe: bytes that memory and persistent media transferred, by Intel's pcm-memory.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "pool/file_system.h"
#include "tools/probe/pcm_csv.h"
#include "workloads/runner.h"

namespace sp3::tools {

// Why pcm-memory cannot be asked on this machine; empty if it can. Otherwise `program` is its path.
std::string why_no_pcm(std::string& program);

// Lets pcm-memory print a sample every tenth of a second from now on; those that lie in the
// measured time make the reading: media_read_bytes, media_write_bytes, dram_read_bytes,
// dram_write_bytes, of the whole machine. Without such a sample there are no counts, and the note
// says so. The program may be a script that runs it: both are in a process group of their own, and
// whoever leaves that is waited for two seconds at most.
class PcmProbe final : public workloads::Probe {
 public:
  // Errors: std::system_error if the program cannot be started.
  explicit PcmProbe(const std::string& program);
  ~PcmProbe() override;

  void start() override;
  workloads::ProbeReading stop() override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Timed {
    Clock::time_point at;
    PcmSample sample;
  };

  void read_samples();
  // Whether all that write to the pipe have closed it, and the program has ended.
  [[nodiscard]] bool has_ended() const noexcept;
  void end_program() noexcept;

  pool::Descriptor pipe_;
  pool::Descriptor stop_reading_;  // an eventfd
  std::atomic<bool> pipe_closed_{false};
  pid_t pid_ = -1;
  std::mutex mutex_;
  std::vector<Timed> samples_;
  Clock::time_point start_{};
  std::thread reader_;
};

}  // namespace sp3::tools

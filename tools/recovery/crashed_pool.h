// CrashedPool: a pool as a crash left it, recovered as often as wanted, each time from that state.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include <sp3/options.h>
#include <sp3/report.h>

namespace sp3::tools::recovery_bench {

struct RecoveryRun {
  RecoveryReport report;
  double seconds = 0;             // from opening the file to the new generation
  double cpu_seconds = 0;         // of all threads
  std::uint64_t memory_peak = 0;  // bytes that recovery allocated, at its most
  std::uint32_t image = 0;        // a checksum of all slabs afterwards
  FlushInstruction flush = FlushInstruction::automatic;  // the one in use, never automatic
};

// Recovery reads the log and writes everything else (docs/RECOVERY.md). So everything else is kept
// aside, in memory, and put back before each recovery: it costs a copy of the homes, not of the
// log. Memory of kind file then has nothing of it in the page cache, as after a power failure.
//
// Thread safety: one thread.
class CrashedPool {
 public:
  // Reads what is to be kept. REQUIRES: nobody has the pool open. Errors: as sp3::Pool::open.
  CrashedPool(std::filesystem::path path, Options options);

  // Puts the pool back and recovers it. Errors: as sp3::Pool::open; std::runtime_error if the pool
  // had been closed, so that there is nothing to recover.
  RecoveryRun recover(RecoveryStrategy strategy, std::uint32_t threads,
                      const std::function<void(const Progress&)>& progress);

 private:
  struct Kept {
    std::uint64_t offset = 0;
    std::vector<char> bytes;
  };

  void restore() const;
  [[nodiscard]] std::uint32_t image() const;

  std::filesystem::path path_;
  Options options_;
  Kept metadata_;  // up to the log
  Kept slabs_;     // behind it
};

}  // namespace sp3::tools::recovery_bench
